"""The list of workflows."""

from collections.abc import Mapping

from detent.core.workflow.graph import Workflow
from detent.render.size import counted
from detent.render.terminal.canvas import Canvas


def workflows_text(titles: Mapping[str, str], workflows: Mapping[str, Workflow | str], *, canvas: Canvas) -> str:
    """Each workflow with its phases, or with the reason why it cannot be used."""
    lines = []
    for name, workflow in workflows.items():
        lines.append(canvas.paint(canvas.cut(name, canvas.width), "bold"))
        lines += canvas.wrap(_about(titles[name], workflow), "    ")
    return "\n".join(lines)


def _about(title: str, workflow: Workflow | str) -> str:
    if isinstance(workflow, str):
        return f"{title}. {workflow}"
    sizes = f" Sizes: {', '.join(workflow.sizes)}." if workflow.sizes else ""
    return f"{title}. {counted(len(workflow.order), 'phase')}: {', '.join(workflow.order)}.{sizes}"
