"""The workflow document on disk: the live file, its Markdown, and an archive of earlier workflows.

For programs that use the document without a Detent session. Each change is made under a lock.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from detent.documents.workflow.shape import ID, Document, check, generate_markdown, new, with_phase_status, workflow_id
from detent.errors import Corrupt, NotFound, StoreFailed
from detent.store.disk import failing_as, replace
from detent.store.lock import exclusive

STATE = os.path.join(".claude", "state", "workflow.json")
ARCHIVE = os.path.join(".claude", "state", "workflows")
MARKDOWN = os.path.join(".claude", "workflow_state_system.md")
_LOCK = os.path.join(".claude", "state", "workflow.lock")
_WAIT_S = 10.0

Root = str | os.PathLike[str]


def seconds_until_free(root: Root, at: datetime) -> int:
    """The time by which a new workflow must be later than `at` to have an id of its own."""
    root = os.fspath(root)
    try:
        live = (_read(os.path.join(root, STATE)) or {}).get("id")
    except (Corrupt, StoreFailed):
        live = None
    for later in count():
        wanted = workflow_id(at + timedelta(seconds=later))
        if wanted != live and not os.path.exists(_archived(root, wanted)):
            return later
    raise AssertionError


def create_workflow_state(task: str, phases: Iterable[Any], *, root: Root = ".", now: datetime | None = None) -> str:
    """Create a workflow and archive the present one. Returns its id."""
    root = os.fspath(root)
    at = now or datetime.now(UTC)
    workflow = new(workflow_id(at), task, phases)
    with _locked(root):
        previous = _read(os.path.join(root, STATE))
        workflow["id"] = workflow_id(at + timedelta(seconds=seconds_until_free(root, at)))
        if previous:
            os.makedirs(os.path.join(root, ARCHIVE), exist_ok=True)
            _write(_archived(root, previous["id"]), previous)
        _publish(root, workflow)
    return str(workflow["id"])


def update_phase_status(
    workflow_id: str,
    phase_id: str,
    status: str,
    deliverables: Sequence[str] | None = None,
    context_for_next: str | None = None,
    *,
    advance: bool = True,
    force: bool = False,
    root: Root = ".",
) -> None:
    """Set the status of one phase of the live workflow, and start the next phase when the current one is completed.

    A refused change leaves the files as they are.
    """
    root = os.fspath(root)
    path = os.path.join(root, STATE)
    if not os.path.exists(path):
        raise _none(root)
    with _locked(root):
        workflow = _read(path)
        if workflow is None:
            raise _none(root)
        if workflow["id"] != workflow_id:
            raise NotFound(f"workflow {workflow_id!r} is not the live one, which is {workflow['id']}")
        changed = with_phase_status(
            workflow,
            phase_id,
            status,
            deliverables=deliverables,
            context_for_next=context_for_next,
            advance=advance,
            force=force,
        )
        _publish(root, changed)


def get_workflow_state(workflow_id: str | None = None, *, root: Root = ".") -> Document:
    """The live workflow; with an id, that workflow, live or archived."""
    root = os.fspath(root)
    live = _read(os.path.join(root, STATE))
    if workflow_id is None:
        if live is None:
            raise _none(root)
        return live
    if live and live["id"] == workflow_id:
        return live
    # The id becomes a file name, so it must be a valid id.
    archived = _read(_archived(root, workflow_id)) if ID.fullmatch(workflow_id) else None
    if archived is None:
        raise NotFound(f"there is no workflow {workflow_id!r}, live or archived, in {root}")
    return archived


def encode(workflow: Document) -> bytes:
    """The bytes of the file."""
    # A lone surrogate has no UTF-8; `backslashreplace` writes its JSON escape.
    return (json.dumps(workflow, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")


def decode(data: bytes) -> Document:
    """The document in the bytes; `Corrupt` if they hold no valid one."""
    try:
        return check(json.loads(data.decode("utf-8")))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"it is not JSON: {error}") from error


def show(root: Root, workflow: Document) -> None:
    """Write the workflow of a session to the files, and archive another workflow that is there.

    An unreadable file is renamed. Files that are up to date are not written.
    """
    root = os.fspath(root)
    path = os.path.join(root, STATE)
    with _locked(root):
        try:
            previous = _read(path)
        except Corrupt:
            previous = None
            with failing_as("set aside", path):
                os.replace(path, path + ".unreadable")
        if previous and previous["id"] != workflow["id"]:
            os.makedirs(os.path.join(root, ARCHIVE), exist_ok=True)
            _write(_archived(root, previous["id"]), previous)
        if not _has(path, encode(workflow)) or not os.path.exists(os.path.join(root, MARKDOWN)):
            _publish(root, workflow)


def _has(path: str, data: bytes) -> bool:
    try:
        with open(path, "rb") as present:
            return present.read() == data
    except OSError:
        return False


def _none(root: str) -> NotFound:
    return NotFound(f"there is no workflow in {root}", way_out="create one with create_workflow_state")


def _archived(root: str, id_: str) -> str:
    return os.path.join(root, ARCHIVE, f"{id_}.json")


def _publish(root: str, workflow: Document) -> None:
    _write(os.path.join(root, STATE), workflow)
    path = os.path.join(root, MARKDOWN)
    with failing_as("write", path):
        replace(path, generate_markdown(workflow).encode("utf-8", "replace"))


def _write(path: str, workflow: Document) -> None:
    with failing_as("write", path):
        replace(path, encode(workflow))


def _read(path: str) -> Document | None:
    """The document; None if there is no file, `Corrupt` if it is not valid."""
    try:
        with failing_as("read", path), open(path, "rb") as file:
            data = file.read()
    except StoreFailed as error:
        if isinstance(error.__cause__, FileNotFoundError):
            return None
        raise
    try:
        workflow = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Corrupt(f"{path} is not JSON: {error}", way_out="fix it or move it away") from error
    document = check(workflow)
    # The id becomes a file name in the archive.
    if not ID.fullmatch(document["id"]):
        raise Corrupt(f"{path} has the id {document['id']!r:.100}, which is none", way_out="fix it or move it away")
    return document


@contextmanager
def _locked(root: str) -> Iterator[None]:
    path = os.path.join(root, _LOCK)
    with failing_as("lock", path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        # Every caller has its own descriptor, so flock also excludes other threads.
        with exclusive(fd, threading.Lock(), wait_s=_WAIT_S, what=f"the workflow in {root}"):
            yield
    finally:
        os.close(fd)
