"""`init` and `workflows`: what is there before a session is."""

import os
from collections import Counter

import click

from detent.cli.request import Request
from detent.cli.verb import verb
from detent.clients.registry import with_hooks

_CLIENTS = with_hooks()


@verb("init", example=f"detent init --agent {_CLIENTS[0]} --agent {_CLIENTS[1]}")
@click.option(
    "--agent", "agents", multiple=True, type=click.Choice(_CLIENTS), help="Install hooks here too; repeat it."
)
@click.option("--dry-run", is_flag=True, help="Show what --agent would change as a diff, and change nothing.")
@click.pass_obj
def init_verb(request: Request, *, agents: tuple[str, ...], dry_run: bool) -> None:
    """Make a directory a project, and install hooks in agents.

    Its state lives in .workflow/, which git ignores until you remove .workflow/.gitignore. A detent.toml is not needed.
    With --agent, hooks, instructions and agent definitions go into that client's files in the project. Nothing that is
    there is touched, and detent uninstall takes them out again.
    """
    from detent.clients import installing
    from detent.engine.project import init_project
    from detent.engine.stores import open_store

    root = os.path.realpath(request.directory)
    if dry_run:
        diff = installing.plan(root, agents).diff()
        request.answer(lambda _: diff or "nothing would change", {"diff": diff})
        return
    place, fresh = init_project(request.directory)
    changed: list[str] = []
    if agents:
        plan = installing.plan(place.root, agents)
        installing.apply(plan)
        changed = [change.path for change in plan if not change.path.startswith(".workflow/")]
        request.notices += plan.notes
    request.answer(
        lambda canvas: "\n".join(
            [
                *canvas.wrap(f"{place.root} {'is a project now' if fresh else 'is already a project'}"),
                *(f"  wrote {path}" for path in _folded(changed)),
                "",
                *canvas.command('detent start feature "TASK"'),
                *canvas.command("detent workflows"),
            ]
        ),
        {"root": place.root, "state": open_store(place).location(""), "created": fresh, "changed": changed},
    )


def _folded(paths: list[str]) -> list[str]:
    """Directories stand for their files where there are many."""
    count = Counter(os.path.dirname(path) for path in paths)
    return list(
        dict.fromkeys(
            f"{directory}/ ({count[directory]} files)" if directory and count[directory] > 3 else path
            for path in paths
            for directory in (os.path.dirname(path),)
        )
    )


@verb("workflows", example="detent workflows")
@click.pass_obj
def workflows_verb(request: Request) -> None:
    """List the workflows that can be started.

    Those that come with Detent, and those of detent.toml.
    """
    from detent.core.workflow.graph import Workflow
    from detent.errors import DetentError
    from detent.render.terminal.workflows import workflows_text

    with request.reading() as project:
        catalogue = project.catalogue
        titles = {name: catalogue.title(name) for name in catalogue.names()}
        found: dict[str, Workflow | str] = {}
        for name in titles:
            try:
                found[name] = catalogue.workflow(name)
            except DetentError as error:
                found[name] = error.message
    request.answer(
        lambda canvas: workflows_text(titles, found, canvas=canvas),
        {"workflows": [_record(name, titles[name], each) for name, each in found.items()]},
    )


def _record(name: str, title: str, workflow: object) -> dict[str, object]:
    from detent.core.workflow.graph import Workflow

    if not isinstance(workflow, Workflow):
        return {"name": name, "title": title, "problem": workflow}
    return {"name": name, "title": title, "phases": workflow.order, "sizes": workflow.sizes}
