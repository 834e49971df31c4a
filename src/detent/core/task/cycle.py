"""Finds cycles: tasks that wait for each other, which only a changed dependency can break."""

from collections import deque
from collections.abc import Iterable, Mapping, Set

from detent.core.task.document import kinship
from detent.core.task.id import children_of, parent_of, sort_key
from detent.core.task.order import turns
from detent.core.task.row import Row

#: Most cycles in a report.
MAX_CYCLES = 100


def find_cycles(rows: Mapping[str, Row], children: Mapping[str, Set[str]] | None = None) -> list[tuple[str, ...]]:
    """Short cycles that together contain every task on a cycle: each task depends on the next. The lowest id is first.

    A task waits for its dependencies and those of its parent, a container for its parts. Of two cycles that differ only
    in naming a part in place of its container, one is reported. A task that depends on itself, its parent or its parts
    is a mistake of its document, and no cycle. `children` is computed unless the caller has it.
    """
    children = children_of(rows) if children is None else children
    # Only tasks without a place in the execution order can be on a cycle.
    among = set(turns(rows, children)[1])
    needs = {id_: _needs(id_, rows, children, among) for id_ in sorted(among, key=sort_key)}
    cycles: dict[frozenset[str], tuple[str, ...]] = {}
    covered: set[str] = set()
    for id_ in sorted(_on_cycles(needs), key=sort_key):
        if id_ in covered or len(cycles) >= MAX_CYCLES:
            continue
        cycle = _shortest(id_, needs)
        covered.update(cycle)
        cycles.setdefault(frozenset(parent_of(each) or each for each in cycle), cycle)
    return list(cycles.values())


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


def _on_cycles(needs: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    """The tasks that can be reached from themselves: the strongly connected components of more than one task."""
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
    """The shortest cycle through `id`."""
    needed_by: dict[str, str] = {}
    waiting = deque([id])
    while id not in needed_by:
        here = waiting.popleft()
        for other in needs[here]:
            if other not in needed_by:
                needed_by[other] = here
                waiting.append(other)
    cycle = [id]
    while (here := needed_by[cycle[-1]]) != id:
        cycle.append(here)
    # So far each task is needed by the next one.
    cycle.reverse()
    first = cycle.index(min(cycle, key=sort_key))
    return tuple(cycle[first:] + cycle[:first])
