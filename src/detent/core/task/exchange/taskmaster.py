"""`tasks.json` of task-master: `{"tasks": […]}`, or one such object per tag."""

from collections.abc import Mapping
from typing import Any

from detent.core.task.exchange.draft import Draft, checked, status_of
from detent.core.task.title import one_line
from detent.errors import Invalid, NotFound


def read_taskmaster(decoded: object, *, tag: str | None = None) -> tuple[Draft, ...]:
    """The tasks of `tag`; without one, of `master` or of the only tag there is."""
    problems: list[str] = []
    drafts = []
    for at, task in enumerate(_tasks(decoded, tag), 1):
        if isinstance(task, dict):
            drafts.append(_draft(task, str(task.get("id", at)), problems))
        else:
            problems.append(f"task {at} must be an object")
    return checked("task-master", tuple(drafts), problems)


def _tasks(decoded: object, tag: str | None) -> list[Any]:
    if not isinstance(decoded, dict):
        raise Invalid("tasks.json must be an object")
    if isinstance(decoded.get("tasks"), list) and tag is None:
        return list(decoded["tasks"])
    tags = {name: each["tasks"] for name, each in decoded.items() if _is_list(each)}
    if tag is not None and tag not in tags:
        raise NotFound(f"tasks.json has no tag {tag!r}; it has {', '.join(tags) or 'none'}")
    chosen = tag or ("master" if "master" in tags else next(iter(tags), None) if len(tags) == 1 else None)
    if chosen is None:
        raise Invalid(
            f"tasks.json has no tag master; name one of {', '.join(tags)}" if tags else "tasks.json has no tasks"
        )
    return list(tags[chosen])


def _is_list(entry: object) -> bool:
    return isinstance(entry, dict) and isinstance(entry.get("tasks"), list)


def _draft(
    task: Mapping[str, Any], source_id: str, problems: list[str], siblings: frozenset[str] = frozenset()
) -> Draft:
    title = task.get("title")
    if not isinstance(title, str):
        problems.append(f"task {source_id} needs a title")
        title = source_id
    status, reason, notes = status_of(task.get("status"))
    parts = task.get("subtasks") or []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        problems.append(f"task {source_id}: subtasks must be a list of objects")
        parts = []
    own = frozenset(str(part.get("id", at)) for at, part in enumerate(parts, 1))
    priority = task.get("priority")
    return Draft(
        source_id=source_id,
        title=one_line(title),
        status=status,
        reason=reason,
        notes=notes,
        description=_text(task, "details"),
        requirements=tuple(text for text in (_text(task, "description"),) if text),
        acceptance=tuple(text for text in (_text(task, "testStrategy"),) if text),
        depends_on=_dependencies(task, source_id, problems, siblings),
        subtasks=tuple(
            _draft(part, f"{source_id}.{part.get('id', at)}", problems, own) for at, part in enumerate(parts, 1)
        ),
        priority=priority if isinstance(priority, str) else None,
    )


def _dependencies(
    task: Mapping[str, Any], source_id: str, problems: list[str], siblings: frozenset[str]
) -> tuple[str, ...]:
    """In a subtask, a plain number is first of all the number of one of its siblings."""
    named = task.get("dependencies") or []
    if not isinstance(named, list) or not all(isinstance(each, str | int) for each in named):
        problems.append(f"task {source_id}: dependencies must be a list of ids")
        return ()
    parent = source_id.rpartition(".")[0]
    return tuple(f"{parent}.{each}" if str(each) in siblings else str(each) for each in named)


def _text(task: Mapping[str, Any], key: str) -> str:
    value = task.get(key)
    return value.strip() if isinstance(value, str) else ""
