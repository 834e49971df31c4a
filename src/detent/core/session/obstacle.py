"""Obstacles: the reasons why a session waits, each with the way out."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.open_decision import ANYONE, View, open_decisions
from detent.core.session.phase_name import phase_name
from detent.core.session.session import Session
from detent.core.session.status import Status


class Obstacle(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    phase: str | None = None
    message: str
    way_out: str


class Overdue(msgspec.Struct, frozen=True, kw_only=True):
    """A phase whose attempt exceeds its `timeout_minutes`. It is reported and not stopped."""

    phase: str
    minutes: int
    limit: int


def obstacles(
    session: Session,
    judgements: Mapping[str, tuple[Judgement, ...]] = {},
    *,
    now: datetime | None = None,
    view: View = ANYONE,
) -> tuple[Obstacle, ...]:
    """The obstacles of the session, most urgent first; empty if a phase can begin and none is in progress."""
    if session.has_ended:
        return (Obstacle(message=f"the session is {session.status}", way_out='detent start WORKFLOW "TASK"'),)
    decisions = [
        Obstacle(phase=entry.phase, message=entry.what, way_out=entry.command)
        for entry in open_decisions(session, {}, view)
    ]
    closed = [
        Obstacle(phase=key, message=f"gate {entry.gate} is {entry.verdict}: {entry.reason}", way_out=entry.way_out)
        for key, entries in judgements.items()
        for entry in entries
        if entry.verdict is not Verdict.PASS
    ]
    held = {obstacle.phase for obstacle in closed}
    overdue_phases = [
        Obstacle(
            phase=late.phase,
            message=f"in progress for {late.minutes} minutes; its limit is {late.limit}",
            way_out=f"detent finish {late.phase} -m SUMMARY, or detent redo {late.phase} for a new attempt",
        )
        for late in (overdue(session, now) if now is not None else ())
    ]
    live = [
        Obstacle(
            phase=key,
            message=f"attempt {state.attempt} is in progress{f' with {state.agent}' if state.agent else ''}",
            way_out=f"detent finish {key} -m SUMMARY",
        )
        for key in session.in_progress
        for state in (session.phases[key],)
        if key not in held
    ]
    waiting = [
        Obstacle(
            phase=key,
            message=f"waits for {', '.join(phase_name(session, need) for need in unsettled)}",
            way_out=f"detent why {unsettled[0]}",
        )
        for key in session.with_status(Status.PENDING)
        if (unsettled := session.open_needs(key))
    ]
    return (*decisions, *closed, *overdue_phases, *live, *waiting)


def overdue(session: Session, now: datetime) -> tuple[Overdue, ...]:
    """The phases in progress whose attempt exceeds its limit, in graph order."""
    phases = []
    for key in session.in_progress:
        limit, begun = session.workflow.by_key[key].timeout_minutes, session.phases[key].begun
        minutes = int((now - begun).total_seconds() // 60) if begun is not None else 0
        if limit is not None and minutes > limit:
            phases.append(Overdue(phase=key, minutes=minutes, limit=limit))
    return tuple(phases)
