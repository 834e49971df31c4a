"""`init`: makes a directory a project."""

import os
from collections import Counter

import click

from detent.cli.request import Request
from detent.cli.verb import verb
from detent.clients.registry import with_hooks

_CLIENTS = with_hooks()


@verb("init", example=f"detent init --agent {_CLIENTS[0]} --agent {_CLIENTS[1]}")
@click.option(
    "--agent", "agents", multiple=True, type=click.Choice(_CLIENTS), help="Install hooks in this client; repeat it."
)
@click.option("--dry-run", is_flag=True, help="Show what --agent would change as a diff, and change nothing.")
def init_verb(request: Request, *, agents: tuple[str, ...], dry_run: bool) -> None:
    """Make a directory a project, and install hooks in agents.

    The state is in .workflow/, which git ignores until you remove .workflow/.gitignore. A detent.toml is optional.
    --agent adds hooks, instructions and agent definitions to that client's files in the project. Existing content is
    not touched, and detent uninstall removes what was added.
    """
    from detent.clients import installing
    from detent.engine.project import init_project
    from detent.engine.stores import open_store

    if dry_run:
        diff = installing.plan(os.path.realpath(request.directory), agents).diff()
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
    """The paths; a directory with more than three of them replaces its files."""
    count = Counter(os.path.dirname(path) for path in paths)
    return list(
        dict.fromkeys(
            f"{directory}/ ({count[directory]} files)" if directory and count[directory] > 3 else path
            for path in paths
            for directory in (os.path.dirname(path),)
        )
    )
