"""`files`: the files of checkpoints in the place that all machines reach."""

from datetime import timedelta

import click

from detent.cli.request import Request, session_of
from detent.cli.verb import VerbGroup, session_option, verb
from detent.core.counted import counted
from detent.errors import Refused


@verb("list", example="detent files list")
def list_snapshots(request: Request) -> None:
    """List the snapshots that are in the shared place, by session."""
    from detent.engine.checkpoints.travel import travel_of

    with request.reading() as project:
        names = travel_of(project).transport.names()
    request.answer(lambda _: "\n".join(names) or "no snapshot is there", {"snapshots": names})


@verb("bring", example="detent files bring")
@click.option("--yes", is_flag=True, help="Add, replace and remove files here.")
@session_option
def bring_files(request: Request, *, yes: bool, session: str | None) -> None:
    """Bring the files of the newest checkpoint here.

    It is the newest checkpoint of the session, whichever machine took it. Ignored files stay. Files are changed only
    with --yes; take a checkpoint first to keep those that are here.
    """
    from detent.core.checkpoint.manifest import changes
    from detent.engine.checkpoints.travel import Head, put, travel_of

    with request.changing() as project:
        handle = session_of(project, session)
        head = Head(project.store, handle.id).manifest()
        files = travel_of(project).files(handle.id, head)
        present = project.checkpoints.capture(handle.id, store=False).files
        changed = changes(present, files)
        count = sum(map(len, changed))
        if count and not yes:
            doings = zip(("add", "remove", "replace"), changed, strict=True)
            listed = ", ".join(f"{verb} {counted(len(paths), 'file')}" for verb, paths in doings if paths)
            keeping = "detent checkpoint create keeps those here; " if changed.removed or changed.modified else ""
            raise Refused(
                f"this would {listed}, as the checkpoint has them", way_out=f"{keeping}detent files bring --yes does it"
            )
        put(project, handle.id, head, files)
    request.answer(
        lambda _: f"{count} file{' was' if count == 1 else 's were'} changed", {"session": handle.id, "changed": count}
    )


@verb("clean", example="detent files clean --dry-run")
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
def clean_snapshots(request: Request, *, dry_run: bool) -> None:
    """Remove the snapshots of sessions that ended.

    They stay for keep_days of [files] in detent.toml. Of a session that is open all snapshots stay. Snapshots of
    sessions that this project does not know stay too.
    """
    from detent.engine.checkpoints.retention import old_snapshots
    from detent.engine.checkpoints.travel import travel_of

    with request.changing(adopt=False) as project:
        transport = travel_of(project).transport
        names = old_snapshots(project, transport.names(), timedelta(days=project.settings.files.keep_days))
        if not dry_run:
            transport.remove(names)
    done = "would remove" if dry_run else "removed"
    request.answer(lambda _: f"{done} {counted(len(names), 'snapshot')}", {"removed": names, "dry_run": dry_run})


files_verb = VerbGroup(
    "files",
    list_snapshots,
    bring_files,
    clean_snapshots,
    help="List, get or remove files that all machines reach.",
    example="detent files bring",
)
