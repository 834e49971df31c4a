"""The execution order: after all that a task waits for, and by number wherever that leaves a choice.

A subtask also waits for the dependencies of its parent. A container ends with its last subtask and has no work of its
own. Dependencies on missing tasks are ignored here; `rules.py` reports them.
"""

from collections.abc import Iterable, Mapping, Set
from heapq import heappop, heappush

from detent.core.task.id import children_of, parent_of, sort_key
from detent.core.task.row import Row, TaskStatus

_BLOCK = 1 << 32


def execution_order(rows: Iterable[Row]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The leaves in order, and the tasks that have no place because they wait for each other."""
    by_id = {row.id: row for row in rows}
    children = children_of(by_id)
    order, stuck = turns(by_id, children)
    return (
        tuple(id_ for id_ in order if id_ not in children and by_id[id_].status is not TaskStatus.CONTAINER),
        tuple(stuck),
    )


def turns(rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> tuple[list[str], list[str]]:
    """Every task in execution order, a container after its last part; then the tasks on or behind a cycle.

    Depends on ids and dependencies only, never on status.
    """
    ids = sorted(rows, key=sort_key)
    place = {id_: at for at, id_ in enumerate(ids)}
    count = len(ids)
    # Two events per container: at `count + place` its subtasks may begin, at `place` it ends.
    waits = [0] * (2 * count)
    followers: dict[int, list[int]] = {}
    for at, id_ in enumerate(ids):
        begin = at
        if id_ in children:
            begin = count + at
            waits[at] += 1
            followers.setdefault(begin, []).append(at)
        for other in _distinct(rows[id_].depends_on):
            cause = place.get(other)
            if cause is not None:
                waits[begin] += 1
                followers.setdefault(cause, []).append(begin)
        parent = place.get(parent_of(id_) or "")
        if parent is not None:
            waits[at] += 1
            followers.setdefault(count + parent, []).append(at)
            waits[parent] += 1
            followers.setdefault(at, []).append(parent)
    return _walk(ids, waits, followers, {place[id_] for id_ in children if id_ in place})


def _distinct(ids: tuple[str, ...]) -> Iterable[str]:
    return ids if len(ids) < 2 else set(ids)


def _walk(
    ids: list[str], waits: list[int], followers: Mapping[int, list[int]], containers: set[int]
) -> tuple[list[str], list[str]]:
    count, order, seen = len(ids), [], bytearray(len(ids))
    free = [at for at in range(count) if not waits[at]]
    at_once = [count + at for at in containers if not waits[count + at]]
    while at_once or free:
        event = at_once.pop() if at_once else heappop(free)
        if event < count:
            order.append(ids[event])
            seen[event] = 1
        for follower in followers.get(event, ()):
            waits[follower] -= 1
            if waits[follower]:
                continue
            if follower >= count or follower in containers:
                at_once.append(follower)
            else:
                heappush(free, follower)
    return order, [id_ for at, id_ in enumerate(ids) if not seen[at]]


class Ranks:
    """The places of tasks in the execution order, kept while tasks are added and removed.

    A place depends on ids and dependencies only, so a change of status costs nothing. A task that is added behind all
    others, and a subtask of a task that had a place of its own, get a place without a look at the rest. After any other
    change the places are computed again on the next use. Tasks on or behind a cycle come last.
    """

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self.stuck: set[str] = set()
        self.is_known = False
        self._end = 0
        self._last = -1
        #: Tasks with parts outside of their own place.
        self._containers: set[str] = set()

    def forget(self) -> None:
        self.is_known = False

    def compute(self, rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> None:
        order, stuck = turns(rows, children)
        self.place = {id_: at * _BLOCK for at, id_ in enumerate([*order, *stuck])}
        self.stuck = set(stuck)
        self._end = len(self.place) * _BLOCK
        self._last = max(map(sort_key, rows), default=-1)
        self._containers = set(children)
        self.is_known = True

    def added(
        self, row: Row, rows: Mapping[str, Row], children: Mapping[str, Set[str]], *, has_dependants: bool
    ) -> None:
        """Place a new row that no task depends on; `has_dependants` says whether one depends on its parent."""
        if not self.is_known:
            return
        place = self._place_in_block(row, rows, children)
        if place is None and not has_dependants:
            place = self._place_behind_all(row)
        if place is None or self._is_behind_circle(row):
            self.forget()
            return
        self.place[row.id] = place
        self._last = max(self._last, sort_key(row.id))

    def removed(self, id: str) -> None:  # noqa: A002
        """Drop a task without parts and dependants, whose parent has other parts and no dependants."""
        self.place.pop(id, None)
        if id in self.stuck:
            self.forget()

    def _is_behind_circle(self, row: Row) -> bool:
        return bool(self.stuck) and (parent_of(row.id) in self.stuck or not self.stuck.isdisjoint(row.depends_on))

    def _place_in_block(self, row: Row, rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> int | None:
        """The place inside that of the parent, by number, if all dependencies come before it."""
        parent = parent_of(row.id)
        if parent is None or parent not in rows or parent in self._containers:
            return None
        place = self.place[parent] + sort_key(row.id) % _BLOCK
        known = (other for other in row.depends_on if other in rows)
        return None if any(other in children or self.place[other] > place for other in known) else place

    def _place_behind_all(self, row: Row) -> int | None:
        """The last place, for a task without dependants that has the highest number."""
        if sort_key(row.id) <= self._last:
            return None
        self._containers.add(parent_of(row.id) or "")
        self._end += _BLOCK
        return self._end - _BLOCK
