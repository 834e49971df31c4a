"""The invariants, checked against what is really on disk; the same checks end every test.

I1 journal and chain · I2 documents · I3 marker · I4 needs · I5 evidence · I6 redundant fields agree · I7 objects ·
I10 replay.
Looking never changes anything; `fix` rebuilds what can be rebuilt and leaves the rest to people.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import msgspec

from detent.config.place import INTENT
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.doctor.finding import ERROR, WARNING, Finding
from detent.doctor.tasks import check_tasks, fix_markers, fix_tasks
from detent.documents import session as session_document
from detent.documents.checkpoint import INDEX
from detent.documents.state import history_entry, mirror_violations
from detent.engine.project import Project
from detent.engine.projections import checkpoint_files, history
from detent.engine.projections.adopt import STATE_DOCUMENT
from detent.engine.projections.projector import MARKER
from detent.engine.projections.publish import UNREADABLE, edited_documents
from detent.engine.stores import checkout_store
from detent.errors import Corrupt, DetentError, StoreFailed
from detent.store.port import PROJECT, START

#: Where the hook counts its failures.
HOOK_FAILURES = "hook-failures.log"
#: Objects are hashed one by one up to this much of them; `detent checkpoint verify` hashes all.
HASHED_BYTES = 64 * 1024 * 1024
_LOST_OBJECT = "restore .workflow/checkpoints/artifacts from a backup; other checkpoints are not affected"


def check(project: Project) -> list[Finding]:
    """Everything that is not as it should be; empty when all is well."""
    findings: list[Finding] = []
    folded: dict[str, Session] = {}
    for name in project.store.sessions():
        try:
            folded[name] = _replay(project, name, findings)
        except DetentError as error:
            findings.append(_finding("I1", name, error.message, error.way_out or "restore it from a backup"))
    for session in folded.values():
        findings.extend(_check_phases(session))
    findings.extend(_check_markers(project, folded))
    findings.extend(_check_documents(project, folded))
    findings.extend(_check_history(project, folded))
    for name in folded:
        findings.extend(check_tasks(project, name))
    findings.extend(_check_checkpoints(project, folded))
    findings.extend(_check_hooks(project))
    return findings


def fix(project: Project) -> list[Finding]:
    """Rebuild documents, markers and history from the journals; what is left needs a person."""
    lost = _unmarked(project)
    if lost is not None:
        with project.store.lock(PROJECT):
            project.store.put(MARKER + lost, b"")
    project.rebuild()
    mend(project)
    with suppress(Corrupt):
        project.reconcile()
    return check(project)


def mend(project: Project, *, dry_run: bool = False) -> list[str]:
    """What is done about markers and tasks, in words; with `dry_run`, what would be."""
    done = fix_markers(project, dry_run=dry_run)
    for name in project.store.sessions():
        with suppress(Corrupt):
            done += fix_tasks(project, name, dry_run=dry_run)
    return done


def _replay(project: Project, name: str, findings: list[Finding]) -> Session:
    """Fold the whole journal with today's code, from its first line and without the snapshot."""
    session: Session | None = None
    recorded, cursor, more, torn = "", START, True, 0
    while more:
        commits, cursor, torn, more = project.store.read(name, cursor)
        for commit in commits:
            session, recorded = evolve(session, commit), commit.state
    if torn:
        message = f"an unfinished write of {torn} bytes stands behind commit {cursor.version}; nothing was committed"
        findings.append(_finding("I1", name, message, "the next command cuts it off", severity=WARNING))
    if session is None:
        raise DetentError(f"the journal of {name} holds no whole commit")
    if fingerprint(session) != recorded:
        message = f"replaying gives state {fingerprint(session)}, but commit {session.version} recorded {recorded}"
        findings.append(_finding("I10", name, message, "this Detent reads the journal differently: report it"))
    if project.journal(name).session() != session:
        findings.append(
            _finding("I10", name, "its snapshot does not match its journal", f"remove {name}/snapshot.json")
        )
    return session


def _check_phases(session: Session) -> Iterator[Finding]:
    for key in session.workflow.order:
        state = session.phases[key]
        unsettled = session.open_needs(key)
        if state.status is Status.IN_PROGRESS and unsettled:
            yield _finding("I4", session.id, f"{key} is in progress before {', '.join(unsettled)}", "report it")
        if state.status is Status.COMPLETED and not state.summary:
            yield _finding("I5", session.id, f"{key} is completed without saying what was done", "detent redo", WARNING)


def _check_markers(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    marked = [name.removeprefix(MARKER) for name in project.store.names(MARKER)]
    if len(marked) > 1:
        yield _finding("I3", ", ".join(marked), "more than one session is marked active", "detent doctor --fix")
    lost = _unmarked(project)
    if lost in folded and folded[lost].status is SessionStatus.ACTIVE and folded[lost].paused_at is None:
        message = "the state document is about it, but its marker is gone, so no session is active"
        yield _finding("I3", lost, message, "detent doctor --fix")
    for name in marked:
        if name not in project.store.sessions():
            yield _finding("I3", name, "the marker names a session that does not exist", "detent doctor --fix")
        elif name in folded and folded[name].status is not SessionStatus.ACTIVE:
            message = f"the marker names a session that was {folded[name].status}"
            yield _finding("I3", name, message, "any command finishes that, for example detent adopt")


def _unmarked(project: Project) -> str | None:
    """The session that the state document is about, if nothing marks any session as the active one."""
    if project.store.names(MARKER):
        return None
    document = _decoded(project.store.get(STATE_DOCUMENT))
    flow = document.get("active_workflow") if isinstance(document, dict) else None
    name = flow.get("session_id") if isinstance(flow, dict) else None
    return name if name in project.store.sessions() else None


def _check_checkpoints(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    """That every file of every checkpoint can be got back, and that the checkpoints' own documents tell the truth."""
    if project.store.get(INTENT) is not None:
        yield _finding("I7", INTENT, "a rollback was interrupted", "any command that changes something finishes it")
    for name, session in folded.items():
        if session.checkpoint is None:
            continue
        seen: set[str] = set()
        for position in project.checkpoints.positions(name):
            try:
                missing = project.checkpoints.missing(position.event.tree.manifest, seen)
            except DetentError as error:
                missing = [error.message]
            if missing:
                listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
                yield _finding("I7", f"{name} {position.event.name}", f"it lacks {listed}", _LOST_OBJECT)
        yield from _check_checkpoint_files(project, name)
    if project.checkpoints.stored_bytes() <= HASHED_BYTES:
        for damaged in project.checkpoints.objects.verify():
            yield _finding("I7", damaged.digest or damaged.where, f"{damaged.where}: {damaged.reason}", _LOST_OBJECT)


def _check_checkpoint_files(project: Project, name: str) -> Iterator[Finding]:
    for file, wanted in checkpoint_files.expected(project.store, name, project.checkpoints.files):
        found = project.store.get(file)
        if found != wanted:
            what = "is missing" if found is None else "is not what the journal says"
            yield _finding("I2", file, what, "detent doctor --fix")
    if not checkpoint_files.is_indexed(project.store, name):
        yield _finding("I2", INDEX, f"it does not have the checkpoints of {name}", "detent doctor --fix")


def _check_hooks(project: Project) -> Iterator[Finding]:
    """A hook that fails lets through what it does not guard, which should not go unseen."""
    store = checkout_store(project.place.root)
    try:
        lines = (store.get(HOOK_FAILURES) or b"").decode("utf-8", "replace").splitlines()
    except StoreFailed:
        return
    if lines:
        message = f"hooks failed {len(lines)} times, last: {lines[-1][:200]}"
        way_out = f"report it, then remove {store.location(HOOK_FAILURES)}"
        yield _finding("hooks", HOOK_FAILURES, message, way_out, severity=WARNING)


def _check_documents(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    active = project.active()
    names = [f"{name}/{session_document.NAME}" for name in folded]
    pending = edited_documents(project.store, [*names, STATE_DOCUMENT])
    for name in pending:
        yield _finding("I2", name, "it was edited by hand", "detent adopt", severity=WARNING)
    for name, expected in project.documents(folded).items():
        current = project.store.get(name)
        if name not in pending and current != expected:
            what = "is missing" if current is None else "is behind the journal"
            yield _finding("I2", name, what, "any command that changes something rewrites it, or detent adopt")
    if active is not None and STATE_DOCUMENT not in pending:
        for violation in mirror_violations(_decoded(project.store.get(STATE_DOCUMENT))):
            if violation.rule != "V9-C":  # assumes that phases come one after another
                yield _finding("I6", STATE_DOCUMENT, f"{violation.path}: {violation.message}", "detent doctor --fix")


def _check_history(project: Project, folded: dict[str, Session]) -> Iterator[Finding]:
    try:
        entries = {entry.get("session_id"): entry for entry in project.history()}
    except DetentError as error:
        yield _finding("I2", history.NAME, error.message, "detent doctor --fix")
        return
    for name, session in folded.items():
        ended = session.status is not SessionStatus.ACTIVE
        if ended and entries.get(name) != history_entry(session):
            what = "has no line" if name not in entries else "has a line that does not match its journal"
            yield _finding("I2", history.NAME, f"{name} was {session.status} but {what}", "detent doctor --fix")


def _finding(invariant: str, subject: str, message: str, way_out: str, severity: str = ERROR) -> Finding:
    return Finding(invariant=invariant, severity=severity, subject=subject, message=message, way_out=way_out)


def _decoded(data: bytes | None) -> Any:
    try:
        return msgspec.json.decode(data) if data is not None else None
    except UNREADABLE:
        return None
