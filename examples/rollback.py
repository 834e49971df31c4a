"""A run that went wrong, and how it was taken back: the transcript in docs/demo.md.

    python examples/rollback.py

Everything it shows is the real command line on real files in a temporary directory; nothing is left behind.
"""

import tempfile
from pathlib import Path

from transcript import detent, say, shell, silently

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
    silently(project, "init")
    silently(project, "start", "plan-implement-review", "Add discounts to invoices")
    (project / "plan.md").write_text("1. discount per line\n2. never below zero\n")
    silently(project, "finish", "-m", "planned in two steps", "--artifact", "plan.md")
    silently(project, "begin")

    say("The agent implements. It rewrites what it should not, deletes a module, and reports success.")
    (project / "billing/invoice.py").write_text("def total(lines):\n    return 0  # TODO\n")
    (project / "billing/tax.py").unlink()
    (project / "billing/discount.py").write_text("def discount(line):\n    return line.price\n")
    detent(project, "finish", "-m", "discounts done, code simplified", "--artifact", "billing/discount.py")
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


if __name__ == "__main__":
    main()
