"""A session that holds one phase with all the gates that the shipped phase has, in a project of its own."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from detent.hooks.answer import main
from tests.support.project import build_project

GREEN = "10 passing\nStatements : 90%"
#: The recorded outputs are shortened; these are the lines as pytest and mocha print them.
PRINTED = (
    (re.compile(r"^\d+ failed, \d+ passed$", re.M), r"\g<0> in 0.40s"),
    (re.compile(r"^\d+ passing$", re.M), r"  \g<0> (20ms)"),
)


@contextmanager
def session(
    root: Path, phase: str, *, settings: str = "", files: Mapping[str, str] | None = None
) -> Iterator[tuple[Project, SessionHandle]]:
    """The phase in progress, where a constitution is written and an agent is installed, so that every gate applies."""
    declared = f'{settings}\n[workflows.one]\nphases = ["{phase}"]\n'
    build_project(root, declared, files=files, agent=True, constitution=True)
    with open_project(root, actor="tester") as project:
        yield project, project.start("one", "try it")


def document(root: Path) -> dict[str, Any]:
    """The state document as it stands on disk."""
    return json.loads((root / ".workflow/state.json").read_text())


def hook(root: Path, event: str, **fields: Any) -> str:
    """What the hook command answers to an event of Claude Code."""
    payload = {"hook_event_name": event, "session_id": "s", "cwd": str(root), **fields}
    return main(["claude-code"], json.dumps(payload).encode())


def run_in_shell(root: Path, command: str, output: str) -> str:
    """The agent ran a command, and its client reports it."""
    for shortened, printed in PRINTED:
        output = shortened.sub(printed, output)
    return hook(root, "PostToolUse", tool_name="Bash", tool_input={"command": command}, tool_response=output)
