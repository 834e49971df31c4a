"""Computes the phases and tasks after a rollback, and the paths that it must keep."""

from collections.abc import Mapping

from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus

#: The phases that a rollback changes, and the tasks by their new status.
Effects = tuple[dict[str, PhaseState], dict[str, str]]


def effects(now: Session, past: Session, phase: str, version: int, *, only_paths: bool, is_undo: bool) -> Effects:
    """The effects of commit `version` that rolls `phase` back to the session `past`; none if it is about paths."""
    if only_paths:
        return {}, {}
    phases = restored(now, past, version) if is_undo else rolled_back(now, past, phase, version)
    return phases, tasks_rolled_back(now, past)


def rolled_back(now: Session, past: Session, phase: str, version: int) -> dict[str, PhaseState]:
    """The phases that change in a rollback of `phase` to the session `past`.

    The phase and its ancestors return to their past state, its descendants become pending, all others stay. A phase
    that was in progress becomes pending: its agent has ended.
    """
    states: dict[str, PhaseState] = {}
    for key in _with_ancestors(now, phase):
        then = past.phases[key]
        states[key] = PhaseState(agent=then.agent) if then.status is Status.IN_PROGRESS else then
    for key in now.workflow.descendants(phase):
        then = past.phases[key]
        states[key] = then if then.status is Status.SKIPPED else PhaseState(agent=now.phases[key].agent)
    return _changes(now, {key: states[key] for key in now.workflow.order if key in states}, version)


def restored(now: Session, past: Session, version: int) -> dict[str, PhaseState]:
    """The phases that change when all return to their state in `past`, including those in progress."""
    return _changes(now, past.phases, version)


def tasks_rolled_back(now: Session, past: Session) -> dict[str, str]:
    """The tasks that return to their past status, because a rollback undoes their work. Their documents stay.

    A task that was in progress becomes pending.
    """
    if now.tasks_sum == past.tasks_sum:
        return {}
    changed: dict[str, str] = {}
    for row in now.tasks:
        then = past.tasks.get(row.id)
        if then is None or then.status is row.status or TaskStatus.CONTAINER in (then.status, row.status):
            continue
        status = TaskStatus.PENDING if then.status is TaskStatus.ACTIVE else then.status
        if status is not row.status:
            changed[row.id] = status.value
    return changed


def kept_paths(now: Session, past: Session, phase: str) -> frozenset[str]:
    """The artifacts that unrelated phases have completed since `past`; a rollback keeps them."""
    related = _related(now, phase)
    return frozenset(
        path
        for key in now.with_status(Status.COMPLETED)
        if key not in related and now.phases[key] != past.phases[key]
        for path in now.phases[key].artifacts
    )


def live_beside(now: Session, phase: str) -> tuple[str, ...]:
    """The phases in progress that are unrelated to `phase`: a rollback leaves them in progress."""
    related = _related(now, phase)
    return tuple(key for key in now.in_progress if key not in related)


def _related(session: Session, phase: str) -> set[str]:
    return _with_ancestors(session, phase).union(session.workflow.descendants(phase))


def _with_ancestors(session: Session, phase: str) -> set[str]:
    keys, waiting = {phase}, [phase]
    while waiting:
        new = set(session.workflow.by_key[waiting.pop()].needs) - keys
        keys |= new
        waiting += new
    return keys


def _changes(now: Session, states: Mapping[str, PhaseState], version: int) -> dict[str, PhaseState]:
    """The part of `states` that differs from the present, with the present counters."""
    after = {key: _continued(now.phases[key], state, version) for key, state in states.items()}
    return {key: state for key, state in after.items() if state != now.phases[key]}


def _continued(present: PhaseState, after: PhaseState, version: int) -> PhaseState:
    """The past state with the present counters: attempts, tokens and fences never go back."""
    same_attempt = after.attempt == present.attempt and after.status is not Status.PENDING
    fence = after.fence if same_attempt else version if after.status is Status.IN_PROGRESS else present.fence
    return present.rolled_back(after, fence=fence, started=present.started or after.started)
