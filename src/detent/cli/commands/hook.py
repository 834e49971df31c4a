"""`hook`, `uninstall`: the agents' side."""

import sys

import click

from detent.cli.request import Request, write_text
from detent.cli.verb import verb
from detent.clients.registry import with_hooks

_CLIENTS = with_hooks()


@verb("hook", example=f"detent hook {_CLIENTS[0]} --explain < payload.json")
@click.argument("client", type=click.Choice(_CLIENTS))
@click.option("--explain", is_flag=True, help="Print what each rule found instead of the answer.")
@click.pass_obj
def hook_verb(request: Request, client: str, *, explain: bool) -> None:  # noqa: ARG001 - every verb has a request
    """Answer a hook event of an agent, or explain the answer.

    The event comes as JSON on standard input. What is installed in agents is a faster way to the same answer; this one
    is for people who want to know why.
    """
    from detent.hooks import answer

    data = sys.stdin.buffer.read()
    text = answer.main([client, *(["--explain"] if explain else [])], data)
    if text:
        write_text(text)


@verb("uninstall", example="detent uninstall --dry-run")
@click.option("--agent", "agents", multiple=True, type=click.Choice(_CLIENTS), help="Only from this one; repeat it.")
@click.option("--dry-run", is_flag=True, help="Show the changes as a diff and change nothing.")
@click.pass_obj
def uninstall_verb(request: Request, *, agents: tuple[str, ...], dry_run: bool) -> None:
    """Remove hooks and instructions from the agents.

    The files are then as they were before.
    """
    from detent.clients import installing
    from detent.engine.policy import Decision

    request.authorize(Decision.UNINSTALL)
    with request.reading() as project:
        root = project.place.root
    plan = installing.plan_removal(root, agents or _CLIENTS)
    if not dry_run:
        installing.apply(plan)
    changed = [change.path for change in plan if not change.path.startswith(".workflow/")]
    request.notices += plan.notes
    said = plan.diff() if dry_run else "\n".join(f"restored {path}" for path in changed) or "nothing was installed"
    request.answer(lambda _: said, {"changed": changed, "diff": plan.diff() if dry_run else None})
