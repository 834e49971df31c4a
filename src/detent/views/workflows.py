"""The workflows that can be started."""

from collections.abc import Mapping

from detent.core.graph import Workflow
from detent.views.paper import Paper


def workflows_text(titles: Mapping[str, str], found: Mapping[str, Workflow | str], *, paper: Paper) -> str:
    """Each with its phases; one that cannot be used with what is wrong with it."""
    lines = []
    for name, workflow in found.items():
        lines.append(paper.paint(paper.cut(name, paper.width), "bold"))
        lines += paper.wrap(_about(titles[name], workflow), "    ")
    return "\n".join(lines)


def _about(title: str, workflow: Workflow | str) -> str:
    if isinstance(workflow, str):
        return f"{title}. {workflow}"
    sizes = f" Sizes: {', '.join(workflow.sizes)}." if workflow.sizes else ""
    count = len(workflow.order)
    return f"{title}. {count} phase{'s' if count != 1 else ''}: {', '.join(workflow.order)}.{sizes}"
