"""Checks the rules between the tasks of a session, and reports every violation at once."""

from collections.abc import Collection, Iterator, Sequence

from detent.core.problem import Problem
from detent.core.task.cycle import find_cycles
from detent.core.task.document import kinship
from detent.core.task.id import children_of
from detent.core.task.lifecycle import TRANSITIONS, Action
from detent.core.task.plan import Plan
from detent.core.task.row import Row, TaskStatus


def plan_problems(
    rows: Sequence[Row], files: Sequence[str | None] = (), *, unreadable: Collection[str] = ()
) -> list[Problem]:
    """`files` names the file of each row, in the same order; `unreadable` the ids whose files cannot be read.

    An unreadable task exists, so it is not reported as missing.
    """
    named = [*files, *([None] * (len(rows) - len(files)))]
    first: dict[str, tuple[Row, str | None]] = {}
    twins: list[Problem] = []
    for row, file in zip(rows, named, strict=True):
        if row.id in first:
            earlier = first[row.id][1]
            message = f"{row.id} is there twice" + (f", also in {earlier}" if earlier else "")
            twins.append(Problem(rule="unique-id", path="id", message=message, file=file))
        else:
            first[row.id] = (row, file)
    children = children_of(first)
    by_id = {id_: row for id_, (row, _) in first.items()}
    known = by_id.keys() | set(unreadable)
    return [
        *twins,
        *(
            Problem(rule=rule, path=path, message=message, file=file)
            for row, file in zip(rows, named, strict=True)
            for rule, path, message in (*_kin_problems(row, known, children), *_dependency_problems(row, known))
        ),
        *(
            Problem(
                rule="cycle",
                path="context.depends_on",
                message=f"tasks wait for each other in a circle: {' -> '.join([*cycle, cycle[0]])}",
                file=first[cycle[0]][1],
            )
            for cycle in find_cycles(by_id, children)
        ),
    ]


def damaged_bonds(plan: Plan) -> dict[str, str]:
    """The tasks whose bond with their parts can be repaired, with a description of the repair."""
    repairs: dict[str, str] = {}
    for row in plan:
        parent, has_parts = row.parent, bool(plan.children(row.id))
        if parent is not None and parent not in plan:
            repairs.setdefault(parent, f"make {parent} again, of which {row.id} is a part")
        if has_parts and (row.status, Action.SPLIT) in TRANSITIONS:
            repairs[row.id] = f"make {row.id} a container, which has parts"
        if row.status is TaskStatus.CONTAINER and not has_parts:
            repairs[row.id] = f"make {row.id} a task again, which has no parts"
    return repairs


def _kin_problems(row: Row, known: Collection[str], children: dict[str, set[str]]) -> Iterator[tuple[str, str, str]]:
    parent, has_parts = row.parent, row.id in children
    if parent is not None and parent not in known:
        yield "parent-exists", "context.parent", f"{row.id} is a part of {parent}, which does not exist"
    if row.status is TaskStatus.CONTAINER and parent is not None:
        yield "depth", "status", f"{row.id} is a subtask and cannot be a container"
    elif row.status is TaskStatus.CONTAINER and not has_parts:
        yield "container", "status", f"{row.id} is a container without subtasks"
    elif row.status is not TaskStatus.CONTAINER and has_parts:
        yield "container", "status", f"{row.id} has subtasks and must be a container, not {row.status}"


def _dependency_problems(row: Row, known: Collection[str]) -> Iterator[tuple[str, str, str]]:
    for at, other in enumerate(row.depends_on):
        path = f"context.depends_on[{at}]"
        if reason := kinship(row.id, other):
            yield "depends-on", path, reason
        elif other not in known:
            yield "depends-on", path, f"{row.id} depends on {other}, which does not exist"
