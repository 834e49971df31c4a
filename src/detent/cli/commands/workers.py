"""`workers`: lists the machines that take work of this project."""

import click

from detent.cli.request import Request
from detent.cli.verb import verb


@verb("workers", example="detent workers --on temporal://temporal.example.org:7233/default")
@click.option("--on", "address", metavar="URL", required=True, help="temporal://HOST:7233/NAMESPACE.")
def workers_verb(request: Request, *, address: str) -> None:
    """List the machines that take work of this project.

    Those that asked for work in the last five minutes.
    """
    from detent.worker.address import parse_address
    from detent.worker.listing import list_workers

    parsed = parse_address(address)
    with request.reading() as project:
        workers = list_workers(project, parsed)
    lines = [f"{worker.identity}  {worker.queue}  last asked {worker.seen}" for worker in workers]
    request.answer(lambda _: "\n".join(lines) or f"no worker takes work from {parsed}", lambda: {"workers": workers})
