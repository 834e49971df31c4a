"""`completion`: prints the completion script of a shell, and answers its queries."""

import click
from click.shell_completion import ShellComplete, get_completion_class

from detent.cli.request import Request
from detent.cli.verb import verb

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_DETENT_COMPLETE"


@verb("completion", example='eval "$(detent completion bash)"')
@click.argument("shell", type=click.Choice(SHELLS))
def completion_verb(request: Request, shell: str) -> None:
    """Print the completion script of a shell.

    For bash and zsh evaluate it in your shell's start file; for fish write it to
    ~/.config/fish/completions/detent.fish.
    """
    script = script_of(shell)
    request.answer(lambda _: script, {"shell": shell, "script": script})


def script_of(shell: str) -> str:
    from detent.cli.app import GROUP

    known = get_completion_class(shell)
    assert known is not None
    # The plain form: bash's own would first start a bash to ask for its version.
    return ShellComplete.source(known(GROUP, {}, "detent", VARIABLE)).strip()


def complete(instruction: str) -> int:
    """Answer the query of a shell, which is in the environment."""
    from click.shell_completion import shell_complete

    from detent.cli.app import GROUP

    return shell_complete(GROUP, {"obj": Request()}, "detent", VARIABLE, instruction)
