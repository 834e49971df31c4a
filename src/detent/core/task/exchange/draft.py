"""A task as another tool has it, before it gets an id of its own."""

from collections.abc import Iterable, Iterator

import msgspec

from detent.core.task.row import TaskStatus
from detent.errors import Invalid


class Draft(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    #: The id that the source gives it, unique there; dependencies name these.
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
    #: Why it is blocked.
    reason: str | None = None
    #: What could not be taken over as it was.
    notes: tuple[str, ...] = ()


#: Words for where a task stands, by the way tools write them; blanks, dashes and case do not matter.
_STATUS_WORDS = {
    TaskStatus.PENDING: "pending todo open new backlog draft ready",
    TaskStatus.ACTIVE: "active inprogress doing started wip review inreview",
    TaskStatus.COMPLETED: "completed complete done closed finished",
    TaskStatus.BLOCKED: "blocked deferred cancelled canceled onhold paused wontdo wontfix",
    TaskStatus.FAILED: "failed",
    TaskStatus.CONTAINER: "container",
}
_BY_WORD = {word: status for status, words in _STATUS_WORDS.items() for word in words.split()}


def status_of(text: object) -> tuple[TaskStatus, str | None, tuple[str, ...]]:
    """The status that `text` means, the reason if it is blocked, and a note if nobody knows what it means."""
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
    """The drafts, if nothing is wrong with them; else everything that is."""
    seen: set[str] = set()
    found = [*problems]
    for draft in walk(drafts):
        if draft.source_id in seen:
            found.append(f"{draft.source_id} is there twice")
        seen.add(draft.source_id)
        if not draft.title.strip():
            found.append(f"{draft.source_id} has no title")
    if found:
        raise Invalid(f"the tasks of {source} cannot be read", found)
    return drafts
