"""How events about tasks change a session."""

import hashlib
from typing import Any

import msgspec

from detent.core.session.events import TaskEvent, TaskMoved, TaskRemoved, TaskWritten
from detent.core.session.session import Session
from detent.core.task.complexity import complexity, raised
from detent.core.task.id import canonical
from detent.core.task.lifecycle import TRANSITIONS, Action
from detent.core.task.row import Row, TaskStatus, row_of
from detent.errors import Corrupt, DetentError

_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="deterministic").encode
_SUM_BITS = 128


def task_applied(session: Session, event: TaskEvent, version: int) -> Session:
    try:
        match event:
            case TaskWritten():
                before = session.tasks.get(event.task)
                body = _digest(event.document)
                row = msgspec.structs.replace(row_of(event.document), body=body, changed=version, written=version)
                if canonical(event.task) != row.id:
                    raise Corrupt(f"an event about {event.task} holds the document of {row.id}")
                return _with_row(session, before, row)
            case TaskRemoved():
                before = session.tasks[event.task]
                claims = {task: claim for task, claim in session.claims.items() if task != event.task}
                gone = _with_sum(session, before, None, session.tasks.without(event.task))
                return msgspec.structs.replace(gone, claims=claims, retired=(*session.retired, event.task))
            case TaskMoved():
                return _moved(session, event, version)
    except DetentError as error:
        raise Corrupt(f"the journal cannot be followed at {event.task}: {error.message}") from error


def _moved(session: Session, event: TaskMoved, version: int) -> Session:
    before = session.tasks[event.task]
    status = TRANSITIONS.get((before.status, Action(event.action)))
    if status is None or status != event.status:
        raise Corrupt(f"{event.action} cannot follow for task {event.task}, which is {before.status}")
    told = event.reason or None
    row = msgspec.structs.replace(
        before,
        status=status,
        reason=told if status in (TaskStatus.BLOCKED, TaskStatus.FAILED) else None,
        attempts=before.attempts + (event.action == Action.START),
        changed=version,
    )
    claims = {task: claim for task, claim in session.claims.items() if task != event.task}
    if event.claim is not None:
        claims[event.task] = event.claim
    return msgspec.structs.replace(_with_row(session, before, row), claims=claims)


def with_statuses(session: Session, statuses: dict[str, str], version: int) -> Session:
    """Tasks that stand elsewhere after a rollback; nobody holds them."""
    for task, status in statuses.items():
        before = session.tasks[task]
        row = msgspec.structs.replace(before, status=TaskStatus(status), reason=None, changed=version)
        session = _with_row(session, before, row)
    claims = {task: claim for task, claim in session.claims.items() if task not in statuses}
    return msgspec.structs.replace(session, claims=claims)


def _with_row(session: Session, before: Row | None, row: Row) -> Session:
    return _with_sum(session, before, row, session.tasks.with_row(row))


def _with_sum(session: Session, before: Row | None, after: Row | None, tasks: Any) -> Session:
    """The sum of all rows' hashes: rows come and go in any order, and the sum tells the same."""
    total = int(session.tasks_sum or "0", 16) - _hash(before) + _hash(after)
    counted = complexity(tasks.leaf_count, has_subtasks=tasks.has_subtasks)
    return msgspec.structs.replace(
        session,
        tasks=tasks,
        tasks_sum=f"{total % (1 << _SUM_BITS):032x}",
        complexity=raised(session.complexity, counted),
    )


def _digest(document: dict[str, Any]) -> str:
    return hashlib.sha256(_sorted(document)).hexdigest()[:16]


def _hash(row: Row | None) -> int:
    return 0 if row is None else int.from_bytes(hashlib.sha256(_encode(row)).digest()[: _SUM_BITS // 8], "big")
