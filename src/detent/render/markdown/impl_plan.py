"""`IMPL_PLAN.md`: the requirements, tasks and execution order of a session. Generated."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from detent.core.task.id import sort_key
from detent.core.task.order import execution_order
from detent.core.task.row import Row
from detent.core.task.title import escaped
from detent.render.markdown.todo_list import GENERATED

NAME = "IMPL_PLAN.md"
Documents = Mapping[str, dict[str, Any]] | Callable[[str], dict[str, Any]]


def impl_plan(
    project: str, session: str, *, complexity: str, phase: str | None, rows: Iterable[Row], documents: Documents
) -> str:
    """`documents` maps task ids to documents. The same tasks always give the same bytes."""
    by_number = sorted(rows, key=lambda row: sort_key(row.id))
    find = documents.__getitem__ if isinstance(documents, Mapping) else documents
    contexts = [(row, find(row.id).get("context") or {}) for row in by_number]
    titles = {row.id: escaped(row.title) for row in by_number}
    return "\n".join(
        [
            GENERATED,
            "# Implementation Plan",
            "",
            "## Overview",
            f"- Project: {escaped(project)}",
            f"- Session: {session}",
            f"- Complexity: {complexity}",
            f"- Phase: {phase or 'none'}",
            "",
            "## Requirements",
            *_requirements(context for _, context in contexts),
            "",
            "## Task Structure",
            *_structure(contexts, titles),
            "",
            "## Execution Order",
            *_order(by_number, titles),
            "",
        ]
    )


def _requirements(contexts: Iterable[Mapping[str, Any]]) -> list[str]:
    """Each requirement once, in the order of first use."""
    requirements = dict.fromkeys(text for context in contexts for text in context.get("requirements") or ())
    return [f"- {escaped(text)}" for text in requirements] or ["None yet."]


def _structure(contexts: Iterable[tuple[Row, Mapping[str, Any]]], titles: Mapping[str, str]) -> Iterator[str]:
    is_empty = True
    for row, context in contexts:
        is_empty = False
        indent = "  " if row.parent else ""
        yield f"{indent}- **{row.id}**: {titles[row.id]}"
        yield f"{indent}  - Type: {escaped(row.type)}, agent: {escaped(row.agent)}"
        if row.depends_on:
            yield f"{indent}  - Depends on: {', '.join(row.depends_on)}"
        for text in context.get("acceptance") or ():
            yield f"{indent}  - Acceptance: {escaped(text)}"
    if is_empty:
        yield "No tasks yet."


def _order(rows: Iterable[Row], titles: Mapping[str, str]) -> list[str]:
    order, stuck = execution_order(rows)
    lines = [f"{at}. {id_}: {titles[id_]}" for at, id_ in enumerate(order, 1)]
    if stuck:
        lines += ["", f"No place, because they wait for each other: {', '.join(stuck)}"]
    return lines or ["No tasks yet."]
