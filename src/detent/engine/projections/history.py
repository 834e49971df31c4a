"""`history.jsonl`: one line for each ended session, rebuildable from the journals."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from typing import Any

import msgspec

from detent.core.session.session import Session
from detent.documents.state import history_entry
from detent.engine.projections.publish import UNREADABLE
from detent.errors import Corrupt
from detent.store.port import Store

NAME = "history.jsonl"
#: Number and total size of the entries that the state document repeats; the file has all.
MAX_REPEATED, MAX_REPEATED_BYTES = 50, 256 * 1024


def read_history(store: Store) -> list[dict[str, Any]]:
    """All entries, oldest first; `Corrupt` if a line cannot be read."""
    return [_entry(line, number) for number, line in _lines(store)]


def readable_history(store: Store) -> list[dict[str, Any]]:
    """All entries that can be read, oldest first."""
    return list(_readable(store))


def recent_history(store: Store) -> list[dict[str, Any]]:
    """The entries that the state document repeats: the last one, and earlier ones up to the limits."""
    lines = [line for _, line in _lines(store)[-MAX_REPEATED:]]
    sizes = accumulate(map(len, reversed(lines)))
    count = max(1, sum(size <= MAX_REPEATED_BYTES for size in sizes))
    return list(_decoded(lines[-count:]))


def _lines(store: Store) -> list[tuple[int, bytes]]:
    numbered = enumerate((store.get(NAME) or b"").splitlines(), 1)
    return [(number, line) for number, line in numbered if line.strip()]


def _entry(line: bytes, number: int) -> dict[str, Any]:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except UNREADABLE as error:
        raise Corrupt(
            f"line {number} of {NAME} cannot be read: {error}", way_out="detent doctor --fix rebuilds it"
        ) from error


def record(store: Store, session: Session) -> bool:
    """Add the line of an ended session, or replace an incomplete one. The caller holds PROJECT.

    False if the line exists already.
    """
    lines = (store.get(NAME) or b"").splitlines()
    line = msgspec.json.encode(history_entry(session))
    mark = msgspec.json.encode({"session_id": session.id})[1:-1]
    kept = [existing for existing in lines if mark not in existing]
    if len(kept) + 1 == len(lines) and line in lines:
        return False
    store.put(NAME, b"\n".join((*kept, line, b"")))
    return True


def withdraw(store: Store, session: str) -> bool:
    """Remove the line of a session that was reopened; False if there is none. The caller holds PROJECT."""
    lines = (store.get(NAME) or b"").splitlines()
    mark = msgspec.json.encode({"session_id": session})[1:-1]
    kept = [line for line in lines if mark not in line]
    if len(kept) == len(lines):
        return False
    store.put(NAME, b"\n".join((*kept, b"")))
    return True


def rebuild(store: Store, ended: list[Session], reopened: frozenset[str] = frozenset()) -> None:
    """Write the whole file, in the order in which the sessions ended. The caller holds PROJECT.

    The lines of sessions whose journals are gone are kept.
    """
    entries = {entry["session_id"]: entry for entry in _readable(store) if isinstance(entry.get("session_id"), str)}
    entries = {name: entry for name, entry in entries.items() if name not in reopened}
    entries |= {session.id: history_entry(session) for session in ended}
    store.put(NAME, b"".join(msgspec.json.encode(entry) + b"\n" for entry in _ordered(entries.values())))


def with_ended(entries: list[dict[str, Any]], sessions: Iterable[Session]) -> list[dict[str, Any]]:
    """The entries and those of the sessions that have ended, oldest first."""
    ended = [history_entry(session) for session in sessions if session.has_ended]
    return _ordered([*entries, *ended])


def _ordered(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry.get("completed_at") or entry.get("cancelled_at")))


def _readable(store: Store) -> Iterator[dict[str, Any]]:
    yield from _decoded((store.get(NAME) or b"").splitlines())


def _decoded(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """The file is rebuilt from the journals: a line that cannot be read stops nothing, and the doctor names it."""
    for line in lines:
        with suppress(*UNREADABLE):
            yield msgspec.json.decode(line, type=dict[str, Any])
