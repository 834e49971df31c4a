"""The plan: all tasks of a session as one value that answers what is ready, what comes next and what waits for what.

A change returns a new plan and costs what depends on the changed task, not what the session holds: the plans of one
line share an index. An older plan keeps its value, but asking it makes the newer ones pay the way back. The plans of
one line share a lock, so threads may ask and change them at the same time.
"""

from _thread import RLock
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import TracebackType

from detent.core.task.id import parent_of, sort_key
from detent.core.task.index import Index
from detent.core.task.row import Row, TaskStatus
from detent.errors import NotFound


class Plan:
    __slots__ = ("_version",)

    def __init__(self, rows: "Iterable[Row] | _Version" = ()) -> None:
        """From rows; of two with the same id the last counts. The index is built on first use."""
        self._version = rows if isinstance(rows, _Version) else _Version(list(rows), RLock())

    def with_row(self, row: Row) -> "Plan":
        """The plan with one task added or changed."""
        return self._changed(row.id, row)

    def without(self, id: str) -> "Plan":  # noqa: A002
        self[id]
        return self._changed(id, None)

    def __getitem__(self, id: str) -> Row:  # noqa: A002
        row = self.get(id)
        if row is None:
            raise NotFound(f"there is no task {id}")
        return row

    def get(self, id: str) -> Row | None:  # noqa: A002
        with self._version as index:
            return index.rows.get(id)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        with self._version as index:
            return id in index.rows

    def __len__(self) -> int:
        raw = self._version.raw
        if raw is not None and is_sorted(raw):
            return len(raw)
        with self._version as index:
            return len(index.rows)

    def __iter__(self) -> Iterator[Row]:
        """Rows by number."""
        raw = self._version.raw
        if raw is not None and is_sorted(raw):
            return iter(raw)
        with self._version as index:
            return iter([index.rows[id_] for id_ in _sorted_ids(index)])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Plan):
            return NotImplemented
        return self is other or list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Plan({len(self)} tasks)"

    @property
    def ids(self) -> tuple[str, ...]:
        """By number: IMPL-2, IMPL-2.1, IMPL-10."""
        with self._version as index:
            return tuple(_sorted_ids(index))

    @property
    def leaves(self) -> tuple[str, ...]:
        """Tasks without parts, by number."""
        with self._version as index:
            return tuple(id_ for id_ in _sorted_ids(index) if index.is_leaf(id_))

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """The number of leaves of each status."""
        with self._version as index:
            return dict(index.leaf_counts)

    @property
    def leaf_count(self) -> int:
        return sum(self.counts.values())

    @property
    def done_text(self) -> str:
        """Says that all of them are done."""
        return "the only task is done" if self.leaf_count == 1 else f"all {self.leaf_count} tasks are done"

    @property
    def is_completed(self) -> bool:
        """Whether the plan has leaves and all of them are completed."""
        counts = self.counts
        return 0 < counts[TaskStatus.COMPLETED] == sum(counts.values())

    @property
    def has_subtasks(self) -> bool:
        with self._version as index:
            return bool(index.children)

    def with_status(self, status: TaskStatus) -> tuple[str, ...]:
        """The tasks of this status, by number."""
        with self._version as index:
            return _by_number(index.by_status[status])

    def is_leaf(self, id: str) -> bool:  # noqa: A002
        self[id]
        with self._version as index:
            return index.is_leaf(id)

    def is_done(self, id: str) -> bool:  # noqa: A002
        """Whether dependants of `id` may start. A missing task is not done."""
        with self._version as index:
            return index.is_done(id)

    def children(self, id: str) -> tuple[str, ...]:  # noqa: A002
        with self._version as index:
            return _by_number(index.children.get(id, ()))

    def dependants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """The tasks that name `id` in `depends_on`."""
        with self._version as index:
            return _by_number(index.dependants.get(id, ()))

    def descendants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """Every task that waits for `id`, directly or not, by number."""
        reached, pending = {id}, [id]
        with self._version as index:
            while pending:
                behind = set(_behind(index, pending.pop())) - reached
                reached |= behind
                pending += behind
        return _by_number(reached - {id})

    def derived_state(self, id: str) -> TaskStatus:  # noqa: A002
        """The status of a container, computed from its parts; a leaf has its own."""
        self[id]
        with self._version as index:
            return index.derived_state(id)

    @property
    def ready(self) -> tuple[str, ...]:
        """Tasks that can be started now, in execution order."""
        with self._version as index:
            index.rank()
            return tuple(sorted(index.ready, key=index.ranks.place.__getitem__))

    @property
    def ready_count(self) -> int:
        with self._version as index:
            return len(index.ready)

    def is_ready(self, id: str) -> bool:  # noqa: A002
        with self._version as index:
            return id in index.ready

    def next_ready(self) -> str | None:
        """The first ready task in execution order."""
        with self._version as index:
            return index.first_ready()

    def waiting_for(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """The tasks that must be completed before `id` can start; missing tasks included."""
        self[id]
        with self._version as index:
            return tuple(index.unmet(id))

    @property
    def waiting(self) -> dict[str, tuple[str, ...]]:
        """Every pending leaf that is not ready, with the tasks that it waits for, by number."""
        with self._version as index:
            pending = index.by_status[TaskStatus.PENDING]
            waits = (id_ for id_ in pending if id_ not in index.ready and index.is_leaf(id_))
            return {id_: tuple(index.unmet(id_)) for id_ in sorted(waits, key=sort_key)}

    @property
    def order(self) -> tuple[str, ...]:
        """The leaves of every status in execution order, without those on or behind a cycle."""
        with self._version as index:
            index.rank()
            if index.order is None:
                known = (id_ for id_ in index.rows if id_ not in index.ranks.stuck and index.is_leaf(id_))
                index.order = tuple(sorted(known, key=index.ranks.place.__getitem__))
            return index.order

    @property
    def unordered(self) -> tuple[str, ...]:
        """Tasks on a cycle of dependencies, or behind one."""
        with self._version as index:
            index.rank()
            return _by_number(index.ranks.stuck)

    def cycle_through(self, ids: Iterable[str]) -> tuple[str, ...]:
        """A cycle through one of the tasks or its parts, in the direction of waiting; empty if there is none.

        Follows dependants only, so a task without dependants costs nothing.
        """
        with self._version as index:
            starts = [part for id_ in ids for part in (id_, *index.children.get(id_, ()))]
            return _cycle(index, starts)

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """Tasks that depend on ids that no task has."""
        missing: dict[str, list[str]] = {}
        with self._version as index:
            for other in index.dependants.keys() - index.rows.keys():
                for id_ in index.dependants[other]:
                    missing.setdefault(id_, []).append(other)
        return {id_: _by_number(missing[id_]) for id_ in sorted(missing, key=sort_key)}

    def _changed(self, id: str, row: Row | None) -> "Plan":  # noqa: A002
        with self._version as index:
            return self if index.rows.get(id) == row else Plan(self._version.changed(index, id, row))


class _Version:
    """A version of the plan. Either it holds the index, or `undo` is the change that leads back to it from `towards`.

    Asking an older version undoes the changes in between, and the newer versions can then redo them. So every version
    keeps its value, continuing with the newest is cheap, and going back costs the distance. `with` gives the index in
    the state of this version, and holds the lock that all versions of the line share until the block ends.
    """

    __slots__ = ("_lock", "held", "raw", "towards", "undo")

    def __init__(self, source: Index | list[Row], lock: RLock) -> None:
        """From an index, or from rows, of which the index is built on first use."""
        self.raw = source if isinstance(source, list) else None
        self.held = source if isinstance(source, Index) else None
        self._lock = lock
        self.towards: _Version | None = None
        self.undo: tuple[str, Row | None] = ("", None)

    def __enter__(self) -> Index:
        self._lock.acquire()
        try:
            return self.held or self._move_here()
        except BaseException:
            self._lock.release()
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._lock.release()

    def changed(self, index: Index, id: str, row: Row | None) -> "_Version":  # noqa: A002
        """The next version, in which `id` has another row, or no row. The caller holds the lock."""
        newer, before = _Version(index, self._lock), index.rows.get(id)
        _put(index, id, row)
        self.release(newer, (id, before))
        return newer

    def hold(self, index: Index) -> None:
        self.held, self.towards = index, None

    def release(self, towards: "_Version", undo: tuple[str, Row | None]) -> None:
        self.held, self.towards, self.undo = None, towards, undo

    def _move_here(self) -> Index:
        if self.raw is not None:
            self.held, self.raw = Index(self.raw), None
            return self.held
        line = list(_line(self))
        index = line[-1].held
        assert index is not None, "the last version of a line holds the index"
        while len(line) > 1:
            holder = line.pop()
            id_, row = line[-1].undo
            now = index.rows.get(id_)
            _put(index, id_, row)
            holder.release(line[-1], (id_, now))
            line[-1].hold(index)
        return index


def _line(version: _Version) -> Iterator[_Version]:
    """From `version` to the one that holds the index."""
    at: _Version | None = version
    while at is not None:
        yield at
        at = at.towards


def _put(index: Index, id: str, row: Row | None) -> None:  # noqa: A002
    if row is None:
        index.remove(id)
    else:
        index.put(row)


def is_sorted(rows: list[Row]) -> bool:
    """Whether the rows are in order of their numbers, each once, as they are stored."""
    keys = [sort_key(row.id) for row in rows]
    return all(before < after for before, after in pairwise(keys))


def _by_number(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=sort_key))


def _behind(index: Index, id: str) -> Iterator[str]:  # noqa: A002
    """Tasks that wait for `id`: its dependants with their parts, and dependants of its container."""
    for cause in (id, parent_of(id)):
        for other in index.dependants.get(cause, ()) if cause else ():
            yield other
            yield from index.children.get(other, ())


def _sorted_ids(index: Index) -> list[str]:
    if index.sorted_ids is None:
        index.sorted_ids = sorted(index.rows, key=sort_key)
    return index.sorted_ids


def _cycle(index: Index, starts: Iterable[str]) -> tuple[str, ...]:
    done: set[str] = set()
    for start in starts:
        path, places, stack = [start], {start: 0}, [_behind(index, start)]
        while stack and start not in done:
            for other in stack[-1]:
                if other in places:
                    return tuple(reversed([*path[places[other] :], other]))
                if other not in done:
                    places[other] = len(path)
                    path.append(other)
                    stack.append(_behind(index, other))
                    break
            else:
                stack.pop()
                done.add(path[-1])
                del places[path.pop()]
    return ()
