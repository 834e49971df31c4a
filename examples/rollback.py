"""A run that went wrong, and how it was taken back: the transcript in the README.

    python examples/rollback.py

Everything it shows is the real command line on real files in a temporary directory; nothing is left behind.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

SETTINGS = """\
gates = "off"   # this story is about files; see the demo for gates
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="detent-rollback-") as directory:
        tell(Path(directory))


def tell(project: Path) -> None:
    (project / "detent.toml").write_text(SETTINGS)
    (project / "billing").mkdir()
    (project / "billing/invoice.py").write_text("def total(lines):\n    return sum(line.price for line in lines)\n")
    (project / "billing/tax.py").write_text("RATE = 0.19\n")
    detent(project, "init", quiet=True)
    detent(project, "start", "plan-implement-review", "Add discounts to invoices", quiet=True)
    (project / "plan.md").write_text("1. discount per line\n2. never below zero\n")
    detent(project, "finish", "-m", "planned in two steps", "--artifact", "plan.md", quiet=True)
    detent(project, "begin", quiet=True)

    say("The agent implements. It rewrites what it should not, deletes a module, and reports success.")
    (project / "billing/invoice.py").write_text("def total(lines):\n    return 0  # TODO\n")
    (project / "billing/tax.py").unlink()
    (project / "billing/discount.py").write_text("def discount(line):\n    return line.price\n")
    detent(project, "finish", "-m", "discounts done, code simplified")
    say("You keep a note of your own, and look at what really happened.")
    (project / "notes.txt").write_text("ask Ada about rounding\n")
    detent(project, "checkpoint", "list")
    detent(project, "diff", "POST_PLAN_v1", "--stat")
    say("Back to the plan: first what that would do, then doing it.")
    detent(project, "rollback", "POST_PLAN_v1", "--dry-run")
    detent(project, "rollback", "POST_PLAN_v1", "--yes", last=9)
    say("The module is back, the broken work is gone from the tree, your note was never touched,")
    say("and nothing is lost: what was replaced is in a checkpoint of its own.", gap=False)
    shell(project, "ls billing notes.txt && head -2 billing/invoice.py")
    detent(project, "undo", "--dry-run")


def say(text: str, *, gap: bool = True) -> None:
    print(f"\n# {text}" if gap else f"# {text}")


def detent(project: Path, *words: str, quiet: bool = False, last: int | None = None) -> None:
    """Run it and show what it says; only the last lines if there is more of the same."""
    output = run(project, [sys.executable, "-m", "detent", *words])
    if quiet:
        return
    lines = output.splitlines()
    shown = lines if last is None else ["…", *lines[-last:]]
    print("\n$ detent " + " ".join(f'"{word}"' if " " in word else word for word in words), *shown, sep="\n")


def shell(project: Path, line: str) -> None:
    print(f"\n$ {line}\n{run(project, ['bash', '-c', line])}")


def run(project: Path, command: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "80", "DETENT_ACTOR": "ada", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}
    for name in ("CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "DETENT_PHASE", "DETENT_PROJECT"):
        environment.pop(name, None)
    ran = subprocess.run(
        command,
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise SystemExit(f"{command}: exit {ran.returncode}\n{ran.stdout}")
    return ran.stdout.rstrip()


if __name__ == "__main__":
    main()
