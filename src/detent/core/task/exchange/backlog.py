"""Reads task files of Backlog.md: front matter, then Markdown sections."""

import re
from collections.abc import Mapping

import msgspec

from detent.core.task.exchange.draft import Draft, checked, make_draft
from detent.core.task.exchange.front_matter import Value, split_front_matter
from detent.core.task.title import one_line
from detent.errors import Invalid

_MAX_LEVELS = 50
_SECTION = re.compile(r"##[ \t]+(\S.*)")
_CRITERION = re.compile(r"[ \t]*[-*][ \t]+\[[ xX]\][ \t]+(?:#[0-9]+[ \t]+)?(\S.*)")


def read_backlog(files: Mapping[str, str]) -> tuple[Draft, ...]:
    """Reads texts by file name. Tasks are nested by `parent_task_id`, or by the dots in their ids."""
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
        parents[key] = _key(_text(keys, "parent_task_id")) or key.rpartition(".")[0]
    drafts = {key: _with_known_names(draft, drafts) for key, draft in drafts.items()}
    return checked("Backlog.md", _nested(drafts, parents, problems), problems)


def _draft(keys: Mapping[str, Value], body: str) -> Draft:
    id_, title = _text(keys, "id"), one_line(_text(keys, "title"))
    if not id_ or not title:
        raise Invalid("id and title are needed in front")
    sections = _sections(body)
    criteria = [_CRITERION.fullmatch(line) for line in sections.get("acceptance criteria", "").splitlines()]
    return make_draft(
        id_,
        title,
        status=_text(keys, "status"),
        priority=_text(keys, "priority"),
        description=sections.get("implementation plan", ""),
        requirements=(sections.get("description", ""),),
        acceptance=tuple(one_line(match[1]) for match in criteria if match),
        depends_on=tuple(_texts(keys, "dependencies")),
        files=tuple(_texts(keys, "modified_files")),
    )


def _sections(body: str) -> dict[str, str]:
    """The text below each heading, by the heading in lower case without parentheses."""
    sections: dict[str, list[str]] = {}
    current: list[str] = []
    for line in body.splitlines():
        if line.lstrip().startswith("<!--") and line.rstrip().endswith("-->"):
            continue
        if heading := _SECTION.fullmatch(line.rstrip()):
            current = sections.setdefault(heading[1].partition("(")[0].strip().lower(), [])
        else:
            current.append(line)
    return {heading: "\n".join(lines).strip() for heading, lines in sections.items()}


def _with_known_names(draft: Draft, drafts: Mapping[str, Draft]) -> Draft:
    """The draft with dependencies spelled as the files do; versions of the tool differ in prefixes and zeros."""
    named = (drafts.get(_key(other)) for other in draft.depends_on)
    known = [match.source_id if match else other for match, other in zip(named, draft.depends_on, strict=True)]
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


def _text(keys: Mapping[str, Value], name: str) -> str:
    value = keys.get(name, "")
    return value if isinstance(value, str) else ", ".join(value)


def _texts(keys: Mapping[str, Value], name: str) -> list[str]:
    value = keys.get(name, [])
    return [each.strip() for each in value.split(",") if each.strip()] if isinstance(value, str) else value
