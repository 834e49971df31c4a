"""Judges what a tool is about to write over the state document."""

import os
from typing import Any

import msgspec

from detent.core.guard import state_reader
from detent.documents import state as state_document
from detent.engine.projections.publish import UNREADABLE
from detent.hooks.files import has_marker


def judge_write(content: str, state: str) -> tuple[str | None, str]:
    """Reason to refuse `content` as the new state document, if any, and a warning about it."""
    mend = "a person should run: detent doctor --fix"
    try:
        with open(os.path.join(state, "state.json"), "rb") as file:
            disk = msgspec.json.decode(file.read(), type=dict[str, Any])
    except FileNotFoundError:
        if has_marker(state):
            return f"the state document of the active session is missing, so it is not written; {mend}", ""
        # There is nothing to fall behind. The next command adopts what is written, or sets it aside.
        disk = {}
    except OSError as error:
        return f"the state document cannot be read ({error.strerror}), so it is not replaced; {mend}", ""
    except UNREADABLE as error:
        return f"the state document holds no readable JSON ({error}), so it is not replaced; {mend}", ""
    try:
        incoming = msgspec.json.decode(content)
    except UNREADABLE as error:
        return f"the state document would not be readable: {error}", ""
    name = state_reader.workflow(disk).get("session_id")
    flow = state_reader.workflow(incoming)
    if name is not None and flow.get("session_id", name if flow else None) != name:
        return f"the document would no longer be about {name}; an edit neither ends nor renames a session", ""
    problems = state_document.check_write(incoming, disk)
    blocking = "; ".join(problem.message for problem in problems if problem.blocks)
    warnings = (f"{problem.rule}: {problem.message}" for problem in problems if not problem.blocks)
    return blocking or None, "; ".join(warnings)
