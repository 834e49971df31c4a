"""What a rollback makes of the phases, and what it has to leave alone."""

import msgspec

from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus


def lineage(session: Session, phase: str) -> tuple[frozenset[str], frozenset[str]]:
    """What the phase builds on, and what builds on it."""
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
    """The phases that stand otherwise after a rollback to where `past` stood, of which `phase` was the one meant.

    The phase and what it builds on stand as they did; what builds on it has to be done again; everything beside it
    stays as it is. Nothing goes on that was in progress then: whoever did it is gone.
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
    """The phases that stand otherwise when everything stands again as it did in `past`, work in progress too."""
    found: dict[str, PhaseState] = {}
    for key, present in now.phases.items():
        after = _continued(present, past.phases[key], version)
        if after != present:
            found[key] = after
    return found


def tasks_rolled_back(now: Session, past: Session) -> dict[str, str]:
    """Tasks whose work was undone with the files: they stand as they did. What is to be done in them stays as it is.

    Nobody goes on with a task that was in progress then; it is open again.
    """
    if now.tasks_sum == past.tasks_sum:
        return {}
    found: dict[str, str] = {}
    for row in now.tasks:
        then = past.tasks.get(row.id)
        if then is None or then.status is row.status or TaskStatus.CONTAINER in (then.status, row.status):
            continue
        status = TaskStatus.PENDING if then.status is TaskStatus.ACTIVE else then.status
        if status is not row.status:
            found[row.id] = status.value
    return found


def kept_paths(now: Session, past: Session, phase: str) -> frozenset[str]:
    """What phases beside the one that is rolled back have declared since: it stays, as they do."""
    ancestors, descendants = lineage(now, phase)
    return frozenset(
        path
        for key, state in now.phases.items()
        if key != phase and key not in ancestors and key not in descendants
        if state.status is Status.COMPLETED and state != past.phases[key]
        for path in state.artifacts
    )


def live_beside(now: Session, phase: str) -> tuple[str, ...]:
    """Phases in progress that a rollback of `phase` would leave in progress."""
    ancestors, descendants = lineage(now, phase)
    live = now.with_status(Status.IN_PROGRESS)
    return tuple(key for key in live if key != phase and key not in ancestors and key not in descendants)


def _continued(present: PhaseState, after: PhaseState, version: int) -> PhaseState:
    """Counting never goes back: not the attempts, not what was spent, and no token of another attempt is good again."""
    same_attempt = after.attempt == present.attempt and after.status is not Status.PENDING
    return msgspec.structs.replace(
        after,
        attempt=present.attempt,
        fence=after.fence if same_attempt else version if after.status is Status.IN_PROGRESS else present.fence,
        started=present.started or after.started,
        tokens=present.tokens,
        pre=present.pre,
        post=present.post,
    )
