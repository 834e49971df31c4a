"""Reads and writes Markdown checklists: `- [ ]` and `- [x]`, nested by indentation, with or without numbers.

`**ID**:` or a number in front is the id of an item, `(depends on: 1, 2)` at the end its dependencies, and `(active)`,
`(blocked)` or `(failed)` its status. Other lines are ignored.
"""

import re
from collections.abc import Iterable

import msgspec

from detent.core.task.exchange.draft import Draft, checked
from detent.core.task.row import Row, TaskStatus
from detent.core.task.title import escaped, one_line, unescaped

_ITEM = re.compile(r"([ \t]*)(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[([ xX])\][ \t]+(\S.*)")
_HEADING = re.compile(r"#{1,6}[ \t]+(\S.*)")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")
_BOLD_ID = re.compile(r"\*\*([^*\s]+)\*\*:?[ \t]*(.*)")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)+\.?|[0-9]+[.):]|T[0-9]{3,}:?)[ \t]+(\S.*)")
_LINK = re.compile(r" [→|] \[[^\]\\]*\]\([^)\\]*\)$")
_DEPENDS = re.compile(r"(?<!\\)\((?:depends on|blocked by|needs|after):?[ \t]+([^()\\]*)\)$", re.IGNORECASE)
_STATUS = re.compile(r"(?<!\\)\((active|blocked|failed|container)\)$")
_TAB = 4
_MAX_LEVELS = 50


class _Item(msgspec.Struct):
    depth: int
    draft: Draft
    parts: list["_Item"] = []


def read_markdown(text: str, *, headings: bool = False) -> tuple[Draft, ...]:
    """Items without an id get their position: 1, 1.1, 2, … With `headings`, each one that has items contains them."""
    roots: list[_Item] = []
    path: list[_Item] = []
    in_fence = False
    for line in text.splitlines():
        if _FENCE.match(line):
            in_fence = not in_fence
        elif in_fence:
            continue
        elif (heading := _HEADING.fullmatch(line)) and headings:
            path = [_Item(-1, Draft(source_id="", title=_title(heading[1].rstrip("# \t"))))]
            roots.append(path[0])
        elif item := _ITEM.fullmatch(line):
            _attach(_item(item), path, roots)
    items = [item for item in roots if item.depth >= 0 or item.parts]
    used: set[str] = set()
    return checked("the checklist", tuple(_numbered(item, str(at), used) for at, item in enumerate(items, 1)), [])


def to_markdown(rows: Iterable[Row]) -> str:
    """The rows, which are in order of their numbers, as a checklist that `read_markdown` reads back."""
    known = list(rows)
    ids = {row.id for row in known}
    return "".join(f"{'  ' if row.parent in ids else ''}{_line(row)}\n" for row in known)


def _line(row: Row) -> str:
    title = escaped(row.title)
    box = "x" if row.status is TaskStatus.COMPLETED else " "
    status = "" if row.status in (TaskStatus.PENDING, TaskStatus.COMPLETED) else f" ({row.status})"
    depends = f" (depends on: {', '.join(row.depends_on)})" if row.depends_on else ""
    if title.endswith(")"):
        title = title.replace("(", "\\(")  # else the end of a title could be read as a status or a dependency
    return f"- [{box}] **{row.id}**: {title}{status}{depends}"


def _attach(item: _Item, path: list[_Item], roots: list[_Item]) -> None:
    """Put the item below the last item that is less indented, or whose number is a prefix of its own."""
    for other in path:
        if other.draft.source_id and item.draft.source_id.startswith(f"{other.draft.source_id}."):
            item.depth = max(item.depth, other.depth + 1)
    while path and (path[-1].depth >= item.depth or len(path) >= _MAX_LEVELS):
        path.pop()
    (path[-1].parts if path else roots).append(item)
    path.append(item)


def _item(match: re.Match[str]) -> _Item:
    indent, box, rest = match[1].replace("\t", " " * _TAB), match[2], one_line(match[3])
    while link := _LINK.search(rest):
        rest = rest[: link.start()].rstrip()
    depends: list[str] = []
    if named := _DEPENDS.search(rest):
        depends = [each.strip() for each in re.split(r"[,;]|\band\b", named[1]) if each.strip()]
        rest = rest[: named.start()].rstrip()
    status = TaskStatus.COMPLETED if box in "xX" else TaskStatus.PENDING
    if mark := _STATUS.search(rest):
        status = TaskStatus(mark[1])
        rest = rest[: mark.start()].rstrip()
    id_ = ""
    if labelled := _BOLD_ID.fullmatch(rest) or _NUMBER.fullmatch(rest):
        id_, rest = labelled[1].rstrip(".):"), labelled[2]
    return _Item(
        len(indent),
        Draft(
            source_id=id_, title=_title(rest), status=status, depends_on=tuple(each.strip("*`#") for each in depends)
        ),
    )


def _title(text: str) -> str:
    return one_line(unescaped(text))


def _numbered(item: _Item, position: str, used: set[str]) -> Draft:
    """The draft of an item; an item without a number, or with one that is used already, gets its position as id."""
    own = item.draft.source_id
    id_ = next(each for each in (own, position, f"#{position}") if each and each not in used)
    notes = (f"{own} is used twice; this is {id_}",) if own not in ("", id_) else ()
    used.add(id_)
    parts = tuple(_numbered(part, f"{position}.{at}", used) for at, part in enumerate(item.parts, 1))
    status = TaskStatus.CONTAINER if parts else item.draft.status
    return msgspec.structs.replace(item.draft, source_id=id_, subtasks=parts, status=status, notes=notes)
