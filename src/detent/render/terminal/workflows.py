"""The workflows that can be started."""

from collections.abc import Mapping

from detent.core.workflow.graph import Workflow
from detent.render.terminal.canvas import Canvas


def workflows_text(titles: Mapping[str, str], found: Mapping[str, Workflow | str], *, canvas: Canvas) -> str:
    """Each with its phases; one that cannot be used with what is wrong with it."""
    lines = []
    for name, workflow in found.items():
        lines.append(canvas.paint(canvas.cut(name, canvas.width), "bold"))
        lines += canvas.wrap(_about(titles[name], workflow), "    ")
    return "\n".join(lines)


def _about(title: str, workflow: Workflow | str) -> str:
    if isinstance(workflow, str):
        return f"{title}. {workflow}"
    sizes = f" Sizes: {', '.join(workflow.sizes)}." if workflow.sizes else ""
    count = len(workflow.order)
    return f"{title}. {count} phase{'s' if count != 1 else ''}: {', '.join(workflow.order)}.{sizes}"
