"""All that may happen to a task, as one table. A missing cell is the refusal, which lists what is allowed.

Rows may be added freely; removing one would make old journals unreadable.
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
    #: Go on where a person was asked.
    RESUME = "resume"
    RETRY = "retry"
    #: Given back unfinished: a pause, a dead worker, an interruption.
    RELEASE = "release"
    #: Handed on by the process that held it, which ends before the work does.
    KEEP = "keep"
    REOPEN = "reopen"
    SPLIT = "split"
    #: All parts were removed, so the task is whole again.
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
#: What follows from other commands, or changes no status: nobody asks for it by naming a status.
_BY_OTHER_MEANS = (Action.SPLIT, Action.RESTORE, Action.KEEP)
#: What may be planned anew.
REPLANNABLE = (TaskStatus.PENDING, TaskStatus.BLOCKED, TaskStatus.FAILED)


def allowed(status: TaskStatus) -> tuple[Action, ...]:
    return tuple(action for (from_, action) in TRANSITIONS if from_ is status)


def next_status(id: str, status: TaskStatus, action: Action) -> TaskStatus:  # noqa: A002
    """Where `action` leads. Starting what is active is refused: only one of two workers may win."""
    found = TRANSITIONS.get((status, action))
    if found is None:
        raise Refused(f"{id} is {status}: {action} is not possible; allowed: {', '.join(allowed(status))}")
    return found


def action_for(id: str, status: TaskStatus, wanted: TaskStatus) -> Action | None:  # noqa: A002
    """What has to happen for a task to become `wanted`; nothing if it already is."""
    if status is wanted:
        return None
    ways = {TRANSITIONS[status, action]: action for action in allowed(status) if action not in _BY_OTHER_MEANS}
    if wanted not in ways:
        raise Refused(f"{id} is {status} and cannot become {wanted}; allowed: {', '.join(ways)}")
    return ways[wanted]


def check_start(plan: Plan, id: str) -> None:  # noqa: A002
    """Whether a task may be started now; the refusal names what it waits for."""
    if not plan.is_leaf(id):
        parts = ", ".join(plan.children(id))
        way_out = f"start one of {parts}" if parts else None
        raise Refused(f"{id} is a container: its subtasks are what is done", way_out=way_out)
    next_status(id, plan[id].status, Action.START)
    if waits := plan.waiting_for(id):
        raise Refused(f"{id} waits for {', '.join(waits)}", way_out="detent task next gives another one")


def possibly_stale(plan: Plan, id: str) -> tuple[str, ...]:  # noqa: A002
    """Completed tasks that built on `id` on some path; worth a look when it is reopened."""
    return tuple(other for other in plan.descendants(id) if plan[other].status is TaskStatus.COMPLETED)
