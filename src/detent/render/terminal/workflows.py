"""The list of workflows."""

from collections.abc import Mapping

from detent.core.workflow.graph import Workflow
from detent.render.size import counted
from detent.render.terminal.canvas import Canvas


def workflows_text(
    titles: Mapping[str, str], workflows: Mapping[str, Workflow | str], differs: Mapping[str, str], *, canvas: Canvas
) -> str:
    """Each workflow with its phases and how it differs from one like it, or the reason why it cannot be used."""
    lines = []
    for name, workflow in workflows.items():
        lines.append(canvas.paint(canvas.cut(name, canvas.width), "bold"))
        lines += canvas.wrap(_about(titles[name], workflow, differs.get(name, "")), "    ")
    return "\n".join(lines)


def _about(title: str, workflow: Workflow | str, differs: str) -> str:
    if isinstance(workflow, str):
        return f"{title}. {workflow}"
    sizes = f" Sizes: {', '.join(workflow.sizes)}." if workflow.sizes else ""
    like = f" {differs[0].upper()}{differs[1:]}." if differs else ""
    return f"{title}.{like} {counted(len(workflow.order), 'phase')}: {', '.join(workflow.order)}.{sizes}"
