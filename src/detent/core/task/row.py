"""Rows: the part of a task that scheduling needs. A session holds one row per task, up to 200,000."""

from enum import StrEnum
from sys import intern
from typing import Any

import msgspec

from detent.core.task.id import canonical, parent_of
from detent.errors import Invalid


class TaskStatus(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    BLOCKED = "blocked"
    CONTAINER = "container"
    FAILED = "failed"


class TaskType(StrEnum):
    FEATURE = "feature"
    BUGFIX = "bugfix"
    REFACTOR = "refactor"
    TEST = "test"
    DOCS = "docs"


#: The key of `execution` that holds the reason, by status.
REASON_KEYS = {TaskStatus.BLOCKED: "waiting_on", TaskStatus.FAILED: "last_error"}


class Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Holds only strings, numbers and a tuple of strings, so that no reference cycle is possible (`gc=False`)."""

    #: Canonical, as are those in `depends_on`.
    id: str
    title: str
    status: TaskStatus = TaskStatus.PENDING
    type: str = "feature"
    agent: str = "code-developer"
    depends_on: tuple[str, ...] = ()
    version: int = 1
    #: The reason why it is blocked or has failed.
    reason: str | None = None
    attempts: int = 0
    #: The number of its acceptance criteria.
    criteria: int = 0
    #: A digest of all the rest of the document, so that a change of it is a change of the row.
    body: str = ""
    #: The journal versions of its last change, and of the last change of its document.
    changed: int = 0
    written: int = 0
    #: The id as it was written, if that is another spelling: IMPL-001.
    name: str = ""

    @property
    def stem(self) -> str:
        """The id in its document, and the name of its file without `.json`."""
        return self.name or self.id

    def done_command(self, claim: int | None = None) -> str:
        """`task done`, with a text for each acceptance criterion."""
        claimed = "" if claim is None else f" --claim {claim}"
        met = ' --met "HOW"' * self.criteria
        return f'detent task done {self.id}{claimed} -m "SUMMARY"{met}'

    @property
    def parent(self) -> str | None:
        return parent_of(self.id)


def row_of(document: dict[str, Any]) -> Row:
    """The row of a valid document; `Invalid` if a key cannot be read."""
    try:
        meta, context, execution = document["meta"], document["context"], document.get("execution") or {}
        title, status = document["title"], TaskStatus(document["status"])
        if not isinstance(title, str):
            raise TypeError("its title is not a text")
        own = canonical(document["id"])
        return Row(
            id=own,
            name=document["id"] if document["id"] != own else "",
            title=title,
            status=status,
            type=intern(meta.get("type") or "feature"),
            agent=intern(meta.get("agent") or "code-developer"),
            depends_on=tuple(dict.fromkeys(map(canonical, context.get("depends_on") or ()))),
            version=document.get("version") or 1,
            reason=execution.get(REASON_KEYS[status]) if status in REASON_KEYS else None,
            attempts=execution.get("attempts") or 0,
            criteria=len(context.get("acceptance") or ()),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Invalid(f"task {str(document.get('id'))[:80]!r} cannot be read: {error!r}") from error


def put_row(document: dict[str, Any], row: Row) -> dict[str, Any]:
    """A copy of the document with the status, version, reason and attempts of `row`."""
    execution = dict(document.get("execution") or {})
    for key in REASON_KEYS.values():
        execution.pop(key, None)
    if row.attempts or "attempts" in execution:
        execution["attempts"] = row.attempts
    if row.reason is not None and row.status in REASON_KEYS:
        execution[REASON_KEYS[row.status]] = row.reason
    changed = {**document, "status": row.status.value}
    if row.version != 1 or "version" in document:
        changed["version"] = row.version
    if execution:
        changed["execution"] = execution
    else:
        changed.pop("execution", None)
    return changed
