"""Circles of tasks that wait for each other, which nothing but a changed dependency can open."""

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Set

from detent.core.task.document import kinship
from detent.core.task.id import parent_of, sort_key
from detent.core.task.row import Row

#: A report of more would help nobody.
MAX_CYCLES = 100


def find_cycles(
    rows: Mapping[str, Row], children: Mapping[str, Set[str]], stuck: Collection[str]
) -> list[tuple[str, ...]]:
    """Short circles such that every task on one is in some, read in the direction of the work, lowest id first.

    A task waits for its dependencies and those of its parent, a container for its parts. A circle that differs from
    another only in naming a part in place of its container is left out, and so are tasks that depend on themselves,
    their parent or their parts: those are mistakes of one document. Only `stuck` tasks, which have no place in the
    execution order, can be on a circle.
    """
    among = set(stuck)
    needs = {id_: _needs(id_, rows, children, among) for id_ in sorted(among, key=sort_key)}
    found: dict[frozenset[str], tuple[str, ...]] = {}
    covered: set[str] = set()
    for id_ in sorted(_on_circles(needs), key=sort_key):
        if id_ in covered or len(found) >= MAX_CYCLES:
            continue
        circle = _shortest(id_, needs)
        covered.update(circle)
        found.setdefault(frozenset(parent_of(each) or each for each in circle), circle)
    return list(found.values())


def _needs(
    id: str,  # noqa: A002
    rows: Mapping[str, Row],
    children: Mapping[str, Set[str]],
    among: Set[str],
) -> tuple[str, ...]:
    parent = rows.get(parent_of(id) or "")
    named = (*rows[id].depends_on, *(parent.depends_on if parent else ()))
    known = [other for other in named if other in among and not kinship(id, other)]
    return tuple(sorted({*known, *(children.get(id, set()) & among)}, key=sort_key))


def _on_circles(needs: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    """The tasks that can be reached from themselves: the strongly connected parts that have more than one."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    on_path: set[str] = set()
    for root in needs:
        stack = [(root, iter(needs[root]))] if root not in number else []
        while stack:
            id_, remaining = stack[-1]
            if id_ not in number:
                number[id_] = low[id_] = len(number)
                path.append(id_)
                on_path.add(id_)
            for other in remaining:
                if other not in number:
                    stack.append((other, iter(needs[other])))
                    break
                if other in on_path:
                    low[id_] = min(low[id_], low[other])
            else:
                stack.pop()
                if stack:
                    low[stack[-1][0]] = min(low[stack[-1][0]], low[id_])
                if low[id_] == number[id_]:
                    at = _last_index(path, id_)
                    part = path[at:]
                    del path[at:]
                    on_path.difference_update(part)
                    if len(part) > 1:
                        yield from part


def _last_index(path: list[str], id: str) -> int:  # noqa: A002
    at = len(path) - 1
    while path[at] != id:
        at -= 1
    return at


def _shortest(id: str, needs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:  # noqa: A002
    """The way back to `id` with the fewest steps."""
    came_from: dict[str, str] = {}
    waiting = deque([id])
    while id not in came_from:
        here = waiting.popleft()
        for other in needs[here]:
            if other not in came_from:
                came_from[other] = here
                waiting.append(other)
    circle = [id]
    while (here := came_from[circle[-1]]) != id:
        circle.append(here)
    # Walking back from what is needed to who needs it is already the direction of the work.
    first = circle.index(min(circle, key=sort_key))
    return tuple(circle[first:] + circle[:first])
