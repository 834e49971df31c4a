"""Why a session cannot move on, and what would move it."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.timeout import overdue


class Obstacle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    phase: str | None = None
    message: str
    way_out: str


def obstacles(
    session: Session, judged: Mapping[str, tuple[Judgement, ...]] = {}, *, now: datetime | None = None
) -> tuple[Obstacle, ...]:
    """What holds the session, nearest first; empty if a phase can begin right now and none is in progress."""
    if session.status is not SessionStatus.ACTIVE:
        return (Obstacle(message=f"the session is {session.status}", way_out='detent start WORKFLOW "TASK"'),)
    people = [
        Obstacle(phase=entry.phase, message=entry.detail, way_out="detent resolve retry|skip|cancel")
        for entry in session.escalations
    ]
    questions = [
        Obstacle(phase=one.phase, message=f"asks: {one.text}", way_out=f"detent reply {one.id} ANSWER")
        for one in session.questions
    ]
    reviews = [
        Obstacle(phase=key, message="finished, and waits for a person's review", way_out="detent review continue")
        for key in session.awaiting_review
    ]
    closed = [
        Obstacle(phase=key, message=f"gate {one.gate} is {one.verdict}: {one.reason}", way_out=one.way_out)
        for key, verdicts in judged.items()
        for one in verdicts
        if one.verdict is not Verdict.PASS
    ]
    held = {one.phase for one in closed}
    late = [
        Obstacle(
            phase=one.phase,
            message=f"in progress for {one.minutes} minutes, and {one.limit} were meant for it",
            way_out=f"detent finish {one.phase} -m SUMMARY, or detent redo {one.phase} for a new attempt",
        )
        for one in (overdue(session, now) if now is not None else ())
    ]
    failed = [
        Obstacle(
            phase=key,
            message=f"attempt {session.phases[key].attempt} failed: {_first_line(session.phases[key].error)}",
            way_out=f"detent redo {key}, or detent skip {key} --reason …",
        )
        for key in session.with_status(Status.FAILED)
    ]
    live = [
        Obstacle(
            phase=key,
            message=f"attempt {state.attempt} is in progress with {state.agent or 'somebody'}",
            way_out=f"detent finish {key} -m SUMMARY",
        )
        for key in session.with_status(Status.IN_PROGRESS)
        for state in (session.phases[key],)
        if key not in held
    ]
    waiting = [
        Obstacle(phase=key, message=f"waits for {', '.join(unsettled)}", way_out=f"detent why {unsettled[0]}")
        for key in session.with_status(Status.PENDING)
        if (unsettled := session.open_needs(key))
    ]
    return (*people, *questions, *reviews, *failed, *closed, *late, *live, *waiting)


def _first_line(text: str | None) -> str:
    return (text or "no reason was given").partition("\n")[0]
