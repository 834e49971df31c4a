"""Versions of one index: the newest holds it, and every older one knows how to get it back.

An older version that is asked undoes the changes in between, and the newer ones can then redo them. So each stays what
it was, going on with the newest is cheap, and going back and forth costs the distance.
"""

from collections.abc import Iterator

from detent.core.task.index import Index
from detent.core.task.row import Row


class Version:
    """Either holds the index, or says which change of the version `towards` it leads back to this one."""

    __slots__ = ("_held", "raw", "towards", "undo")

    def __init__(self, source: Index | list[Row]) -> None:
        """From an index, or from rows: then it is built when it is first asked for."""
        self.raw = source if isinstance(source, list) else None
        self._held = source if isinstance(source, Index) else None
        self.towards: Version | None = None
        self.undo: tuple[str, Row | None] = ("", None)

    @property
    def index(self) -> Index:
        """As it is in this version."""
        if self.raw is not None:
            self._held, self.raw = Index(self.raw), None
        return self._held or self._taken_back()

    def changed(self, id: str, row: Row | None) -> "Version":  # noqa: A002
        """The next version, in which `id` has another row, or none."""
        index = self.index
        newer, before = Version(index), index.rows.get(id)
        _put(index, id, row)
        self.release(newer, (id, before))
        return newer

    def hold(self, index: Index) -> None:
        self._held, self.towards = index, None

    def release(self, towards: "Version", undo: tuple[str, Row | None]) -> None:
        self._held, self.towards, self.undo = None, towards, undo

    def _taken_back(self) -> Index:
        line = list(_line(self))
        index = line[-1].index
        while len(line) > 1:
            holder = line.pop()
            id_, row = line[-1].undo
            now = index.rows.get(id_)
            _put(index, id_, row)
            holder.release(line[-1], (id_, now))
            line[-1].hold(index)
        return index


def _line(version: Version) -> Iterator[Version]:
    """From `version` to the one that holds the index."""
    at: Version | None = version
    while at is not None:
        yield at
        at = at.towards


def _put(index: Index, id: str, row: Row | None) -> None:  # noqa: A002
    if row is None:
        index.remove(id)
    else:
        index.put(row)
