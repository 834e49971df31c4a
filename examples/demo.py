"""A feature, built by an agent and held by its gates: the transcript in docs/demo.md.

    make demo

Everything it shows is the real command line on real files in a temporary directory; nothing is left behind. The agent
is a script, agent.py, so that it needs no account and does the same each time.
"""

import shutil
import tempfile
from pathlib import Path

import cheating_agent
from transcript import detent, run, say, shell, silently

FILES = {
    "wallet/__init__.py": "class Wallet:\n    def __init__(self, balance):\n        self.balance = balance\n",
    "tests/test_wallet.py": "from wallet import Wallet\n\n\ndef test_holds():\n    assert Wallet(1).balance == 1\n",
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
    "detent.toml": """\
[agents.script]                  # any program can be an agent
adapter = "command"
command = "python agent.py"      # it has the prompt on its standard input
result = "json"

[run]
agent = "script"
tests = "python -m pytest -q"

[phases.08-code-review]          # not done before a person has agreed
gates = [{ kind = "approval" }]
""",
}
NEXT = """
  detent init
  detent run "TASK" --tests "pytest -q" --agent claude-code   # codex, gemini …
  detent watch                        # the same, from another terminal
  detent report                       # what was done, and what proved it"""
AGENT = Path(__file__).with_name("agent.py")
NEEDS_A_PERSON = 6


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="detent-demo-") as directory:
        tell(Path(directory))


def tell(project: Path) -> None:
    prepare(project)
    say("A Python project with tests, and an agent that is a script: examples/agent.py.")
    shell(project, "cat detent.toml")

    say("One command works through the phases. Code that fails its tests does not get")
    say("past the gate: the agent is told what failed, and has another turn.", gap=False)
    detent(project, "run", "Let a wallet pay", "--size", "light", expect=NEEDS_A_PERSON)

    say("Exit code 6: a person has to look. You do, you agree, and it goes on.")
    shell(project, "git diff --stat")
    detent(project, "approve", "-m", "read it, overdraft is covered")
    detent(project, "run")

    say("Was the plan wrong? Back to it, with the files, from a session that had ended.")
    session = "WFS-let-a-wallet-pay"
    detent(project, "rollback", "POST_05-test-strategy_v1", "--session", session, "--yes", last=9)
    shell(project, "python -m pytest -q")

    say("It was right after all. Nothing was lost.")
    detent(project, "undo", "--yes", last=9)
    shell(project, "python -m pytest -q")
    detent(project, "doctor")

    with tempfile.TemporaryDirectory(prefix="detent-demo-") as directory:
        cheating_agent.tell(Path(directory))

    say("What to try next, in a project of yours:")
    print(NEXT)


def prepare(project: Path) -> None:
    for path, text in FILES.items():
        (project / path).parent.mkdir(exist_ok=True)
        (project / path).write_text(text)
    shutil.copy(AGENT, project)
    run(project, ["git", "init", "-q", "-b", "wallet"])
    run(project, ["git", "add", "."])
    run(project, ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", "commit", "-qm", "A wallet"])
    silently(project, "init")


if __name__ == "__main__":
    main()
