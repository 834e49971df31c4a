"""Computes the phases and tasks after a rollback, and the paths that it must keep."""

from msgspec.structs import replace

from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus


def lineage(session: Session, phase: str) -> tuple[frozenset[str], frozenset[str]]:
    """The ancestors and the descendants of the phase."""
    descendants = frozenset(session.workflow.descendants(phase))
    ancestors: set[str] = set()
    waiting = [phase]
    while waiting:
        for need in session.workflow.by_key[waiting.pop()].needs:
            if need not in ancestors:
                ancestors.add(need)
                waiting.append(need)
    return frozenset(ancestors), descendants


def rolled_back(now: Session, past: Session, phase: str, version: int) -> dict[str, PhaseState]:
    """The phases that change in a rollback of `phase` to the session `past`.

    The phase and its ancestors return to their past state, its descendants become pending, all others stay. A phase
    that was in progress becomes pending: its agent has ended.
    """
    ancestors, descendants = lineage(now, phase)
    changed: dict[str, PhaseState] = {}
    for key, present in now.phases.items():
        then = past.phases[key]
        if key in descendants:
            after = then if then.status is Status.SKIPPED else PhaseState(agent=present.agent)
        elif key == phase or key in ancestors:
            after = PhaseState(agent=then.agent) if then.status is Status.IN_PROGRESS else then
        else:
            continue
        after = _continued(present, after, version)
        if after != present:
            changed[key] = after
    return changed


def restored(now: Session, past: Session, version: int) -> dict[str, PhaseState]:
    """The phases that change when all return to their state in `past`, including those in progress."""
    changed: dict[str, PhaseState] = {}
    for key, present in now.phases.items():
        after = _continued(present, past.phases[key], version)
        if after != present:
            changed[key] = after
    return changed


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
    ancestors, descendants = lineage(now, phase)
    return frozenset(
        path
        for key, state in now.phases.items()
        if key != phase and key not in ancestors and key not in descendants
        if state.status is Status.COMPLETED and state != past.phases[key]
        for path in state.artifacts
    )


def live_beside(now: Session, phase: str) -> tuple[str, ...]:
    """The phases in progress that are unrelated to `phase`: a rollback leaves them in progress."""
    ancestors, descendants = lineage(now, phase)
    live = now.with_status(Status.IN_PROGRESS)
    return tuple(key for key in live if key != phase and key not in ancestors and key not in descendants)


def _continued(present: PhaseState, after: PhaseState, version: int) -> PhaseState:
    """The past state with the present counters: attempts, tokens and fences never go back."""
    same_attempt = after.attempt == present.attempt and after.status is not Status.PENDING
    return replace(
        after,
        attempt=present.attempt,
        fence=after.fence if same_attempt else version if after.status is Status.IN_PROGRESS else present.fence,
        started=present.started or after.started,
        tokens=present.tokens,
        pre=present.pre,
        post=present.post,
    )
