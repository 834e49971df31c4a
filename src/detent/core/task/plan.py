"""All tasks of a session as one value: who waits for whom, what is ready, and what comes next.

A change gives a new plan and costs what hangs on the changed task, not what the session holds; the plans of one line
share an index (see `version.py`). An older plan stays what it was, but asking it makes the newer ones pay the way back.
Two threads must not ask plans of one line at the same time.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from detent.core.task.cycle import find_cycles
from detent.core.task.id import parent_of, sort_key
from detent.core.task.index import Index
from detent.core.task.row import Row, TaskStatus
from detent.core.task.version import Version
from detent.errors import NotFound


class Plan:
    __slots__ = ("_version",)

    def __init__(self, rows: Iterable[Row] | Version = ()) -> None:
        """From rows; of two with the same id the last counts. What is looked up is built when something is."""
        self._version = rows if isinstance(rows, Version) else Version(list(rows))

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
        """What can be done: tasks that have no parts, by number."""
        index = self._index
        return tuple(id_ for id_ in self.ids if index.is_leaf(id_))

    @property
    def counts(self) -> dict[TaskStatus, int]:
        """How many leaves stand where."""
        return dict(self._index.leaf_tally)

    @property
    def leaf_count(self) -> int:
        return sum(self._index.leaf_tally.values())

    @property
    def is_completed(self) -> bool:
        """Whether there is something to do and all of it is done."""
        return 0 < self._index.leaf_tally[TaskStatus.COMPLETED] == self.leaf_count

    @property
    def has_subtasks(self) -> bool:
        return bool(self._index.children)

    def with_status(self, status: TaskStatus) -> tuple[str, ...]:
        """The tasks of which their document says `status`, by number."""
        return _by_number(self._index.by_status[status])

    def is_leaf(self, id: str) -> bool:  # noqa: A002
        self[id]
        return self._index.is_leaf(id)

    def is_done(self, id: str) -> bool:  # noqa: A002
        """Whether what depends on `id` may go on. A task that is missing is not done."""
        return self._index.is_done(id)

    def children(self, id: str) -> tuple[str, ...]:  # noqa: A002
        return _by_number(self._index.children.get(id, ()))

    def dependants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """The tasks that name `id` in `depends_on`."""
        return _by_number(self._index.dependants.get(id, ()))

    def descendants(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """Every task that has to wait for `id` on some path, by number."""
        return _by_number(_reached(self._index, (id,)).keys() - {id})

    def derived_state(self, id: str) -> TaskStatus:  # noqa: A002
        """Where a container stands, by its parts; a leaf stands where its document says."""
        self[id]
        return self._index.derived_state(id)

    @property
    def ready(self) -> tuple[str, ...]:
        """What can be started now, in execution order."""
        index = self._ranked()
        return tuple(sorted(index.ready, key=index.ranks.place.__getitem__))

    @property
    def ready_count(self) -> int:
        return len(self._index.ready)

    def is_ready(self, id: str) -> bool:  # noqa: A002
        return id in self._index.ready

    def next_ready(self) -> str | None:
        """The first in the execution order that is ready."""
        return self._index.first_ready()

    def waiting_for(self, id: str) -> tuple[str, ...]:  # noqa: A002
        """What has to be completed before `id` can start; ids that no task has among them."""
        self[id]
        return tuple(self._index.unmet(id))

    @property
    def waiting(self) -> dict[str, tuple[str, ...]]:
        """Every pending leaf that is not ready, with what it waits for, by number."""
        index = self._index
        waits = (id_ for id_ in index.by_status[TaskStatus.PENDING] if id_ not in index.ready and index.is_leaf(id_))
        return {id_: tuple(index.unmet(id_)) for id_ in sorted(waits, key=sort_key)}

    @property
    def blocked_by_failed(self) -> dict[str, tuple[str, ...]]:
        """The part of `waiting` that cannot go on before a failed task is retried, with the nearest failed ones."""
        index = self._index
        failed = [id_ for id_ in index.by_status[TaskStatus.FAILED] if index.is_leaf(id_)]
        reached = _reached(index, sorted(failed, key=sort_key))
        return {
            id_: reached[id_]
            for id_ in sorted(reached, key=sort_key)
            if index.rows[id_].status is TaskStatus.PENDING and index.is_leaf(id_) and id_ not in index.ready
        }

    @property
    def order(self) -> tuple[str, ...]:
        """The leaves in execution order, whatever their status; what waits for itself has no place."""
        index = self._ranked()
        if index.order is None:
            known = (id_ for id_ in index.rows if id_ not in index.ranks.stuck and index.is_leaf(id_))
            index.order = tuple(sorted(known, key=index.ranks.place.__getitem__))
        return index.order

    @property
    def unordered(self) -> tuple[str, ...]:
        """Tasks on a circle of dependencies, or behind one."""
        return _by_number(self._ranked().ranks.stuck)

    @property
    def cycles(self) -> list[tuple[str, ...]]:
        """Tasks that wait for each other, each circle once; see `find_cycles`."""
        index = self._ranked()
        return find_cycles(index.rows, index.children, index.ranks.stuck)

    def circle_through(self, ids: Iterable[str]) -> tuple[str, ...]:
        """A circle that goes through one of the tasks or its parts, in the direction of waiting; empty if none does.

        Looks at those who wait for them, so a task that nobody waits for costs nothing.
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
        found: dict[str, list[str]] = {}
        for other in index.dependants.keys() - index.rows.keys():
            for id_ in index.dependants[other]:
                found.setdefault(id_, []).append(other)
        return {id_: _by_number(found[id_]) for id_ in sorted(found, key=sort_key)}

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


def is_sorted(rows: list[Row]) -> bool:
    """Whether the rows come by number, each once, as they are stored."""
    keys = [sort_key(row.id) for row in rows]
    return all(one < other for one, other in pairwise(keys))


def _by_number(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(ids, key=sort_key))


def _reached(index: Index, sources: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """All that wait for one of `sources`, with the nearest of them; breadth first, so that nearest comes first."""
    found: dict[str, tuple[str, ...]] = {}
    layer: dict[str, tuple[str, ...]] = {id_: (id_,) for id_ in sources}
    seen = set(layer)
    while layer:
        following: dict[str, dict[str, None]] = {}
        for id_, causes in layer.items():
            for other in _behind(index, id_):
                if other not in seen:
                    following.setdefault(other, {}).update(dict.fromkeys(causes))
        layer = {id_: tuple(sorted(causes, key=sort_key)) for id_, causes in following.items()}
        found.update(layer)
        seen.update(layer)
    return found


def _behind(index: Index, id: str) -> Iterator[str]:  # noqa: A002
    """Who has to wait for `id`: dependants with their parts, and dependants of the container that it is part of."""
    for cause in (id, parent_of(id)):
        for other in index.dependants.get(cause, ()) if cause else ():
            yield other
            yield from index.children.get(other, ())
