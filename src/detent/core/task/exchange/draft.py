"""Drafts: tasks as another tool has them, before they get ids here; and what the readers of formats share."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from detent.core.task.row import TaskStatus
from detent.core.task.title import one_line
from detent.errors import Invalid


class Draft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: The id in the source, unique there; dependencies name these.
    source_id: str
    title: str
    status: TaskStatus = TaskStatus.PENDING
    description: str = ""
    requirements: tuple[str, ...] = ()
    acceptance: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    subtasks: tuple["Draft", ...] = ()
    priority: str | None = None
    files: tuple[str, ...] = ()
    agent: str | None = None
    #: The reason why it is blocked.
    reason: str | None = None
    #: Remarks on what could not be imported unchanged.
    notes: tuple[str, ...] = ()


#: Words that tools use for a status; blanks, dashes and case do not matter.
_STATUS_WORDS = {
    TaskStatus.PENDING: "pending todo open new backlog draft ready",
    TaskStatus.ACTIVE: "active inprogress doing started wip review inreview",
    TaskStatus.COMPLETED: "completed complete done closed finished",
    TaskStatus.BLOCKED: "blocked deferred cancelled canceled onhold paused wontdo wontfix",
    TaskStatus.FAILED: "failed",
    TaskStatus.CONTAINER: "container",
}
_BY_WORD = {word: status for status, words in _STATUS_WORDS.items() for word in words.split()}


def make_draft(source_id: str, title: str, *, status: object, priority: object = None, **fields: Any) -> Draft:
    """A draft from values as the source has them; texts in `fields` that are empty are left out of their tuples."""
    known, reason, notes = _status(status)
    given: dict[str, Any] = {
        key: tuple(filter(None, value)) if isinstance(value, tuple) else value for key, value in fields.items()
    }
    draft = Draft(source_id=source_id, title=one_line(title), status=known, reason=reason, notes=notes, **given)
    return msgspec.structs.replace(draft, priority=priority) if priority and isinstance(priority, str) else draft


def text_at(task: Mapping[str, Any], key: str) -> str:
    value = task.get(key)
    return value.strip() if isinstance(value, str) else ""


def ids_at(task: Mapping[str, Any], key: str, source_id: str, problems: list[str]) -> list[str]:
    """The ids in a list; anything else is a problem."""
    ids = task.get(key) or []
    if not isinstance(ids, list) or not all(isinstance(id_, str | int) for id_ in ids):
        problems.append(f"task {source_id}: {key} must be a list of ids")
        return []
    return [str(id_) for id_ in ids]


def _status(text: object) -> tuple[TaskStatus, str | None, tuple[str, ...]]:
    """The status that `text` means, the reason if it is blocked, and a note if the word is unknown."""
    word = "".join(character for character in str(text or "pending").casefold() if character.isalnum())
    status = _BY_WORD.get(word)
    if status is None:
        return TaskStatus.PENDING, None, (f"status {str(text)[:80]!r} is not known; it is pending here",)
    reason = f"{text} where it came from" if status is TaskStatus.BLOCKED and word != "blocked" else None
    return status, reason, ()


def walk(drafts: Iterable[Draft]) -> Iterator[Draft]:
    """Every draft, a task before its subtasks."""
    for draft in drafts:
        yield draft
        yield from walk(draft.subtasks)


def checked(source: str, drafts: tuple[Draft, ...], problems: list[str]) -> tuple[Draft, ...]:
    """The drafts; `Invalid` with every problem if there is one."""
    seen: set[str] = set()
    problems = [*problems]
    for draft in walk(drafts):
        if draft.source_id in seen:
            problems.append(f"{draft.source_id} is there twice")
        seen.add(draft.source_id)
        if not draft.title.strip():
            problems.append(f"{draft.source_id} has no title")
    if problems:
        raise Invalid(f"the tasks of {source} cannot be read", problems)
    return drafts
