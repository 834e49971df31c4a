"""Edits JSON text and keeps every other byte: order, indentation, spelling of numbers.

A path of keys and positions names a place. If a key occurs twice the last one counts, as in every JSON parser.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from detent.errors import Invalid

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|(//|/\*)')
_DEFAULT_UNIT = "  "

Step = str | int


class _Child(NamedTuple):
    key: Step
    #: Start of the member: its key in an object, its value in a list.
    start: int
    value: int
    end: int


class _Container(NamedTuple):
    start: int
    children: list[_Child]
    #: Position of the closing bracket.
    close: int


def parse(text: str, name: str) -> dict[str, Any]:
    """The object in `text`; an error that names the place for anything else."""
    try:
        value = json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse_constant)
    except RecursionError as error:
        raise Invalid(f"{name} is nested too deeply to be edited") from error
    except ValueError as error:
        why = "it has comments" if _has_comments(text) else str(error)
        raise Invalid(
            f"{name} is not plain JSON: {why}", way_out=f"nothing was changed; make {name} plain JSON and retry"
        ) from error
    if not isinstance(value, dict):
        raise Invalid(f"{name} holds {type(value).__name__}, not an object", way_out="nothing was changed; correct it")
    return value


def insert(text: str, path: Sequence[Step], value: Any, *, key: str | None = None) -> str:
    """Append `value` to the list at `path`, or to the object there under `key`."""
    container = _find(text, path)
    label = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if container.children:
        last = container.children[-1]
        gap = text[_behind_delimiter(text, last.start) : last.start]
        if "\n" not in gap:
            added = ", " + label + json.dumps(value, ensure_ascii=False)
        else:
            indent = gap.rpartition("\n")[2]
            added = "," + _newline(text) + indent + label + _rendered(text, value, indent)
        return text[: last.end] + added + text[last.end :]
    unit = _unit(text)
    if unit is None:
        inside = label + json.dumps(value, ensure_ascii=False)
    else:
        outer = _line_indent(text, container.start)
        inside = _newline(text) + outer + unit + label + _rendered(text, value, outer + unit) + _newline(text) + outer
    return text[: container.start + 1] + inside + text[container.close :]


def remove(text: str, path: Sequence[Step]) -> str:
    """Remove the value at `path`. It undoes `insert` exactly unless the container was empty before."""
    *above, step = path
    container = _find(text, above)
    at = max(i for i, child in enumerate(container.children) if child.key == step)
    child = container.children[at]
    if len(container.children) == 1:
        return text[: container.start + 1] + text[container.close :]
    if at == 0:
        return text[: child.start] + text[container.children[1].start :]
    return text[: container.children[at - 1].end] + text[child.end :]


def _find(text: str, path: Sequence[Step]) -> _Container:
    container = _open(text, _skip(text, 1 if text.startswith("\ufeff") else 0))
    for step in path:
        child = [child for child in container.children if child.key == step][-1]
        container = _open(text, child.value)
    return container


def _open(text: str, start: int) -> _Container:
    children: list[_Child] = []
    at = _skip(text, start + 1)
    while text[at] not in "}]":
        first, key = at, len(children)
        if text[start] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        children.append(_Child(key, first, at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return _Container(start, children, at)


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    assert space is not None
    return space.end()


def _behind_delimiter(text: str, start: int) -> int:
    while text[start - 1] in " \t\n\r":
        start -= 1
    return start


def _unit(text: str) -> str | None:
    """One step of indentation; None if the text is on one line."""
    root = _find(text, ())
    if not root.children:
        return _DEFAULT_UNIT
    gap = text[root.start + 1 : root.children[0].start]
    return gap.rpartition("\n")[2] if "\n" in gap else None


def _rendered(text: str, value: Any, indent: str) -> str:
    unit = _unit(text)
    plain = json.dumps(value, ensure_ascii=False, indent=_DEFAULT_UNIT if unit is None else unit)
    return plain.replace("\n", _newline(text) + indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _has_comments(text: str) -> bool:
    return any(match.group(1) for match in _STRING_OR_COMMENT.finditer(text))


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
