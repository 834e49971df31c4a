"""Reads tasks of Claude Code: one JSON object per task, or the todo list of TodoWrite."""

from collections.abc import Mapping, Sequence
from typing import Any

from detent.core.task.exchange.draft import Draft, checked, ids_at, make_draft, text_at
from detent.errors import Invalid


def read_tasks(decoded: object) -> tuple[Draft, ...]:
    """Read either form; the entries tell which it is."""
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
        for other in ids_at(each, "blockedBy", _id(each, at), problems):
            needs[_id(each, at)][other] = None
        for other in ids_at(each, "blocks", _id(each, at), problems):
            if other in needs:
                needs[other][_id(each, at)] = None
    drafts = tuple(_draft(each, _id(each, at), tuple(needs[_id(each, at)])) for at, each in enumerate(tasks, 1))
    return checked("Claude Code", drafts, problems)


def read_todo_list(decoded: object) -> tuple[Draft, ...]:
    """The todo list of TodoWrite: `{"todos": […]}` or the list in it. Items have no ids, so positions are used."""
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
        drafts.append(make_draft(str(at), each["content"], status=each.get("status"), priority=each.get("priority")))
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


def _draft(task: Mapping[str, Any], source_id: str, depends_on: tuple[str, ...]) -> Draft:
    wanted = (text_at(task, "description"),)
    return make_draft(source_id, task["subject"], status=task.get("status"), requirements=wanted, depends_on=depends_on)
