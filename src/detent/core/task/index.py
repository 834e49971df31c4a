"""The index of a plan, changed in place: a change costs what depends on the task, not what the session holds.

Only `plan.py` uses it. A container is a task with parts, or with that status.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from detent.core.task.id import parent_of
from detent.core.task.order import Ranks
from detent.core.task.row import Row, TaskStatus

_SLACK = 64


class Index:
    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: dict[str, Row] = {}
        self.children: dict[str, set[str]] = {}
        self.dependants: dict[str, set[str]] = {}
        self.by_status: dict[TaskStatus, set[str]] = {status: set() for status in TaskStatus}
        self.leaf_counts: dict[TaskStatus, int] = dict.fromkeys(TaskStatus, 0)
        self.ready: set[str] = set()
        self.ranks = Ranks()
        #: Computed on demand, dropped by the next change that could alter them.
        self.sorted_ids: list[str] | None = None
        self.order: tuple[str, ...] | None = None
        self._part_counts: dict[str, dict[TaskStatus, int]] = {}
        self._unmet: dict[str, int] = {}
        self._heap: list[tuple[int, str]] = []
        self._load({row.id: row for row in rows})

    def _load(self, rows: dict[str, Row]) -> None:
        """Add all rows at once, several times as fast as `put` one by one."""
        self.rows = rows
        for id_, row in rows.items():
            self.by_status[row.status].add(id_)
            if parent := parent_of(id_):
                self.children.setdefault(parent, set()).add(id_)
                self._count_part(parent, None, row.status)
        done = {id_ for id_ in (*self.by_status[TaskStatus.COMPLETED], *self.children) if self.is_done(id_)}
        for id_, row in rows.items():
            unmet = 0
            for other in set(row.depends_on):
                self.dependants.setdefault(other, set()).add(id_)
                unmet += other not in done
            if unmet:
                self._unmet[id_] = unmet
        for id_, row in rows.items():
            if self.is_leaf(id_):
                self.leaf_counts[row.status] += 1
        for id_ in self.by_status[TaskStatus.PENDING]:
            self._refresh(id_)

    def put(self, row: Row) -> None:
        id_, parent, old = row.id, parent_of(row.id), self.rows.get(row.id)
        old_status = old.status if old else None
        done = self._done_now(id_, parent)
        self._count_leaves(id_, parent, -1)
        is_relinked = old is None or old.depends_on != row.depends_on
        if is_relinked:
            # Counted in the state before the change; `_update_dependants` counts what the change completes.
            self._unlink(old)
            self._link(row)
        self.rows[id_] = row
        self._count_part(parent, old_status, row.status)
        if old is None:
            self._add(row, parent)
        else:
            self.by_status[old.status].discard(id_)
            if is_relinked:
                self.ranks.forget()
        self.by_status[row.status].add(id_)
        self._count_leaves(id_, parent, 1)
        if is_relinked or TaskStatus.CONTAINER in (row.status, old_status):
            self.order = None
        self._update_dependants(done)
        self._refresh(id_)
        if is_relinked:
            self._refresh_around(id_, parent)

    def remove(self, id: str) -> None:  # noqa: A002
        parent, done = parent_of(id), self._done_now(id, parent_of(id))
        self._count_leaves(id, parent, -1)
        row = self.rows.pop(id)
        self.by_status[row.status].discard(id)
        self._unlink(row)
        self._count_part(parent, row.status, None)
        if parent is not None:
            self.children[parent].discard(id)
            if not self.children[parent]:
                del self.children[parent]
        if id in self.dependants or id in self.children or not self._is_free_to_leave(parent):
            self.ranks.forget()
        self.ranks.removed(id)
        self.sorted_ids = self.order = None
        self._count_leaves(id, parent, 1)
        self._update_dependants(done)
        self._refresh(id)
        self._refresh_around(id, parent)

    def is_leaf(self, id: str) -> bool:  # noqa: A002
        return id not in self.children and self.rows[id].status is not TaskStatus.CONTAINER

    def is_done(self, id: str) -> bool:  # noqa: A002
        row = self.rows.get(id)
        if row is None:
            return False
        parts = self.children.get(id)
        if parts is None:
            return row.status is TaskStatus.COMPLETED
        return self._part_counts[id].get(TaskStatus.COMPLETED, 0) == len(parts)

    def derived_state(self, id: str) -> TaskStatus:  # noqa: A002
        parts = self.children.get(id)
        if parts is None:
            status = self.rows[id].status
            return TaskStatus.PENDING if status is TaskStatus.CONTAINER else status
        counts = self._part_counts[id]
        if counts.get(TaskStatus.COMPLETED, 0) == len(parts):
            return TaskStatus.COMPLETED
        if counts.get(TaskStatus.FAILED):
            return TaskStatus.FAILED
        if counts.get(TaskStatus.ACTIVE) or counts.get(TaskStatus.COMPLETED):
            return TaskStatus.ACTIVE
        return TaskStatus.BLOCKED if counts.get(TaskStatus.BLOCKED, 0) == len(parts) else TaskStatus.PENDING

    def unmet(self, id: str) -> Iterator[str]:  # noqa: A002
        """The open dependencies of `id`, then those of its parent."""
        parent = self.rows.get(parent_of(id) or "")
        own = self.rows[id].depends_on
        inherited = (other for other in parent.depends_on if other not in own) if parent else ()
        yield from (other for other in (*own, *inherited) if not self.is_done(other))

    def first_ready(self) -> str | None:
        if not self.ranks.is_known:
            self.rank()
        heap, place = self._heap, self.ranks.place
        while heap:
            at, id_ = heap[0]
            if id_ in self.ready and place.get(id_) == at:
                return id_
            heappop(heap)
        return None

    def rank(self) -> None:
        """Compute the places in the execution order, if they are not known."""
        if not self.ranks.is_known:
            self.ranks.compute(self.rows, self.children)
            self._fill_heap()

    def _add(self, row: Row, parent: str | None) -> None:
        if parent is not None:
            self.children.setdefault(parent, set()).add(row.id)
        self.sorted_ids = None
        if row.id in self.dependants:
            self.ranks.forget()
        self.ranks.added(row, self.rows, self.children, has_dependants=parent in self.dependants)

    def _is_free_to_leave(self, parent: str | None) -> bool:
        """Whether removing a part of `parent` changes no other place."""
        if parent is None or parent not in self.rows:
            return True
        return parent not in self.dependants and parent in self.children

    def _link(self, row: Row) -> None:
        unmet = 0
        for other in set(row.depends_on):
            self.dependants.setdefault(other, set()).add(row.id)
            unmet += not self.is_done(other)
        if unmet:
            self._unmet[row.id] = unmet

    def _unlink(self, row: Row | None) -> None:
        if row is None:
            return
        for other in set(row.depends_on):
            named = self.dependants[other]
            named.discard(row.id)
            if not named:
                del self.dependants[other]
        self._unmet.pop(row.id, None)

    def _count_part(self, parent: str | None, before: TaskStatus | None, after: TaskStatus | None) -> None:
        if parent is None or before is after:
            return
        counts = self._part_counts.setdefault(parent, {})
        if before is not None:
            counts[before] -= 1
        if after is not None:
            counts[after] = counts.get(after, 0) + 1

    def _count_leaves(self, id: str, parent: str | None, change: int) -> None:  # noqa: A002
        for each in (id, parent):
            if each in self.rows and self.is_leaf(each):
                self.leaf_counts[self.rows[each].status] += change

    def _done_now(self, id: str, parent: str | None) -> list[tuple[str, bool]]:  # noqa: A002
        return [(each, self.is_done(each)) for each in (id, parent) if each is not None]

    def _update_dependants(self, before: list[tuple[str, bool]]) -> None:
        """Update the tasks that wait for one that is now done, or no longer."""
        for id_, was_done in before:
            done = self.is_done(id_)
            if done is was_done:
                continue
            for other in self.dependants.get(id_, ()):
                left = self._unmet.get(other, 0) + (-1 if done else 1)
                if left:
                    self._unmet[other] = left
                else:
                    del self._unmet[other]
                if left == (0 if done else 1):
                    self._refresh(other)
                    self._refresh_around(other, None)

    def _refresh_around(self, id: str, parent: str | None) -> None:  # noqa: A002
        for other in self.children.get(id, ()):
            self._refresh(other)
        if parent is not None:
            self._refresh(parent)

    def _refresh(self, id: str) -> None:  # noqa: A002
        row = self.rows.get(id)
        if (
            row is None
            or row.status is not TaskStatus.PENDING
            or id in self._unmet
            or id in self.children
            or (parent_of(id) in self._unmet)
        ):
            self.ready.discard(id)
        elif id not in self.ready:
            self.ready.add(id)
            if self.ranks.is_known:
                heappush(self._heap, (self.ranks.place[id], id))
                if len(self._heap) > 2 * len(self.ready) + _SLACK:
                    self._fill_heap()

    def _fill_heap(self) -> None:
        self._heap = [(self.ranks.place[id_], id_) for id_ in self.ready]
        heapify(self._heap)
