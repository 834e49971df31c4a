"""Task documents: `.task/IMPL-1.json`, six keys and what else people put there.

Each file says at which journal version it was written, and has a sum over all the rest, so that an edit shows without
a list of what was written; with 100,000 tasks such a list would be rewritten for every change.
"""

import hashlib
from typing import Any

import msgspec

from detent.core.task.row import Row, put_row

FOLDER = ".task"
#: The key under which the file speaks of itself.
STAMP = "_detent"

_sorted = msgspec.json.Encoder(order="deterministic").encode


def name_of(session: str, task: str) -> str:
    return f"{session}/{FOLDER}/{task}.json"


def render(document: dict[str, Any], row: Row, version: int) -> dict[str, Any]:
    """The document as it stands on disk when the task stands as `row` says."""
    body = put_row(plain(document), row)
    return {**body, STAMP: {"version": version, "sum": _sum(body)}}


def plain(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what the file says of itself."""
    return {key: value for key, value in document.items() if key != STAMP}


def is_untouched(document: object) -> bool:
    """Whether the document is as Detent wrote it."""
    if not isinstance(document, dict) or not isinstance(document.get(STAMP), dict):
        return False
    return bool(document[STAMP].get("sum") == _sum(plain(document)))


def is_of(document: dict[str, Any], row: Row) -> bool:
    """Whether the document is Detent's own, of this task, and not older than the last change of what it asks for."""
    return is_untouched(document) and document.get("id") == row.id and (written_at(document) or 0) >= row.written


def written_at(document: dict[str, Any]) -> int | None:
    """The journal version at which the file was written, if it says one."""
    stamp = document.get(STAMP)
    version = stamp.get("version") if isinstance(stamp, dict) else None
    return version if isinstance(version, int) else None


def _sum(body: dict[str, Any]) -> str:
    return hashlib.sha256(_sorted(body)).hexdigest()[:16]
