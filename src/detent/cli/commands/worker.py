"""`worker`: takes work of other machines, scheduled by Temporal."""

import asyncio

import click

from detent.cli.request import Request, Usage, print_error, write_json
from detent.cli.verb import verb
from detent.core.counted import counted

#: `--once` ends when there was nothing to do for this long.
IDLE_S = 10.0


def split_labels(text: str) -> tuple[str, ...]:
    """Labels that commas separate. `Usage` for one that cannot be used."""
    from detent.worker.queues import MAX_LABEL, MAX_LABELS

    labels = tuple(sorted({label.strip() for label in text.split(",") if label.strip()}))
    for label in labels:
        if len(label) > MAX_LABEL or not all(sign.isalnum() or sign in "-_." for sign in label):
            raise Usage(f"{label!r} is no label: letters, digits, -, _ and ., {MAX_LABEL} at most")
    if len(labels) > MAX_LABELS:
        raise Usage(f"{len(labels)} labels are too many; {MAX_LABELS} at most")
    return labels


@verb("worker", example="detent worker --on temporal://temporal.example.org:7233/default --labels gpu,linux")
@click.option("--on", "address", metavar="URL", required=True, help="temporal://HOST:7233/NAMESPACE.")
@click.option("--labels", default="", metavar="L,…", help="Labels of this machine; [run.labels] routes phases to them.")
@click.option(
    "--slots", default=4, show_default=True, type=click.IntRange(1, 64), help="Jobs at once, for each set of labels."
)
@click.option(
    "--once",
    "until_idle",
    is_flag=True,
    help=f"End after {IDLE_S:g} s without work: for a CI runner or a Kubernetes Job.",
)
def worker_verb(request: Request, *, address: str, labels: str, slots: int, until_idle: bool) -> None:
    """Take work of other machines, scheduled by Temporal.

    It works for runs of this project that were started with detent run --on.

    Each job gets its own tree, made from the newest checkpoint. Agents, programs and settings are those of this
    machine. SIGTERM or Ctrl-C drains: no new job is taken, and running ones are finished. A second one ends the jobs,
    and another worker begins them again. TLS and API keys are those of Temporal's own configuration (TEMPORAL_…).
    """
    from detent.engine.checkpoints.travel import travel_of
    from detent.worker.address import parse_address
    from detent.worker.queues import label_sets
    from detent.worker.serve import Offer, serve

    parsed, offered = parse_address(address), split_labels(labels)
    with request.reading() as project:
        travel_of(project)
        directory, package = project.place.root, project.place.project
        asked = {label for labels in label_sets(project.settings) for label in labels}

    def note(text: str) -> None:
        if request.json:
            write_json({"notice": text})
        else:
            print_error(text)

    def ready(queues: list[str]) -> None:
        if request.json:
            write_json({"ready": True, "on": str(parsed), "queues": queues, "labels": list(offered)})
        else:
            takes = f"takes work from {parsed}, {counted(slots, 'slot')}{''.join(f', {each}' for each in offered)}"
            print_error(f"ready: {takes}; Ctrl-C drains")
        if unknown := [label for label in offered if label not in asked]:
            note(f"no phase asks for {', '.join(unknown)}: [run.labels] in detent.toml of this checkout")

    offer = Offer(offered, slots, IDLE_S if until_idle else None)
    done = asyncio.run(serve(directory, package, parsed, offer, ready=ready, note=note))
    request.answer(lambda _: f"drained; activities done: {done}", {"activities": done})
