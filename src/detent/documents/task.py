"""Task documents: `.task/IMPL-1.json`, with six keys of Detent and any others.

Each file has the journal version of its last write and a checksum of its content. So an edit is detected without a list
of all files, which would be rewritten at every change of 100,000 tasks.
"""

import hashlib
from typing import Any

import msgspec

from detent.core.task.id import read_id
from detent.core.task.plan import Plan
from detent.core.task.row import Row, put_row

FOLDER = ".task"
#: The key of the version and the checksum.
STAMP = "_detent"

_sorted = msgspec.json.Encoder(order="deterministic").encode


def name_of(session: str, stem: str) -> str:
    return f"{session}/{FOLDER}/{stem}.json"


def row_at(tasks: Plan, stem: str) -> Row | None:
    """The task whose file has this name."""
    own = read_id(stem)
    row = tasks.get(str(own)) if own is not None else None
    return row if row is not None and row.stem == stem else None


def render(document: dict[str, Any], row: Row, version: int) -> dict[str, Any]:
    """The document on disk, with the state of `row`."""
    body = put_row(plain(document), row)
    return {**body, STAMP: {"version": version, "sum": _sum(body)}}


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """The document without its stamp."""
    return {key: value for key, value in document.items() if key != STAMP}


def is_untouched(document: object) -> bool:
    """Whether the document is unchanged since Detent wrote it."""
    if not isinstance(document, dict) or not isinstance(document.get(STAMP), dict):
        return False
    return bool(document[STAMP].get("sum") == _sum(plain(document)))


def is_of(document: dict[str, Any], row: Row) -> bool:
    """Whether the document is unchanged, of this task, and not older than the last change of its content."""
    return is_untouched(document) and document.get("id") == row.stem and (written_at(document) or 0) >= row.written


def written_at(document: dict[str, Any]) -> int | None:
    """The journal version of the last write; None without a stamp."""
    stamp = document.get(STAMP)
    version = stamp.get("version") if isinstance(stamp, dict) else None
    return version if isinstance(version, int) else None


def _sum(body: dict[str, Any]) -> str:
    return hashlib.sha256(_sorted(body)).hexdigest()[:16]
