"""A phase graph for a picture: each phase with a column and a row, and the edges that others do not imply.

Columns go by needs: a phase is right of everything that it needs. A row is a branch: a phase stays in the row of the
phase before it if that is free.
"""

from typing import Any

from detent.core.gate.voted import Voted
from detent.core.workflow.graph import Workflow
from detent.render.terminal.graph_lanes import drawn_followers


def graph_record(workflow: Workflow) -> dict[str, Any]:
    followers = drawn_followers(workflow)
    before: dict[str, list[str]] = {key: [] for key in workflow.order}
    for key, targets in followers.items():
        for target in targets:
            before[target].append(key)
    columns = _columns(workflow, before)
    rows: dict[str, int] = {}
    taken: set[tuple[int, int]] = set()
    for key in workflow.order:
        column = columns[key]
        wanted = min((rows[need] for need in before[key]), default=0)
        row = next(row for row in range(wanted, wanted + len(workflow.order) + 1) if (column, row) not in taken)
        rows[key] = row
        # An edge that passes a column passes it in the row of its end.
        taken.update((at, row) for at in range(_start(before[key], columns), column + 1))
    return {
        "columns": max(columns.values(), default=-1) + 1,
        "rows": max(rows.values(), default=-1) + 1,
        "nodes": [
            {
                "phase": key,
                "title": phase.title,
                "column": columns[key],
                "row": rows[key],
                "consensus": any(isinstance(gate, Voted) for gate in phase.gates),
                "gates": len(phase.gates),
                "optional": phase.optional,
            }
            for key in workflow.order
            for phase in (workflow.by_key[key],)
        ],
        "edges": [{"from": key, "to": target} for key, targets in followers.items() for target in targets],
    }


def _columns(workflow: Workflow, before: dict[str, list[str]]) -> dict[str, int]:
    columns: dict[str, int] = {}
    for key in workflow.order:
        columns[key] = max((columns[need] + 1 for need in before[key]), default=0)
    return columns


def _start(needs: list[str], columns: dict[str, int]) -> int:
    """The first column that the edges to a phase pass."""
    return min((columns[need] + 1 for need in needs), default=0)
