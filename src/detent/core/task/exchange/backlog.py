"""Task files of Backlog.md: Markdown with keys in front and sections behind."""

import re
from collections.abc import Mapping

import msgspec

from detent.core.task.exchange.draft import Draft, checked, status_of
from detent.core.task.exchange.front_matter import Value, split_front_matter
from detent.core.task.title import one_line
from detent.errors import Invalid

_MAX_LEVELS = 50
_SECTION = re.compile(r"##[ \t]+(\S.*)")
_CRITERION = re.compile(r"[ \t]*[-*][ \t]+\[[ xX]\][ \t]+(?:#[0-9]+[ \t]+)?(\S.*)")


def read_backlog(files: Mapping[str, str]) -> tuple[Draft, ...]:
    """File name to its text. Tasks are nested by `parent_task_id`, or by the dots in their ids."""
    problems: list[str] = []
    drafts: dict[str, Draft] = {}
    parents: dict[str, str] = {}
    for name, text in files.items():
        try:
            keys, body = split_front_matter(text)
            draft = _draft(keys, body)
        except Invalid as error:
            problems.append(f"{name}: {error}")
            continue
        key = _key(draft.source_id)
        if key in drafts:
            problems.append(f"{name}: {draft.source_id} is there twice")
        drafts[key] = draft
        parents[key] = _key(_one(keys, "parent_task_id")) or key.rpartition(".")[0]
    drafts = {key: _with_known_names(draft, drafts) for key, draft in drafts.items()}
    return checked("Backlog.md", _nested(drafts, parents, problems), problems)


def _draft(keys: Mapping[str, Value], body: str) -> Draft:
    id_, title = _one(keys, "id"), one_line(_one(keys, "title"))
    if not id_ or not title:
        raise Invalid("id and title are needed in front")
    status, reason, notes = status_of(_one(keys, "status"))
    sections = _sections(body)
    description = sections.get("description", "")
    criteria = [_CRITERION.fullmatch(line) for line in sections.get("acceptance criteria", "").splitlines()]
    return Draft(
        source_id=id_,
        title=title,
        status=status,
        reason=reason,
        notes=notes,
        description=sections.get("implementation plan", ""),
        requirements=(description,) if description else (),
        acceptance=tuple(one_line(found[1]) for found in criteria if found),
        depends_on=tuple(_many(keys, "dependencies")),
        priority=_one(keys, "priority") or None,
        files=tuple(_many(keys, "modified_files")),
    )


def _sections(body: str) -> dict[str, str]:
    """Heading, in lower case and without what stands in parentheses, to the text below it."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body.splitlines():
        if line.lstrip().startswith("<!--") and line.rstrip().endswith("-->"):
            continue
        if heading := _SECTION.fullmatch(line.rstrip()):
            current = found.setdefault(heading[1].partition("(")[0].strip().lower(), [])
        else:
            current.append(line)
    return {heading: "\n".join(lines).strip() for heading, lines in found.items()}


def _with_known_names(draft: Draft, drafts: Mapping[str, Draft]) -> Draft:
    """Dependencies by the ids that the files have: prefixes and zeros differ between versions of the tool."""
    named = (drafts.get(_key(other)) for other in draft.depends_on)
    known = [found.source_id if found else other for found, other in zip(named, draft.depends_on, strict=True)]
    return msgspec.structs.replace(draft, depends_on=tuple(dict.fromkeys(known)))


def _nested(drafts: Mapping[str, Draft], parents: Mapping[str, str], problems: list[str]) -> tuple[Draft, ...]:
    parts: dict[str, list[str]] = {}
    for key in drafts:
        parts.setdefault(parents[key] if parents[key] in drafts else "", []).append(key)
    placed: set[str] = set()

    def nested(key: str, level: int) -> Draft:
        placed.add(key)
        below = sorted(parts.get(key, ()), key=_numbers) if level < _MAX_LEVELS else ()
        return msgspec.structs.replace(drafts[key], subtasks=tuple(nested(part, level + 1) for part in below))

    roots = tuple(nested(key, 1) for key in sorted(parts.get("", ()), key=_numbers))
    problems += [
        f"{drafts[key].source_id} is a part of itself, or more than {_MAX_LEVELS} levels down"
        for key in drafts
        if key not in placed
    ]
    return roots


def _key(id_: str) -> str:
    """`8.7` of `TASK-8.7`, `task-008.07` and `BACK-8.7`."""
    number = id_.strip().rpartition("-")[2]
    return ".".join(part.lstrip("0") or "0" for part in number.lower().split(".")) if number else ""


def _numbers(key: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part), "") if part.isascii() and part.isdigit() else (0, part) for part in key.split("."))


def _one(keys: Mapping[str, Value], name: str) -> str:
    value = keys.get(name, "")
    return value if isinstance(value, str) else ", ".join(value)


def _many(keys: Mapping[str, Value], name: str) -> list[str]:
    value = keys.get(name, [])
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value
