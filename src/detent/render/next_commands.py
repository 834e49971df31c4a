"""The next commands of a session, ready to be typed."""

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.render.terminal.canvas import Canvas

#: The number of commands, or of phases of one kind, that text output lists.
MOST_SHOWN = 6
START = 'detent start WORKFLOW "TASK"'


def next_commands(session: Session, *, active: bool = True) -> list[str]:
    """The commands that continue the session, the most likely first; an inactive session is named in them."""
    if session.status is not SessionStatus.ACTIVE:
        return [START]
    named = "" if active else f" --session {session.id}"
    commands = [
        *(["detent run"] if _is_run(session) else []),
        *(f"detent redo {key}" for key in session.with_status(Status.FAILED)),
        *(f'detent finish {key} -m "SUMMARY"' for key in session.with_status(Status.IN_PROGRESS)),
        *(f"detent begin {key}" for key in session.ready),
    ]
    return [command + named for command in commands or ["detent complete"]]


def _is_run(session: Session) -> bool:
    """Whether a run works on the phases in progress."""
    live = (session.phases[key] for key in session.with_status(Status.IN_PROGRESS, Status.FAILED))
    return any(delegation.agent_id.startswith("run-") for state in live for delegation in state.delegations)


def command_lines(session: Session, canvas: Canvas, indent: str = "  ", *, active: bool = True) -> list[str]:
    """The first next commands, as lines."""
    commands = next_commands(session, active=active)
    lines = [line for command in commands[:MOST_SHOWN] for line in canvas.command(command, indent)]
    left_out = len(commands) - MOST_SHOWN
    return [*lines, f"{indent}and {left_out} more; detent status --json lists all"] if left_out > 0 else lines


def upcoming(session: Session) -> tuple[str, ...]:
    """Pending phases that wait only for phases in progress."""
    return tuple(
        key
        for key in session.with_status(Status.PENDING)
        if all(session.phases[need].status is Status.IN_PROGRESS for need in session.open_needs(key))
    )


def progress(session: Session) -> tuple[int, int]:
    """The number of completed phases, and of all phases."""
    return len(session.with_status(Status.COMPLETED)), len(session.active_order)
