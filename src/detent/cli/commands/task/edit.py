"""`task edit`: changes the document of a task, in an editor or key by key."""

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

import click

from detent.cli.person import is_at_terminal
from detent.cli.request import Request, Usage
from detent.cli.task import answer_moved, known_task, task_argument
from detent.cli.verb import session_option, verb
from detent.errors import Invalid, NotFound, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.projections.adopt import Adoption
    from detent.engine.session import SessionHandle

#: Keys of the state of a task, with the verbs that change them.
_STATE_KEYS = {
    "id": "an id is never changed; detent task add makes another task",
    "status": "detent task start, done, fail, block, retry or reopen",
    "version": "detent task replan",
    "execution": "detent task fail, block or retry",
}


@verb("edit", example="detent task edit IMPL-3 --set meta.agent=review-agent")
@task_argument
@click.option("--set", "settings", metavar="PATH=VALUE", multiple=True, help="Set a key to JSON or text; repeat it.")
@session_option
def edit_task(request: Request, task: str, *, settings: tuple[str, ...], session: str | None) -> int:
    """Edit the document of a task.

    Opens its file in $EDITOR. The saved file is adopted, or kept as .rejected-N with the reasons. With --set no editor
    is needed: PATH is a key such as context.focus_paths or context.requirements.0
    """
    with request.changing() as project:
        handle = project.session(session)
        own = known_task(handle, task)
        if settings:
            document = handle.tasks.document(own)
            for setting in settings:
                change_key(document, setting)
            outcome = handle.tasks.write([document], new=False, reason="edited")
            answer_moved(request, project, outcome, wrote="changed")
            return 0
        adoption = _edited(project, handle, own)
    text = adoption.describe() if adoption else f"{own} was not changed"
    request.answer(lambda _: text, {"session": handle.id, "task": own, "adoption": adoption})
    return 1 if adoption is not None and not adoption.adopted else 0


def change_key(document: dict[str, Any], setting: str) -> None:
    """Apply one `PATH=VALUE` to the document; the value is JSON, or else plain text."""
    path, equals, text = setting.partition("=")
    *before, key = path.strip().split(".")
    if not equals or not all((*before, key)):
        raise Invalid(f"{setting[:80]!r} must be PATH=VALUE, such as meta.agent=review-agent")
    first = (*before, key)[0]
    if first in _STATE_KEYS:
        raise Refused(f"{first} is not changed by an edit", way_out=_STATE_KEYS[first])
    inner: Any = document
    for at, name in enumerate(before):
        place = _place(inner, name, ".".join(before[: at + 1]))
        if isinstance(inner, dict) and inner.get(place) is None:
            inner[place] = {}
        inner = inner[place]
    place = _place(inner, key, path)
    if isinstance(inner, list) and place == len(inner):
        inner.append(_value(text))
    else:
        inner[place] = _value(text)


def _place(inner: Any, name: str, path: str) -> str | int:
    if isinstance(inner, dict):
        return name
    if not isinstance(inner, list):
        raise Invalid(f"{path} does not exist: its parent is neither an object nor a list")
    if not (name.isascii() and name.isdigit() and int(name) <= len(inner)):
        raise Invalid(
            f"{path} does not exist: the indexes of that list are 0 to {len(inner)}, and {len(inner)} appends"
        )
    return int(name)


def _value(text: str) -> Any:
    import json

    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return text


def _edited(project: "Project", handle: "SessionHandle", task: str) -> "Adoption | None":
    """Open the editor on the task's file, and adopt the saved file."""
    from detent.documents.task import name_of
    from detent.engine.projections.adopt_task import TaskAdoption
    from detent.engine.projections.task_progress import MAX_WATCHED
    from detent.store.port import PROJECT

    if not is_at_terminal():
        raise Usage("there is no terminal for an editor", way_out=f"detent task edit {task} --set PATH=VALUE")
    if len(handle.state.tasks) > MAX_WATCHED:
        raise Refused(
            f"edited files are not adopted in sessions with more than {MAX_WATCHED} tasks",
            way_out=f"detent task edit {task} --set PATH=VALUE",
        )
    project.flush()
    stem = handle.tasks.row(task).stem
    name = name_of(handle.id, stem)
    path = project.store.location(name)
    if not os.path.isfile(path):
        raise Refused(f"{path} is not a file", way_out=f"detent task edit {task} --set PATH=VALUE")
    before = handle.tasks.files.raw(stem)
    _run_editor(path)
    if handle.tasks.files.raw(stem) == before:
        return None
    with project.store.lock(PROJECT):
        adoptions = TaskAdoption(project, handle.id).adopt_all()
    project.touched(handle.id)
    return next((adoption for adoption in adoptions if adoption.document == name), None)


def _run_editor(path: str) -> None:
    command = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    try:
        code = subprocess.run([*command, path], check=False).returncode  # noqa: S603 - the person's own editor
    except FileNotFoundError:
        raise NotFound(f"there is no editor {command[0]}", way_out="set EDITOR to an installed editor") from None
    if code:
        raise Refused(f"the editor {command[0]} exited with {code}; the next command adopts what it saved")
