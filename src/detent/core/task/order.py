"""In which order tasks can be done: after all they wait for, and by number wherever that leaves a choice.

A subtask also waits for what its parent waits for. A container is over as soon as its last subtask is, and takes no
turn of its own. Ids that no row has are passed over here; the rules report them.
"""

from collections.abc import Iterable, Mapping, Set
from heapq import heappop, heappush

from detent.core.task.id import parent_of, sort_key
from detent.core.task.row import Row, TaskStatus


def execution_order(rows: Iterable[Row]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The leaves in order, and the tasks that can have no place in it because they wait for each other."""
    by_id = {row.id: row for row in rows}
    children: dict[str, set[str]] = {}
    for id_ in by_id:
        if parent := parent_of(id_):
            children.setdefault(parent, set()).add(id_)
    order, stuck = turns(by_id, children)
    return (
        tuple(id_ for id_ in order if id_ not in children and by_id[id_].status is not TaskStatus.CONTAINER),
        tuple(stuck),
    )


def turns(rows: Mapping[str, Row], children: Mapping[str, Set[str]]) -> tuple[list[str], list[str]]:
    """Every task in the order of its turn, containers where they are over; then those that never get one.

    Depends on ids and dependencies only, never on where the tasks stand.
    """
    ids = sorted(rows, key=sort_key)
    place = {id_: at for at, id_ in enumerate(ids)}
    count = len(ids)
    # Two events per container: at `count + place` its subtasks may begin, at `place` it is over.
    waits = [0] * (2 * count)
    followers: dict[int, list[int]] = {}
    for at, id_ in enumerate(ids):
        begin = at
        if id_ in children:
            begin = count + at
            waits[at] += 1
            followers.setdefault(begin, []).append(at)
        for other in _once(rows[id_].depends_on):
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


def _once(ids: tuple[str, ...]) -> Iterable[str]:
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
