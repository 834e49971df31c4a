"""A whole `feature` session in a temporary project: held by its gates, mended, and finished.

    make demo

Everything it shows is the real command line on real files; nothing is left behind.
"""

import os
import subprocess
import sys
import tempfile
import textwrap

ARTIFACTS = {
    "01-requirements": ("requirements-spec.md", "3 requirements: pay, refuse overdraft, keep history"),
    "03-architecture": ("architecture-overview.md", "one module, no dependencies"),
    "04-design": ("module-design.md", "Wallet.pay(amount) with a guard"),
    "05-test-strategy": ("test-strategy.md", "unit tests, overdraft first"),
    "08-code-review": ("code-review-report.md", "approved, one comment"),
}
TESTS = """
    import unittest
    from wallet import Wallet

    class PayTest(unittest.TestCase):
        def test_pays(self):
            wallet = Wallet(10)
            wallet.pay(4)
            self.assertEqual(wallet.balance, 6)

        def test_refuses_an_overdraft(self):
            with self.assertRaises(ValueError):
                Wallet(1).pay(2)
"""
WRONG = """
    class Wallet:
        def __init__(self, balance):
            self.balance = balance

        def pay(self, amount):
            self.balance -= amount
"""
RIGHT = """
    class Wallet:
        def __init__(self, balance):
            self.balance = balance

        def pay(self, amount):
            if amount > self.balance:
                raise ValueError("not enough money")
            self.balance -= amount
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="detent-demo-") as project:
        demo = Demo(project)
        demo.prepare()
        demo.plan()
        demo.implement()
        demo.close_up()
    demo.say("That was one session. Try it on your own work:")
    print('  detent init && detent start fix "TASK" && detent status')


class Demo:
    def __init__(self, project: str) -> None:
        self.project = project
        self.environment = {**os.environ, "COLUMNS": "80", "DETENT_ACTOR": "ada"}

    def prepare(self) -> None:
        subprocess.run(["git", "init", "-q", self.project], check=True)
        self.say("A small project, and a feature to build in it.")
        self.detent("init")
        self.detent("start", "feature", "Let a wallet pay")

    def plan(self) -> None:
        self.say("A phase ends only when its gates have evidence. This one wants a specification:")
        self.detent("finish", "-m", "done", expect=3)
        self.phase("01-requirements")
        self.say("Planning, four phases at a time-lapse:")
        self.detent("begin", "02-impact-analysis", quiet=True)
        self.detent("finish", "-m", "one module, low risk", quiet=True)
        for phase in ("03-architecture", "04-design", "05-test-strategy"):
            self.detent("begin", phase, quiet=True)
            self.phase(phase, quiet=True)
        self.detent("status")

    def implement(self) -> None:
        self.say("The implementation gets something wrong, and the tests say so:")
        self.detent("begin", "06-implementation", quiet=True)
        self.write("test_wallet.py", TESTS)
        self.write("wallet.py", WRONG)
        self.detent("gate", "run", "tests", "--", sys.executable, "-m", "unittest", "-q", expect=3)
        self.detent("finish", "-m", "Wallet.pay", expect=3)
        self.say("Mended and green. But then the file is touched once more:")
        self.write("wallet.py", RIGHT)
        self.detent("gate", "run", "tests", "--", sys.executable, "-m", "unittest", "-q")
        self.write("wallet.py", RIGHT + "\n    LIMIT = 100\n")
        self.detent("finish", "-m", "Wallet.pay with overdraft guard", expect=3)
        self.say("Evidence expires with its inputs. Run again, and the gate is open:")
        self.detent("gate", "run", "tests", "--", sys.executable, "-m", "unittest", "-q", quiet=True)
        self.detent("finish", "-m", "Wallet.pay with overdraft guard", "--artifact", "wallet.py")

    def close_up(self) -> None:
        self.detent("begin", "16-quality-loop", quiet=True)
        self.detent("gate", "run", "tests", "--", sys.executable, "-m", "unittest", "-q", quiet=True)
        self.detent("finish", "-m", "2 tests, all green", quiet=True)
        self.detent("begin", "08-code-review", quiet=True)
        self.phase("08-code-review", quiet=True)
        self.say("The last phase ended the session. What is left behind:")
        self.detent("history")
        self.detent("doctor")

    def phase(self, key: str, *, quiet: bool = False) -> None:
        """Write what the phase must leave behind and finish it."""
        name, summary = ARTIFACTS[key]
        path = f"docs/requirements/REQ-0001-let-a-wallet-pay/{name}"
        self.write(path, f"# {summary}\n")
        self.detent("finish", "-m", summary, "--artifact", path, quiet=quiet)

    def write(self, path: str, text: str) -> None:
        full = os.path.join(self.project, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as file:
            file.write(textwrap.dedent(text).lstrip())

    def detent(self, *words: str, expect: int = 0, quiet: bool = False) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "detent", *words],
            cwd=self.project,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if not quiet:
            line = " ".join(f'"{word}"' if " " in word else word for word in words)
            print(f"$ detent {line.replace(sys.executable, 'python')}")
            print(textwrap.indent(done.stdout.replace(sys.executable, "python").rstrip(), "  "), end="\n\n")
        if done.returncode != expect:
            sys.exit(f"detent {words[0]} ended with {done.returncode} instead of {expect}:\n{done.stdout}")

    def say(self, text: str) -> None:
        print(f"\033[1m{text}\033[0m\n" if sys.stdout.isatty() else f"# {text}\n", flush=True)


if __name__ == "__main__":
    main()
