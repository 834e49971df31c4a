"""The list of workflows."""

from collections.abc import Mapping

from detent.core.counted import counted
from detent.core.workflow.graph import Workflow
from detent.core.workflow.phase_title import titled
from detent.render.terminal.canvas import Canvas, columns_of

_INDENT = "    "


def workflows_text(
    titles: Mapping[str, str], workflows: Mapping[str, Workflow | str], differs: Mapping[str, str], *, canvas: Canvas
) -> str:
    """Each workflow with its phases and how it differs from one like it, or the reason why it cannot be used."""
    lines = []
    for name, workflow in workflows.items():
        lines.append(canvas.paint(canvas.cut(name, canvas.width), "bold"))
        lines += canvas.wrap(_about(titles[name], workflow, differs.get(name, "")), _INDENT)
        lines += [] if isinstance(workflow, str) else _phase_lines(workflow, canvas)
    return "\n".join(lines)


def _about(title: str, workflow: Workflow | str, differs: str) -> str:
    if isinstance(workflow, str):
        return f"{title}. {workflow}"
    like = f" {differs[0].upper()}{differs[1:]}." if differs else ""
    sizes = f" Sizes: {', '.join(workflow.sizes)}." if workflow.sizes else ""
    return f"{title}.{like}{sizes} {counted(len(workflow.order), 'phase')}:"


def _phase_lines(workflow: Workflow, canvas: Canvas) -> list[str]:
    """The phases, as many on a line as fit, each with its position, its title and its key."""
    room = canvas.width - len(_INDENT)
    lines: list[str] = []
    left = 0
    for at, key in enumerate(workflow.order, 1):
        name = canvas.clean(f"{at} {titled(workflow.by_key[key])}") + ("." if at == len(workflow.order) else ",")
        columns = columns_of(name)
        shown = name.replace(f"({key})", canvas.paint(f"({key})", "dim"))
        if columns > room:
            lines += canvas.wrap(name, _INDENT)
            left = 0
        elif columns < left:
            lines[-1] += f" {shown}"
            left -= columns + 1
        else:
            lines.append(_INDENT + shown)
            left = room - columns
    return lines
