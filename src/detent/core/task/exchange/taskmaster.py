"""Reads `tasks.json` of task-master: `{"tasks": […]}`, or one such object per tag."""

from collections.abc import Mapping
from typing import Any

from detent.core.task.exchange.draft import Draft, checked, ids_at, make_draft, text_at
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
    parts = task.get("subtasks") or []
    if not isinstance(parts, list) or not all(isinstance(part, dict) for part in parts):
        problems.append(f"task {source_id}: subtasks must be a list of objects")
        parts = []
    own = frozenset(str(part.get("id", at)) for at, part in enumerate(parts, 1))
    # In a subtask, a plain number is first of all the number of a sibling.
    parent, named = source_id.rpartition(".")[0], ids_at(task, "dependencies", source_id, problems)
    return make_draft(
        source_id,
        title,
        status=task.get("status"),
        priority=task.get("priority"),
        description=text_at(task, "details"),
        requirements=(text_at(task, "description"),),
        acceptance=(text_at(task, "testStrategy"),),
        depends_on=tuple(f"{parent}.{id_}" if id_ in siblings else id_ for id_ in named),
        subtasks=tuple(
            _draft(part, f"{source_id}.{part.get('id', at)}", problems, own) for at, part in enumerate(parts, 1)
        ),
    )
