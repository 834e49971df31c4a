"""Checks the checkpoints of all sessions.

I7: every object that a checkpoint names exists and hashes to its name, and no rollback is half done.
I2: the documents and the index of the checkpoints equal what the journal says.
"""

from collections.abc import Iterator

from detent.config.place import INTENT
from detent.core.counted import counted, listed
from detent.core.session.session import Session
from detent.doctor.finding import FIX, WARNING, Finding, finding
from detent.documents.checkpoint import INDEX
from detent.engine.bundles.importing import without_files
from detent.engine.checkpoints.travel import snapshot_name
from detent.engine.project import Project
from detent.engine.projections import checkpoint_files
from detent.errors import DetentError

#: Objects are hashed up to this size in total; `detent checkpoint verify` hashes all.
HASHED_BYTES = 64 * 1024 * 1024
_ADD_FILES = "detent import FILE, with a bundle that detent export bundle --with-files made"
_ELSEWHERE = "go back to it on the machine that took it; [files] in detent.toml lets checkpoints travel: docs/scale.md"
_LOST_OBJECT = "restore .workflow/checkpoints/artifacts from a backup; other checkpoints are not affected"


def check_checkpoints(
    project: Project, folded: dict[str, Session], shown: dict[str, Session] | None = None
) -> Iterator[Finding]:
    """`shown`: the sessions whose documents are on this machine; all of them if it is left out."""
    if project.store.get(INTENT) is not None:
        yield finding("I7", INTENT, "a rollback was interrupted", "any command that changes something finishes it")
    shared = _shared_snapshots(project)
    for name, session in folded.items():
        if session.checkpoint is None:
            continue
        seen: set[str] = set()
        lacking = without_files(project.store, name)
        if lacking is not None:
            message = "it was imported without the contents of files, so its checkpoints of before cannot be restored"
            yield finding("I7", name, message, _ADD_FILES, WARNING)
        for position in project.checkpoints.positions(name):
            if lacking is not None and position.version <= lacking.commits:
                continue
            try:
                missing = project.checkpoints.missing(position.event.tree.manifest, seen)
            except DetentError as error:
                missing = [error.message]
            if missing and project.store.is_shared:
                # Objects are of one machine: these may never have been here. A command that needs them gets them.
                if snapshot_name(name, position.event.tree.manifest) in shared:
                    continue
                message = f"its files are not on this machine: {counted(len(missing), 'object')} missing"
                yield finding("I7", f"{name} {position.event.name}", message, _ELSEWHERE, WARNING)
            elif missing:
                yield finding("I7", f"{name} {position.event.name}", f"it lacks {listed(missing)}", _LOST_OBJECT)
            archive = position.rollback.archive if position.rollback is not None else None
            if archive is None or project.store.is_shared:
                continue
            if archive not in seen and archive not in project.checkpoints.objects:
                seen.add(archive)
                message = f"the list of the files that its rollback replaced is missing (object {archive})"
                yield finding("I7", f"{name} {position.event.name}", message, _LOST_OBJECT)
        if shown is None or name in shown:
            yield from _check_files(project, name)
    if project.checkpoints.stored_bytes() <= HASHED_BYTES:
        for damaged in project.checkpoints.objects.verify():
            yield finding("I7", damaged.digest or damaged.where, f"{damaged.where}: {damaged.reason}", _LOST_OBJECT)


def _shared_snapshots(project: Project) -> set[str]:
    """The names of the snapshots that all machines reach."""
    travel = project.checkpoints.travel
    try:
        return set(travel.transport.names()) if travel is not None and project.store.is_shared else set()
    except DetentError:
        return set()


def _check_files(project: Project, name: str) -> Iterator[Finding]:
    for file, wanted in checkpoint_files.expected(project.store, name, project.checkpoints.files):
        data = project.store.get(file)
        if data != wanted:
            what = "is missing" if data is None else "is not what the journal says"
            yield finding("I2", file, what, FIX)
    if not checkpoint_files.is_indexed(project.store, name):
        yield finding("I2", INDEX, f"it does not have the checkpoints of {name}", FIX)
