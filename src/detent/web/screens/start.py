"""The form that starts a session: the workflows with their graphs, and the agents that can work."""

from typing import Any

from detent.engine.project import Project
from detent.errors import DetentError
from detent.render.json.graph import graph_record


def workflows_screen(project: Project) -> dict[str, Any]:
    catalogue, settings = project.catalogue, project.settings
    return {
        "workflows": [_workflow(project, name) for name in catalogue.names()],
        "agents": [
            {"name": name, "adapter": agent.adapter, "is_default": name == settings.run.agent}
            for name, agent in settings.agents.items()
        ],
        "default_workflow": settings.run.workflow,
    }


def _workflow(project: Project, name: str) -> dict[str, Any]:
    record: dict[str, Any] = {"name": name, "title": project.catalogue.title(name), "problem": None}
    try:
        workflow = project.catalogue.workflow(name)
    except DetentError as error:
        return {**record, "sizes": {}, "graph": None, "problem": error.message}
    return {**record, "sizes": workflow.sizes, "graph": graph_record(workflow)}
