"""Places in the execution order, kept while tasks come and go.

A place depends on ids and dependencies only, so a change of status costs nothing. A task that is added behind all
others, or a subtask of a task that had a place of its own, gets a place without looking at the rest. After any other
change the places are worked out again, when somebody next asks.
"""

from collections.abc import Mapping, Set

from detent.core.task.id import parent_of, sort_key
from detent.core.task.order import turns
from detent.core.task.row import Row

_BLOCK = 1 << 32


class Ranks:
    """`place` gives a number per task that orders it; tasks that wait for each other come behind all others."""

    def __init__(self) -> None:
        self.place: dict[str, int] = {}
        self.stuck: set[str] = set()
        self.is_known = False
        self._end = 0
        self._last = -1
        #: Tasks that have parts outside of their own turn.
        self._containers: set[str] = set()

    def forget(self) -> None:
        self.is_known = False

    def work_out(self, rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> None:
        order, stuck = turns(rows, children)
        self.place = {id_: at * _BLOCK for at, id_ in enumerate([*order, *stuck])}
        self.stuck = set(stuck)
        self._end = len(self.place) * _BLOCK
        self._last = max(map(sort_key, rows), default=-1)
        self._containers = set(children)
        self.is_known = True

    def added(
        self, row: Row, rows: Mapping[str, Row], children: Mapping[str, Set[str]], *, is_parent_wanted: bool
    ) -> None:
        """`row` is new and no task depends on it; `is_parent_wanted` if one does on its parent."""
        if not self.is_known:
            return
        place = self._place_in_block(row, rows, children)
        if place is None and not is_parent_wanted:
            place = self._place_behind_all(row)
        if place is None or self._is_behind_circle(row):
            self.forget()
            return
        self.place[row.id] = place
        self._last = max(self._last, sort_key(row.id))

    def removed(self, id: str) -> None:  # noqa: A002
        """`id` had no parts, nobody depends on it, and its parent keeps others and is not wanted either."""
        self.place.pop(id, None)
        if id in self.stuck:
            self.forget()

    def _is_behind_circle(self, row: Row) -> bool:
        return bool(self.stuck) and (parent_of(row.id) in self.stuck or not self.stuck.isdisjoint(row.depends_on))

    def _place_in_block(self, row: Row, rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> int | None:
        """Parts of a task take its turn, by number, if all they wait for comes before."""
        parent = parent_of(row.id)
        if parent is None or parent not in rows or parent in self._containers:
            return None
        place = self.place[parent] + sort_key(row.id) % _BLOCK
        known = (other for other in row.depends_on if other in rows)
        return None if any(other in children or self.place[other] > place for other in known) else place

    def _place_behind_all(self, row: Row) -> int | None:
        """Nobody waits for it and every number is lower, so it has the last turn."""
        if sort_key(row.id) <= self._last:
            return None
        self._containers.add(parent_of(row.id) or "")
        self._end += _BLOCK
        return self._end - _BLOCK
