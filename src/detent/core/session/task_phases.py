"""How the phases PLAN, IMPLEMENT and REVIEW follow the tasks of a session.

| what happened to a task | what follows |
|---|---|
| the first one is started | PLAN is finished, IMPLEMENT begins |
| one is started after IMPLEMENT was left | IMPLEMENT begins again, REVIEW waits |
| the last one is done | IMPLEMENT is finished, REVIEW begins |

Other workflows have phases of their own, which tasks do not move.
"""

from detent.core.gate.evidence import Facts
from detent.core.session.commands import Begin, Command, Finish, Redo
from detent.core.session.decide_phase import decide_phase
from detent.core.session.events import Event, TaskMoved, TaskRemoved
from detent.core.session.evolve import apply
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.lifecycle import Action
from detent.core.task.row import TaskStatus
from detent.errors import GateClosed, Refused

PLAN, IMPLEMENT, REVIEW = "PLAN", "IMPLEMENT", "REVIEW"


def follows_tasks(session: Session) -> bool:
    return session.workflow.order == (PLAN, IMPLEMENT, REVIEW)


def with_phases(session: Session, events: tuple[Event, ...], facts: Facts) -> tuple[Event, ...]:
    """The events, with those of the phases that follow from them."""
    if not follows_tasks(session):
        return events
    moves = [event for event in events if isinstance(event, TaskMoved)]
    if any(move.status == TaskStatus.ACTIVE for move in moves):
        return (*_towards_implement(session, facts), *events)
    fewer = any(isinstance(event, TaskRemoved) for event in events)
    if fewer or any(move.action == Action.DONE for move in moves):
        return (*events, *_towards_review(_after(session, events, facts), facts))
    return events


def _towards_implement(session: Session, facts: Facts) -> tuple[Event, ...]:
    planned = session.phases[PLAN].status
    implemented = session.phases[IMPLEMENT].status
    if implemented is Status.IN_PROGRESS:
        return ()
    if implemented in (Status.COMPLETED, Status.FAILED):
        return _decided(session, Redo(phase=IMPLEMENT, reason="there is more to do", cascade=True), facts)
    finished: tuple[Event, ...] = ()
    if planned is Status.IN_PROGRESS:
        count = session.tasks.leaf_count
        summary = f"planned {count} task{'' if count == 1 else 's'}"
        finished = _decided(session, Finish(phase=PLAN, summary=summary), facts)
    begun = _decided(_after(session, finished, facts), Begin(phase=IMPLEMENT), facts)
    return (*finished, *begun)


def _towards_review(session: Session, facts: Facts) -> tuple[Event, ...]:
    if not session.tasks.is_completed or session.phases[IMPLEMENT].status is not Status.IN_PROGRESS:
        return ()
    count = session.tasks.leaf_count
    try:
        finished = _decided(session, Finish(phase=IMPLEMENT, summary=f"all {count} tasks are done"), facts)
        begun = _decided(_after(session, finished, facts), Begin(phase=REVIEW), facts)
    except (GateClosed, Refused):
        # The task is done all the same; the phase is finished by hand when its gates have opened.
        return ()
    return (*finished, *begun)


def _decided(session: Session, command: Command, facts: Facts) -> tuple[Event, ...]:
    assert isinstance(command, Begin | Finish | Redo)
    return decide_phase(session, command, facts)


def _after(session: Session, events: tuple[Event, ...], facts: Facts) -> Session:
    for event in events:
        session = apply(session, event, at=facts.now, version=session.version + 1)
    return session
