"""`workers`: lists the machines that take work of this project."""

from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import verb

if TYPE_CHECKING:
    from detent.render.terminal.canvas import Canvas


@verb("workers", example="detent workers --on temporal://temporal.example.org:7233/default")
@click.option("--on", "address", metavar="URL", required=True, help="temporal://HOST:7233/NAMESPACE.")
def workers_verb(request: Request, *, address: str) -> None:
    """List the machines that take work of this project.

    It also names the labels that a phase needs and none of them has. A worker is listed for five minutes after it asked
    for work last. One that waits asks once a minute.
    """
    from detent.render.elapsed import elapsed
    from detent.worker.address import parse_address
    from detent.worker.listing import list_workers

    parsed = parse_address(address)
    with request.reading() as project:
        workers, lacking = list_workers(project, parsed)
        now = project.clock()

    def text(canvas: "Canvas") -> str:
        lines = [f"{each.identity}; last asked {elapsed(each.seen, now)} ago" for each in workers]
        lines = [*(lines or [f"no worker takes work from {parsed}"]), *(each.describe() for each in lacking)]
        return "\n".join(part for line in lines for part in canvas.wrap(line))

    request.answer(text, lambda: {"workers": workers, "lacking": lacking})
