"""The readers of XML and JSON that all reports share.

A document type is refused before the parser sees an entity, so no entity is ever expanded.
"""

from collections.abc import Callable
from typing import TypeVar
from xml.parsers import expat

import msgspec

from detent.core.reports.limits import MAX_DEPTH, Unreadable, check_size

_Document = TypeVar("_Document")


def read_xml(data: bytes, start: Callable[[str, dict[str, str]], object], end: Callable[[str], object]) -> None:
    """Call `start` and `end` for every element. Raises `Unreadable`."""
    check_size(len(data))
    depth = 0

    def started(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"the report is deeper than {MAX_DEPTH}")
        start(tag, attributes)

    def ended(tag: str) -> None:
        nonlocal depth
        depth -= 1
        end(tag)

    parser = expat.ParserCreate()
    parser.StartElementHandler = started
    parser.EndElementHandler = ended
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(data, True)  # noqa: FBT003 - its signature
    except expat.ExpatError as error:
        raise Unreadable(f"the report is not valid XML: {error}") from error
    except ValueError as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable(f"the report is not valid XML: {error}") from error


def read_json(data: bytes, shape: type[_Document]) -> _Document:
    """The document, of which only the fields of `shape` are kept. Raises `Unreadable`."""
    check_size(len(data))
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise Unreadable(f"the report is not valid JSON of its kind: {error}") from error


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("the report declares a document type, which no tool writes")
