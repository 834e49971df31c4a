"""Mends journals that were damaged, cut, rewritten or removed. A person decides about each.

Whatever verified, in the journal or in its second copy, is kept. What did not is set aside beside the journal, and the
repair is recorded as an event of the session.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

from detent.config import place as places
from detent.core.actor import Actor
from detent.core.counted import counted
from detent.core.gate.evidence import Facts
from detent.core.session.commands import RecordRepair
from detent.core.session.decide import decide
from detent.core.session.events import TailSetAside
from detent.doctor.finding import ERROR, FIX, WARNING, Finding, finding
from detent.engine.policy import Decision, authorize
from detent.engine.project import Project, check_not_lost
from detent.engine.projections.projector import MARKER
from detent.engine.stores import lost_project, open_store
from detent.engine.workspace import Workspace
from detent.errors import Corrupt, NotFound, UnknownFormat
from detent.store.port import PROJECT
from detent.store.recovery import Condition, Examined, changed_outside


def examine(project: Project, name: str, *, follow: bool = False) -> tuple[Examined | None, list[Finding]]:
    """Examine how far the journal and its second copy verify, and what is wrong; None if the store needs no copies.

    With `follow` a commit that cannot follow those before it is wrong too.
    """
    repairs = project.store.repairs
    if repairs is None:
        return None, []
    examined = repairs.examine(name, follow=follow)
    if examined.condition is not Condition.SOUND:
        error = changed_outside(name, examined)
        message = f"{error.message}. Mended, it has {counted(examined.mended, 'commit')}"
        return examined, [_finding(name, message, str(error.way_out), ERROR)]
    if repairs.problem:
        return examined, []
    if examined.copy_rest:
        message = f"its second copy is damaged behind commit {examined.copied}; the journal has {examined.commits}"
        return examined, [_finding(name, message, FIX, WARNING)]
    if examined.copied < examined.commits:
        message = f"its second copy is {counted(examined.commits - examined.copied, 'commit')} behind"
        if not examined.copied:
            message = "it has no second copy: the copy was removed, or this account has not worked on it yet"
        return examined, [_finding(name, message, "the next command outside of a sandbox catches up", WARNING)]
    return examined, []


def check_copies(project: Project) -> list[Finding]:
    """Whether second copies can be written at all."""
    problem = project.store.repairs.problem if project.store.repairs is not None else ""
    if not problem:
        return []
    message = f"the journals have no second copy outside the project: {problem}"
    return [finding("I1", "second copies", message, "set XDG_STATE_HOME to a directory of yours", WARNING)]


def lost(start: str) -> str:
    """A sentence about the project around `start` whose whole record is gone; empty if there is none."""
    try:
        check_not_lost(start)
    except Corrupt as error:
        return error.message
    return ""


def damaged(project: Project, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The sessions that can be mended, each with a sentence about the damage."""
    for name in names:
        try:
            examined, findings = examine(project, name, follow=True)
        except UnknownFormat:
            # Another Detent wrote it, and can mend it.
            continue
        if examined is not None and examined.condition is not Condition.SOUND:
            yield name, findings[0].message


def mend(project: Project, name: str) -> str:
    """Mend the journal of a session, record that, and describe it. The caller holds no lock."""
    author = authorize(project.actor, Decision.MEND)
    repairs = project.store.repairs
    with suppress(Corrupt):
        project.flush()
    with project.store.lock(PROJECT):
        done = repairs.mend(name) if repairs is not None else None
        project.reread(name)
        if done is None:
            return f"{name} is undamaged"
        if not done.commits:
            project.store.delete(MARKER + name)
            return f"{name} had no commit left; its files are set aside as set-aside-{name}-{done.digest[:8]}"
    event = TailSetAside(
        reason=done.reason, restored=done.restored, bytes=done.bytes, digest=done.digest, kept=done.kept
    )
    command, facts = RecordRepair(done=event), Facts(now=project.clock())
    project.journal(name).commit(lambda session: decide(session, command, facts), actor=author, now=facts.now)
    project.touched(name)
    aside = f", {done.bytes} bytes were set aside as {name}/{done.kept}" if done.bytes else ""
    back = f", {done.restored} came back from its second copy" if done.restored else ""
    return f"mended {name}: {counted(done.commits, 'commit')}{back}{aside}"


def restore_project(start: str, actor: Actor) -> list[str]:
    """Bring back the record of a project whose whole state is gone, and describe what was done."""
    authorize(actor, Decision.MEND)
    project_lost = lost_project(start)
    if project_lost is None:
        raise NotFound(f"nothing is missing around {start}", way_out="detent doctor")
    root, sessions = project_lost
    open_store(places.at_root(root)).put(".gitignore", b"*\n")
    done = []
    for package in dict.fromkeys(name.rpartition("/")[0] for name in sessions):
        with Workspace(root, project=package or None, tolerant=True).change(actor, adopt=False) as project:
            done += [mend(project, name) for name in project.store.sessions()]
            _mark_active(project)
    return done


def forget_project(start: str, actor: Actor) -> list[str]:
    """Remove the second copies of the project around `start`; returns its sessions. Its own files stay."""
    authorize(actor, Decision.FORGET)
    project_lost = lost_project(start)
    root = project_lost[0] if project_lost is not None else places.find(start, tolerant=True)[0].root
    repairs = open_store(places.at_root(root)).repairs
    return repairs.forget_all() if repairs is not None else []


def _mark_active(project: Project) -> None:
    """Mark the session that was at work last: markers have no second copy."""
    latest, chosen = datetime.min.replace(tzinfo=UTC), None
    for name in project.store.sessions():
        try:
            session = project.journal(name).session()
        except Corrupt:
            continue
        # The last note is that of the repair.
        worked_at = session.notes[-2].timestamp if len(session.notes) > 1 else session.started_at
        if not session.has_ended and session.paused_at is None and worked_at > latest:
            latest, chosen = worked_at, name
    if chosen is not None and project.active() is None:
        with project.store.lock(PROJECT):
            project.store.put(MARKER + chosen, b"1")


def _finding(subject: str, message: str, way_out: str, severity: str) -> Finding:
    return finding("I1", subject, message, way_out, severity)
