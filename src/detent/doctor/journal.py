"""Checks the journal of a session.

I1: its versions are contiguous and its chain verifies. I4: a phase is in progress only after all that it needs.
I5: a completed phase says what was done. I10: replaying it gives the recorded state, and so does the snapshot.
"""

from collections.abc import Iterator

from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.doctor.finding import WARNING, Finding, finding
from detent.engine.project import Project
from detent.errors import DetentError
from detent.store.port import START


def replay(project: Project, name: str, findings: list[Finding]) -> Session:
    """The state after the whole journal, computed from its first commit without the snapshot."""
    session: Session | None = None
    cursor, more, torn = START, True, 0
    differing = ""
    while more:
        commits, cursor, torn, more = project.store.read(name, cursor)
        for commit in commits:
            session = evolve(session, commit)
            state = fingerprint(session)
            if state != commit.state and not differing:
                differing = f"replaying gives state {state}, but commit {commit.version} recorded {commit.state}"
    if torn:
        message = f"an unfinished write of {torn} bytes stands behind commit {cursor.version}; nothing was committed"
        findings.append(finding("I1", name, message, "the next command cuts it off", severity=WARNING))
    if session is None:
        raise DetentError(f"the journal of {name} holds no whole commit")
    if differing:
        way_out = "another program wrote that commit, or this Detent reads it differently: report it"
        findings.append(finding("I10", name, differing, way_out))
    if project.journal(name).session() != session:
        findings.append(finding("I10", name, "its snapshot does not match its journal", f"remove {name}/snapshot.json"))
    return session


def check_phases(session: Session) -> Iterator[Finding]:
    for key in session.workflow.order:
        state = session.phases[key]
        unsettled = session.open_needs(key)
        if state.status is Status.IN_PROGRESS and unsettled:
            yield finding("I4", session.id, f"{key} is in progress before {', '.join(unsettled)}", "report it")
        if state.status is Status.COMPLETED and not state.summary:
            yield finding("I5", session.id, f"{key} is completed without saying what was done", "detent redo", WARNING)
