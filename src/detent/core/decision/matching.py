"""Whether a signed statement is about the decision that a commit makes."""

from typing import NamedTuple

from detent.core.decision.statement import Statement
from detent.core.decision.subject import Subject
from detent.core.session.session import Session


class Expected(NamedTuple):
    """The fields that a statement must have."""

    project: str
    session: str
    attempt: int
    #: The name of the decision.
    decision: str
    subject: Subject
    #: The digest of the present files; None if that is not known any more.
    tree: str | None
    #: The first position of the journal that the statement may be about.
    since: int


def expected(session: Session, decision: str, subject: Subject, *, project: str, tree: str | None) -> Expected:
    """The fields that a statement about this decision must have, while the session is as it is."""
    state = session.phases[subject.phase] if subject.phase else None
    return Expected(
        project=project,
        session=session.id,
        attempt=state.attempt if state is not None else 0,
        decision=subject.decision(decision),
        subject=subject,
        tree=tree if subject.about_files else "",
        since=state.fence if state is not None else 0,
    )


def mismatches(statement: Statement, must: Expected) -> list[str]:
    """The fields in which the statement differs, a line each."""
    subject = must.subject
    pairs: dict[str, tuple[str | int, str | int]] = {
        "project": (statement.project, must.project),
        "session": (statement.session, must.session),
        "phase": (statement.phase, subject.phase),
        "gate": (statement.gate, subject.gate),
        "attempt": (statement.attempt, must.attempt),
        "decision": (statement.decision, must.decision),
        "choice": (statement.choice, subject.choice),
        "reason": (statement.reason, subject.reason),
        "stands_for": (statement.stands_for, subject.stands_for),
    }
    wrong = [
        f"{name} is {_shown(stated)}, not {_shown(real)}" for name, (stated, real) in pairs.items() if stated != real
    ]
    if must.tree is not None and statement.tree != must.tree:
        wrong.append("the files are not those that were shown")
    if statement.version < must.since:
        wrong.append(f"it was made at version {statement.version}, before the attempt began at {must.since}")
    return wrong


def _shown(value: str | int) -> str:
    text = str(value)
    return (text if len(text) <= 60 else f"{text[:59]}…") or "empty"
