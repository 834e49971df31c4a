"""The progress of writing a session's task files. Light to load, for verbs that only look."""

import msgspec

from detent.core.task.row import Row
from detent.documents import PUBLISHED_TASKS
from detent.engine.projections.publish import UNREADABLE
from detent.store.port import START, Cursor, Store

#: With more tasks than this, only `adopt` and `doctor` look at every file.
MAX_WATCHED = 5_000


class Progress(msgspec.Struct, frozen=True, array_like=True):
    """The journal position of the files, and facts of that moment."""

    written_by: str = ""
    cursor: Cursor = START
    #: The store's mark of the last look at the files, and the files that were edited then.
    mark: int = 0
    suspects: list[str] = []
    count: int = 0
    next: Row | None = None


_decode = msgspec.json.Decoder(Progress).decode


def read_progress(store: Store, session: str) -> Progress:
    """The progress of the files. It is a cache: without it all files are written again."""
    data = store.get(f"{session}/{PUBLISHED_TASKS}")
    try:
        return _decode(data) if data else Progress()
    except UNREADABLE:
        return Progress()
