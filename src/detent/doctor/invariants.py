"""Checks all invariants against the disk, and repairs what can be rebuilt; the same checks end every test.

One module checks one family: `journal` (I1, I4, I5, I10), `evidence` (I5), `documents` (I2, I6), `markers` (I3),
`checkpoints` (I7, I2), `tasks` (I8, I9). A check never changes anything.
"""

from collections.abc import Iterator
from contextlib import suppress

from detent.config.place import CONFIG, read_settings
from detent.core.counted import counted
from detent.core.session.session import Session
from detent.doctor import mending
from detent.doctor.checkpoints import check_checkpoints
from detent.doctor.documents import check_documents, check_history, shown_here
from detent.doctor.evidence import check_evidence
from detent.doctor.finding import WARNING, Finding, finding
from detent.doctor.journal import check_phases, replay
from detent.doctor.markers import check_markers, fix_markers, unmarked
from detent.doctor.tasks import check_tasks, fix_tasks
from detent.engine.policy import Decision, authorize
from detent.engine.project import Project
from detent.engine.projections.projector import MARKER
from detent.engine.stores import checkout_store
from detent.errors import Corrupt, DetentError, Invalid, StoreFailed
from detent.store.port import PROJECT
from detent.store.recovery import Condition

#: The file in which the hook counts its failures.
HOOK_FAILURES = "hook-failures.log"


def check(project: Project) -> list[Finding]:
    """Every violated invariant."""
    findings: list[Finding] = []
    sessions: dict[str, Session] = {}
    for name in project.store.sessions():
        try:
            examined, problems = mending.examine(project, name)
            findings.extend(problems)
            if examined is None or examined.condition is Condition.SOUND:
                sessions[name] = replay(project, name, findings)
        except DetentError as error:
            findings.append(finding("I1", name, error.message, error.way_out or "restore it from a backup"))
    findings.extend(mending.check_copies(project))
    findings.extend(_check_settings(project))
    for session in sessions.values():
        findings.extend(check_phases(session))
        findings.extend(check_evidence(project, session))
    findings.extend(check_markers(project, sessions))
    shown = shown_here(project, sessions)
    findings.extend(check_documents(project, shown))
    findings.extend(check_history(project, shown))
    for name in sessions:
        findings.extend(check_tasks(project, name, files=name in shown))
    findings.extend(check_checkpoints(project, sessions, shown))
    findings.extend(_check_hooks(project))
    findings.extend(finding("store", project.store.location(""), *each, WARNING) for each in project.store.warnings())
    return findings


def fix(project: Project) -> list[Finding]:
    """Rebuild documents, markers and history from the journals; returns what needs a person. Notices say what was done.

    Journals are left as they are: mending one is a person's decision.
    """
    authorize(project.actor, Decision.FIX)
    for name in project.store.sessions():
        if project.store.repairs is not None:
            project.store.repairs.refresh(name, verify=True)
    lost = unmarked(project)
    if lost is not None:
        with project.store.lock(PROJECT):
            project.store.put(MARKER + lost, b"")
    project.rebuild()
    project.notices.extend(repair(project))
    with suppress(Corrupt):
        project.notices.extend(adoption.describe() for adoption in project.reconcile())
    return check(project)


def repair(project: Project, *, dry_run: bool = False) -> list[str]:
    """Repair markers and tasks, and describe each repair; with `dry_run`, only describe them."""
    done = fix_markers(project, dry_run=dry_run)
    for name in project.store.sessions():
        with suppress(Corrupt):
            done += fix_tasks(project, name, dry_run=dry_run)
    return done


def _check_settings(project: Project) -> Iterator[Finding]:
    try:
        read_settings(project.place.root)
    except Invalid as error:
        message = f"{error.message}; every verb but doctor refuses to work with it"
        yield finding("settings", CONFIG, message, str(error.way_out))


def _check_hooks(project: Project) -> Iterator[Finding]:
    """Hook failures, because a hook that fails lets through calls that it does not guard."""
    store = checkout_store(project.place.root)
    try:
        lines = (store.get(HOOK_FAILURES) or b"").decode("utf-8", "replace").splitlines()
    except StoreFailed:
        return
    if lines:
        message = f"hooks failed {counted(len(lines), 'time')}, last: {lines[-1][:200]}"
        way_out = f"report it, then remove {store.location(HOOK_FAILURES)}"
        yield finding("hooks", HOOK_FAILURES, message, way_out, severity=WARNING)
