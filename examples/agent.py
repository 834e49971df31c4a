"""A stand-in for a real agent in the demo: it is given a prompt, works on the files, and says what it did.

[agents.script]
adapter = "command"
command = "python agent.py"
result = "json"
"""

import json
import os
import re
import sys
from pathlib import Path

PHASE = os.environ["DETENT_PHASE"]
PROMPT = sys.stdin.read()
#: The prompt says where a phase puts what it writes about its work, and what failed the time before.
FOLDER = Path(re.search(r"go to (\S+)", PROMPT)[1])
IS_SECOND_TURN = "## What failed" in PROMPT

PAY = """\


    def pay(self, amount):
        self.balance -= amount
"""
GUARDED_PAY = """\


    def pay(self, amount):
        if amount > self.balance:
            raise ValueError("not enough money")
        self.balance -= amount
"""
TESTS = """\


def test_pays():
    wallet = Wallet(10)
    wallet.pay(4)
    assert wallet.balance == 6


def test_refuses_an_overdraft():
    with pytest.raises(ValueError, match="not enough"):
        Wallet(1).pay(2)
"""


def main() -> None:
    made, summary = work()
    tools = [{"tool": "Write", "input": path} for path in made]
    print(json.dumps({"summary": summary, "artifacts": made, "tools": tools}))


def work() -> tuple[list[str], str]:
    """The files that were written, and what was done."""
    match PHASE:
        case "01-requirements":
            return [note("requirements-spec.md", "R1 pay. R2 refuse an overdraft.")], "pay, and refuse an overdraft"
        case "02-impact-analysis":
            return [], "one module, low risk"
        case "05-test-strategy":
            return [note("test-strategy.md", "A test for each of R1 and R2.")], "a test for each requirement"
        case "06-implementation":
            return implementation()
        case "08-code-review":
            return [note("code-review-report.md", "No remarks.")], "reviewed, no remarks"
    return [], "the tests are green"


def implementation() -> tuple[list[str], str]:
    code, tests = Path("wallet/__init__.py"), Path("tests/test_wallet.py")
    if IS_SECOND_TURN:
        code.write_text(code.read_text().replace(PAY, GUARDED_PAY))
        return [str(code)], "Wallet.pay refuses an overdraft"
    code.write_text(code.read_text().rstrip("\n") + PAY)
    tests.write_text("import pytest\n\n" + tests.read_text().rstrip("\n") + "\n" + TESTS)
    return [str(code), str(tests)], "Wallet.pay"


def note(name: str, text: str) -> str:
    path = FOLDER / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")
    return str(path)


if __name__ == "__main__":
    main()
