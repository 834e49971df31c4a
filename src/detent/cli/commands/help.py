"""`help`: shows the help of a verb, or the list of verbs."""

import click

from detent.cli.request import Request
from detent.cli.verb import verb


@verb("help", example="detent help approve")
@click.argument("words", nargs=-1, metavar="[VERB]...")
def help_verb(request: Request, words: tuple[str, ...]) -> None:
    """Show the help of a verb, or the list of verbs."""
    from detent.cli.app import invoke

    invoke([*words, "--help"], request)
