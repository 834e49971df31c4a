"""A repository with a session in it, as `detent ci` meets it: a branch with tests, and a record that is published."""

import os
from pathlib import Path

from tests.support.command import Tool
from tests.support.gated import UNITTEST, calculator
from tests.support.project import build_project
from tests.support.repository import git

SESSION = "WFS-try-it"
#: A file in .git with which the machine of CI lacks what a check needs.
BROKEN = "detent-broken"
SETTINGS = f"""
[workflows.short]
phases = [
  {{ key = "work", gates = [
    {{ kind = "tests", command = "{UNITTEST}" }}, {{ kind = "command", command = "test ! -e .git/{BROKEN}" }},
  ] }},
  {{ key = "rewrite", rewrites_tests = true, gates = [{{ kind = "tests", command = "{UNITTEST}" }}] }},
]
"""


def branch(root: Path) -> Tool:
    """A session in its first phase, which may not rewrite tests."""
    calculator(root, git=True)
    (root / ".gitignore").write_text("__pycache__/\n.workflow/\n")
    build_project(root, SETTINGS)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "Begin")
    git(root, "branch", "base")
    tool = Tool(root)
    tool("start", "short", "try it").ok()
    return tool


def record(tool: Tool) -> None:
    """Finish every phase, publish its record, and commit everything."""
    for phase in ("work", "rewrite"):
        if phase != "work":
            tool("begin", phase).ok()
        tool("gate", "run", "--all").ok()
        tool("finish", "-m", f"{phase} is done").ok()
    publish(tool)


def publish(tool: Tool) -> None:
    tool("publish").ok()
    git(tool.directory, "add", "--all")
    git(tool.directory, "commit", "--quiet", "-m", "Publish the record")


def bundle(tool: Tool) -> Path:
    return tool.directory / ".detent" / f"{SESSION}.bundle"


def stage(tool: Tool, path: str, text: str | None) -> None:
    """Write the file, or remove it, and stage that."""
    target = tool.directory / path
    if text is None:
        os.unlink(target)
    else:
        target.write_text(text)
    git(tool.directory, "add", "--all")
