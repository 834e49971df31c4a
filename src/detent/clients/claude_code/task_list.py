"""Tasks of Claude Code: one JSON object per task, or the list that TodoWrite gets."""

from collections.abc import Mapping, Sequence
from typing import Any

from detent.core.task.exchange.draft import Draft, checked, status_of
from detent.core.task.title import one_line
from detent.errors import Invalid


def read_tasks(decoded: object) -> tuple[Draft, ...]:
    """Either form: the entries tell which."""
    entries = decoded.get("todos", decoded) if isinstance(decoded, dict) else decoded
    first = entries[0] if isinstance(entries, list) and entries else None
    is_todo_list = isinstance(first, dict) and "content" in first and "subject" not in first
    return read_todo_list(decoded) if is_todo_list else read_claude_tasks(decoded)


def read_claude_tasks(decoded: object) -> tuple[Draft, ...]:
    """A list of task objects in the order of their files, one alone, or `{"tasks": […]}`."""
    entries = _entries(decoded, "tasks")
    problems = [
        f"task {at}: it must be an object with a subject" for at, each in enumerate(entries, 1) if not _is_task(each)
    ]
    tasks = [each for each in entries if _is_task(each) and each.get("status") != "deleted"]
    needs: dict[str, dict[str, None]] = {_id(each, at): {} for at, each in enumerate(tasks, 1)}
    for at, each in enumerate(tasks, 1):
        for other in _ids(each, "blockedBy", problems):
            needs[_id(each, at)][other] = None
        for other in _ids(each, "blocks", problems):
            if other in needs:
                needs[other][_id(each, at)] = None
    drafts = tuple(_draft(each, _id(each, at), tuple(needs[_id(each, at)])) for at, each in enumerate(tasks, 1))
    return checked("Claude Code", drafts, problems)


def read_todo_list(decoded: object) -> tuple[Draft, ...]:
    """What TodoWrite gets: `{"todos": […]}` or the list in it. Items have no ids, so their positions are used."""
    entries = _entries(decoded, "todos")
    problems = [
        f"todo {at}: it must be an object with content"
        for at, each in enumerate(entries, 1)
        if not isinstance(each, dict) or not isinstance(each.get("content"), str)
    ]
    if problems:
        raise Invalid("the todo list cannot be read", problems)
    drafts = []
    for at, each in enumerate(entries, 1):
        status, reason, notes = status_of(each.get("status"))
        title, priority = one_line(each["content"]), each.get("priority")
        drafts.append(
            Draft(
                source_id=str(at),
                title=title,
                status=status,
                reason=reason,
                notes=notes,
                priority=priority if isinstance(priority, str) else None,
            )
        )
    return checked("the todo list", tuple(drafts), [])


def _entries(decoded: object, key: str) -> Sequence[Any]:
    if isinstance(decoded, dict):
        decoded = decoded.get(key, [decoded])
    if not isinstance(decoded, list | tuple):
        raise Invalid(f"a list of tasks is needed, or an object with {key}")
    return decoded


def _is_task(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("subject"), str)


def _id(task: Mapping[str, Any], at: int) -> str:
    return str(task.get("id") or at)


def _ids(task: Mapping[str, Any], key: str, problems: list[str]) -> list[str]:
    named = task.get(key) or []
    if not isinstance(named, list) or not all(isinstance(each, str | int) for each in named):
        problems.append(f"task {task.get('id')}: {key} must be a list of ids")
        return []
    return [str(each) for each in named]


def _draft(task: Mapping[str, Any], source_id: str, depends_on: tuple[str, ...]) -> Draft:
    status, reason, notes = status_of(task.get("status"))
    description = task.get("description")
    wanted = (description.strip(),) if isinstance(description, str) and description.strip() else ()
    return Draft(
        source_id=source_id,
        title=one_line(task["subject"]),
        status=status,
        reason=reason,
        notes=notes,
        requirements=wanted,
        depends_on=depends_on,
    )
