"""The transition table of tasks. A missing cell is a refusal, which lists the allowed actions.

Rows may be added freely; removing one would make recorded journals unreadable.
"""

from enum import StrEnum

from detent.core.task.plan import Plan
from detent.core.task.row import TaskStatus
from detent.errors import Refused


class Action(StrEnum):
    START = "start"
    DONE = "done"
    FAIL = "fail"
    BLOCK = "block"
    UNBLOCK = "unblock"
    #: Continue where a person was asked.
    RESUME = "resume"
    RETRY = "retry"
    #: Give back unfinished, after a pause, a dead worker or an interruption.
    RELEASE = "release"
    #: Hand on by the process that holds it, which ends before the work does.
    KEEP = "keep"
    REOPEN = "reopen"
    SPLIT = "split"
    #: Become a task again after all parts are removed.
    RESTORE = "restore"


TRANSITIONS: dict[tuple[TaskStatus, Action], TaskStatus] = {
    (TaskStatus.PENDING, Action.START): TaskStatus.ACTIVE,
    (TaskStatus.PENDING, Action.BLOCK): TaskStatus.BLOCKED,
    (TaskStatus.PENDING, Action.SPLIT): TaskStatus.CONTAINER,
    (TaskStatus.ACTIVE, Action.DONE): TaskStatus.COMPLETED,
    (TaskStatus.ACTIVE, Action.FAIL): TaskStatus.FAILED,
    (TaskStatus.ACTIVE, Action.BLOCK): TaskStatus.BLOCKED,
    (TaskStatus.ACTIVE, Action.RELEASE): TaskStatus.PENDING,
    (TaskStatus.ACTIVE, Action.KEEP): TaskStatus.ACTIVE,
    (TaskStatus.BLOCKED, Action.UNBLOCK): TaskStatus.PENDING,
    (TaskStatus.BLOCKED, Action.RESUME): TaskStatus.ACTIVE,
    (TaskStatus.FAILED, Action.RETRY): TaskStatus.PENDING,
    (TaskStatus.COMPLETED, Action.REOPEN): TaskStatus.PENDING,
    (TaskStatus.CONTAINER, Action.RESTORE): TaskStatus.PENDING,
}
#: Actions that follow from other commands or change no status, so that no status asks for them.
_IMPLIED = (Action.SPLIT, Action.RESTORE, Action.KEEP)
#: Statuses of tasks that may be replanned.
REPLANNABLE = (TaskStatus.PENDING, TaskStatus.BLOCKED, TaskStatus.FAILED)


def allowed(status: TaskStatus) -> tuple[Action, ...]:
    return tuple(action for (from_, action) in TRANSITIONS if from_ is status)


def next_status(id: str, status: TaskStatus, action: Action) -> TaskStatus:  # noqa: A002
    """The status after `action`. Starting an active task is refused, so that only one of two workers gets it."""
    after = TRANSITIONS.get((status, action))
    if after is None:
        raise Refused(f"{id} is {status}: {action} is not possible; allowed: {', '.join(allowed(status))}")
    return after


def action_for(id: str, status: TaskStatus, wanted: TaskStatus) -> Action | None:  # noqa: A002
    """The action that gives a task the status `wanted`; None if it has it."""
    if status is wanted:
        return None
    ways = {TRANSITIONS[status, action]: action for action in allowed(status) if action not in _IMPLIED}
    if wanted not in ways:
        raise Refused(f"{id} is {status} and cannot become {wanted}; allowed: {', '.join(ways)}")
    return ways[wanted]


def check_start(plan: Plan, id: str) -> None:  # noqa: A002
    """Refuse to start a task that is not ready; the refusal names what it waits for."""
    if not plan.is_leaf(id):
        parts = ", ".join(plan.children(id))
        way_out = f"start one of {parts}" if parts else None
        raise Refused(f"{id} is a container: its subtasks are what is done", way_out=way_out)
    next_status(id, plan[id].status, Action.START)
    if waits := plan.waiting_for(id):
        raise Refused(f"{id} waits for {', '.join(waits)}", way_out="detent task next gives another one")


def possibly_stale(plan: Plan, id: str) -> tuple[str, ...]:  # noqa: A002
    """Completed tasks that depend on `id`, directly or not, and may be out of date when it is reopened."""
    return tuple(other for other in plan.descendants(id) if plan[other].status is TaskStatus.COMPLETED)
