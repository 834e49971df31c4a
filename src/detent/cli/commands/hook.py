"""`hook`: answers a hook event of an agent."""

import sys

import click

from detent.cli.request import Request, write_text
from detent.cli.verb import verb
from detent.clients.registry import with_hooks

_CLIENTS = with_hooks()


@verb("hook", example=f"detent hook {_CLIENTS[0]} --explain < payload.json")
@click.argument("client", type=click.Choice(_CLIENTS))
@click.option(
    "--plugin",
    is_flag=True,
    help="The event comes from a plugin, whose hooks stand back where the project has its own.",
)
@click.option("--explain", is_flag=True, help="Print the result of each rule instead of the answer.")
def hook_verb(request: Request, client: str, *, plugin: bool, explain: bool) -> int:  # noqa: ARG001 - every verb has a request
    """Answer a hook event of an agent, or explain the answer.

    The event comes as JSON on standard input. Installed hooks call a faster entry point with the same answers; this
    verb is for debugging them.
    """
    from detent.hooks import answer

    if not explain:
        return answer.respond([client, *(["--plugin"] if plugin else [])])
    write_text(answer.main([client, "--explain"], sys.stdin.buffer.read()))
    return 0
