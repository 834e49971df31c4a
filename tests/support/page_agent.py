"""The agent of `tests/support/page_project.py`, as a script in the project: it changes files, and fails its tests once.

A phase waits while the file `hold-PHASE` is in the directory that `HOLD_DIRECTORY` names.
"""

import json
import os
import sys
import time
from pathlib import Path

PAY = """

    def pay(self, amount):
        self.balance -= amount
"""
GUARDED_PAY = """

    def pay(self, amount):
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
"""
TESTS = """
    def test_pays(self):
        wallet = Wallet(10)
        wallet.pay(4)
        self.assertEqual(wallet.balance, 6)

    def test_refuses_an_overdraft(self):
        with self.assertRaises(ValueError):
            Wallet(1).pay(2)
"""
POLL_S = 0.05


def main() -> None:
    prompt, phase = sys.stdin.read(), os.environ["DETENT_PHASE"]
    say(f"reading what {phase} is about")
    hold = Path(os.environ["HOLD_DIRECTORY"], f"hold-{phase}")
    while hold.exists():
        time.sleep(POLL_S)
    summary = work(phase, is_second_turn="## What failed" in prompt)
    say(json.dumps({"summary": summary, "tokens": {"input": 1200, "output": 340, "cost": 0.02}}))


def work(phase: str, *, is_second_turn: bool) -> str:
    code, tests = Path("wallet.py"), Path("test_wallet.py")
    match phase:
        case "plan":
            return "pay, and refuse an overdraft"
        case "build" if is_second_turn:
            code.write_text(code.read_text().replace(PAY, GUARDED_PAY))
            return "Wallet.pay refuses an overdraft"
        case "build":
            code.write_text(code.read_text() + PAY)
            tests.write_text(tests.read_text() + TESTS)
            return "Wallet.pay"
        case "document":
            Path("README.md").write_text("# Wallet\n\nA wallet pays what it has.\n")
            Path("picture.bin").write_bytes(bytes(range(256)))
            return "says what a wallet does"
    return "looked at everything"


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
