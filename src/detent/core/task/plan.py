"""The plan: all tasks of a session as one value that answers what is ready, what comes next and what waits for what.

A change returns a new plan and costs what depends on the changed task, not what the session holds: the plans of one
line share an index. An older plan keeps its value, but asking it makes the newer ones pay the way back. Two threads
must not ask plans of one line at the same time.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from detent.core.task.id import parent_of, sort_key
from detent.core.task.index import Index
from detent.core.task.row import Row, TaskStatus
from detent.errors import NotFound


class Plan:
    __slots__ = ("_version",)

    def __init__(self, rows: "Iterable[Row] | _Version" = ()) -> None:
        """From rows; of two with the same id the last counts. The index is built on first use."""
        self._version = rows if isinstance(rows, _Version) else _Version(list(rows))

    def with_row(self, row: Row) -> "Plan":
        """The plan with one task added or changed."""
        return self._changed(row.id, row)

    def without(self, id: str) -> "Plan":  # noqa: A002
        self[id]
        return self._changed(id, None)

    def __getitem__(self, id: str) -> Row:  # noqa: A002
        row = self._index.rows.get(id)
        if row is None:
            raise NotFound(f"there is no task {id}")
        return row

    def get(self, id: str) -> Row | None:  # noqa: A002
        return self._index.rows.get(id)

    def __contains__(self, id: object) -> bool:  # noqa: A002
        return id in self._index.rows

    def __len__(self) -> int:
        raw = self._version.raw
        return len(raw) if raw is not None and is_sorted(raw) else len(self._index.rows)

    def __iter__(self) -> Iterator[Row]:
        """Rows by number."""
        raw = self._version.raw
        if raw is not None and is_sorted(raw):
            return iter(raw)
        rows = self._index.rows
        return iter([rows[id_] for id_ in self.ids])

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
        index = self._index
        if index.sorted_ids is None:
            index.sorted_ids = sorted(index.rows, key=sort_key)
        return tuple(index.sorted_ids)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Tasks without parts, by number."""
        index = self._index
        return tuple(id_ for id_ in self.ids if index.is_leaf(id_))

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """The number of leaves of each status."""
        return dict(self._index.leaf_counts)

    @property
    def leaf_count(self) -> int:
        return sum(self._index.leaf_counts.values())

    @property
    def is_completed(self) -> bool:
        """Whether the plan has leaves and all of them are completed."""
        return 0 < self._index.leaf_counts[TaskStatus.COMPLETED] == self.leaf_count

    @property
    def has_subtasks(self) -> bool:
        return bool(self._index.children)

    def with_status(self, status: TaskStatus) -> tuple[str, ...]:
        """The tasks of this status, by number."""
        return _by_number(self._index.by_status[status])

    def is_leaf(self, id: str) -> bool:  # noqa: A002
        self[id]
        return self._index.is_leaf(id)

    def is_done(self, id: str) -> bool:  # noqa: A002
        """Whether dependants of `id` may start. A missing task is not done."""
        return self._index.is_done(id)

    def children(self, id: str) -> tuple[str, ...]:  # noqa: A002
        return _by_number(self._index.children.get(id, ()))

    def dependants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """The tasks that name `id` in `depends_on`."""
        return _by_number(self._index.dependants.get(id, ()))

    def descendants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """Every task that waits for `id`, directly or not, by number."""
        reached, pending = {id}, [id]
        while pending:
            behind = set(_behind(self._index, pending.pop())) - reached
            reached |= behind
            pending += behind
        return _by_number(reached - {id})

    def derived_state(self, id: str) -> TaskStatus:  # noqa: A002
        """The status of a container, computed from its parts; a leaf has its own."""
        self[id]
        return self._index.derived_state(id)

    @property
    def ready(self) -> tuple[str, ...]:
        """Tasks that can be started now, in execution order."""
        index = self._ranked()
        return tuple(sorted(index.ready, key=index.ranks.place.__getitem__))

    @property
    def ready_count(self) -> int:
        return len(self._index.ready)

    def is_ready(self, id: str) -> bool:  # noqa: A002
        return id in self._index.ready

    def next_ready(self) -> str | None:
        """The first ready task in execution order."""
        return self._index.first_ready()

    def waiting_for(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """The tasks that must be completed before `id` can start; missing tasks included."""
        self[id]
        return tuple(self._index.unmet(id))

    @property
    def waiting(self) -> dict[str, tuple[str, ...]]:
        """Every pending leaf that is not ready, with the tasks that it waits for, by number."""
        index = self._index
        waits = (id_ for id_ in index.by_status[TaskStatus.PENDING] if id_ not in index.ready and index.is_leaf(id_))
        return {id_: tuple(index.unmet(id_)) for id_ in sorted(waits, key=sort_key)}

    @property
    def order(self) -> tuple[str, ...]:
        """The leaves of every status in execution order, without those on or behind a cycle."""
        index = self._ranked()
        if index.order is None:
            known = (id_ for id_ in index.rows if id_ not in index.ranks.stuck and index.is_leaf(id_))
            index.order = tuple(sorted(known, key=index.ranks.place.__getitem__))
        return index.order

    @property
    def unordered(self) -> tuple[str, ...]:
        """Tasks on a cycle of dependencies, or behind one."""
        return _by_number(self._ranked().ranks.stuck)

    def cycle_through(self, ids: Iterable[str]) -> tuple[str, ...]:
        """A cycle through one of the tasks or its parts, in the direction of waiting; empty if there is none.

        Follows dependants only, so a task without dependants costs nothing.
        """
        index = self._index
        starts = [part for id_ in ids for part in (id_, *index.children.get(id_, ()))]
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

    @property
    def missing(self) -> dict[str, tuple[str, ...]]:
        """Tasks that depend on ids that no task has."""
        index = self._index
        missing: dict[str, list[str]] = {}
        for other in index.dependants.keys() - index.rows.keys():
            for id_ in index.dependants[other]:
                missing.setdefault(id_, []).append(other)
        return {id_: _by_number(missing[id_]) for id_ in sorted(missing, key=sort_key)}

    @property
    def _index(self) -> Index:
        return self._version.index

    def _ranked(self) -> Index:
        index = self._index
        index.rank()
        return index

    def _changed(self, id: str, row: Row | None) -> "Plan":  # noqa: A002
        if self._index.rows.get(id) == row:
            return self
        return Plan(self._version.changed(id, row))


class _Version:
    """A version of the plan. Either it holds the index, or `undo` is the change that leads back to it from `towards`.

    Asking an older version undoes the changes in between, and the newer versions can then redo them. So every version
    keeps its value, continuing with the newest is cheap, and going back costs the distance.
    """

    __slots__ = ("_held", "raw", "towards", "undo")

    def __init__(self, source: Index | list[Row]) -> None:
        """From an index, or from rows, of which the index is built on first use."""
        self.raw = source if isinstance(source, list) else None
        self._held = source if isinstance(source, Index) else None
        self.towards: _Version | None = None
        self.undo: tuple[str, Row | None] = ("", None)

    @property
    def index(self) -> Index:
        if self.raw is not None:
            self._held, self.raw = Index(self.raw), None
        return self._held or self._move_here()

    def changed(self, id: str, row: Row | None) -> "_Version":  # noqa: A002
        """The next version, in which `id` has another row, or no row."""
        index = self.index
        newer, before = _Version(index), index.rows.get(id)
        _put(index, id, row)
        self.release(newer, (id, before))
        return newer

    def hold(self, index: Index) -> None:
        self._held, self.towards = index, None

    def release(self, towards: "_Version", undo: tuple[str, Row | None]) -> None:
        self._held, self.towards, self.undo = None, towards, undo

    def _move_here(self) -> Index:
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
