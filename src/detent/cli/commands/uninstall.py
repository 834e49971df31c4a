"""`uninstall`: removes hooks and instructions from the agents."""

import click

from detent.cli.request import Request
from detent.cli.verb import verb
from detent.clients.registry import with_hooks

_CLIENTS = with_hooks()


@verb("uninstall", example="detent uninstall --dry-run")
@click.option("--agent", "agents", multiple=True, type=click.Choice(_CLIENTS), help="Only from this one; repeat it.")
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff and change nothing.")
def uninstall_verb(request: Request, *, agents: tuple[str, ...], dry_run: bool) -> None:
    """Remove hooks and instructions from the agents.

    The files are then as they were before.
    """
    from detent.clients import installing
    from detent.clients.installing.programs import forget_program
    from detent.engine.policy import Decision
    from detent.engine.stores import user_state

    request.authorize(Decision.UNINSTALL)
    with request.reading() as project:
        root = project.place.root
    plan = installing.plan_removal(root, agents or (*_CLIENTS, installing.SHARED))
    if not dry_run:
        installing.apply(plan)
        forget_program(user_state(), root)
    changes = [change for change in plan if not change.path.startswith(".workflow/")]
    changed = [change.path for change in changes]
    request.notices += plan.notes
    if project.store.sessions() and not agents and not dry_run:
        request.notices.append("the sessions and their second copies are kept; detent forget removes the copies")
    done = [f"{'removed' if change.after is None else 'restored'} {change.path}" for change in changes]
    text = plan.diff() if dry_run else "\n".join(done) or "nothing was installed"
    request.answer(lambda _: text, {"changed": changed, "diff": plan.diff() if dry_run else None})
