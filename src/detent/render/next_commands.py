"""The next commands of a session, ready to be typed."""

from collections.abc import Iterator, Sequence

from detent.core.gate import Opener, gate_name
from detent.core.gate.closed import closed_gates
from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.open_decision import (
    ANYONE,
    Judged,
    OpenDecision,
    View,
    is_on_workers,
    is_run,
    open_decisions,
    recorded_verdicts,
    run_command,
)
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.terminal.canvas import Canvas

#: The number of commands, or of phases of one kind, that text output lists.
MOST_SHOWN = 6
#: Goes on with a run, on this machine or on workers.
_GO_ON, _GO_ON_WORKERS = "detent run", "detent run --on URL"
START = 'detent start WORKFLOW "TASK"'


def next_commands(
    session: Session,
    view: View = ANYONE,
    *,
    judged: Judged | None = None,
    decisions: Sequence[OpenDecision] | None = None,
) -> list[str]:
    """The commands that continue the session, the most likely first; an inactive session is named in them.

    Open decisions of the viewer come first. None of the commands is refused as things are.
    """
    if session.has_ended:
        return [START]
    judged = recorded_verdicts(session) if judged is None else judged
    decisions = open_decisions(session, judged, view) if decisions is None else decisions
    named = "" if view.active else f" --session {session.id}"
    own = [entry.command for entry in decisions if entry.is_yours and view.identity is not None]
    if view.running:
        return own or [f"detent watch{named}"]
    # No phase begins while a person has to decide about another one.
    ready = () if session.escalations or session.awaiting_review else session.ready
    waits = bool(session.escalations or session.awaiting_review or session.questions)
    commands = [go_on(session)] if is_run(session) and not waits and view.active else []
    if not is_on_workers(session):
        # Those would take the files of this checkout for the work of the workers.
        commands += (command for key in session.in_progress for command in _work(session, key, judged, view))
        commands += (f"detent begin {key}" for key in ready)
    if not commands and not own:
        done = not session.unfinished and (not len(session.tasks) or session.tasks.is_completed)
        commands = ["detent complete" if done else "detent why"]
    return list(dict.fromkeys([*own, *(_named(command, named) for command in commands)]))


def go_on(session: Session | None) -> str:
    """The command that goes on with the last run of the session, where it ran."""
    return _GO_ON_WORKERS if session is not None and is_on_workers(session) else _GO_ON


def _named(command: str, session: str) -> str:
    verb, dashes, rest = command.partition(" -- ")
    return f"{verb}{session}{dashes}{rest}"


def _work(session: Session, phase: str, judged: Judged, view: View) -> Iterator[str]:
    """The commands for a phase in progress: its checks that nothing has run yet, and its end."""
    closed = closed_gates(judged.get(phase, ()))
    if all(_runs_at_finish(session, phase, judgement) for judgement in closed):
        yield f'detent finish {phase} -m "SUMMARY"'
        return
    is_alone = len(session.in_progress) == 1
    # A gate that takes names and has no command runs the command of the last test run.
    states = session.phases[phase].gates
    runners = (gate_name(gate) for gate in session.workflow.by_key[phase].gates if gate.runs_tests)
    tests_ran = any(states[name].receipt is not None for name in runners if name in states)
    for judgement in closed:
        gate = next(gate for gate in session.workflow.by_key[phase].gates if gate_name(gate) == judgement.gate)
        if (
            gate.opened_by is Opener.RUN
            and judgement.verdict is Verdict.PENDING
            and not (gate.is_reported or gate.is_reviewed)
            and not (gate.takes_names and gate.runnable() is None and not tests_ran)
        ):
            yield f"detent {run_command(gate, None if is_alone else phase, knows_tests=view.knows_tests)}"


def _runs_at_finish(session: Session, phase: str, judgement: Judgement) -> bool:
    """Whether `finish` runs the check of the closed gate itself: it has not run on the present files."""
    gate = next(gate for gate in session.workflow.by_key[phase].gates if gate_name(gate) == judgement.gate)
    if gate.opened_by is not Opener.RUN or gate.runnable() is None:
        return False
    state = session.phases[phase].at_gate(judgement.gate)
    return judgement.verdict is Verdict.STALE or (judgement.verdict is Verdict.PENDING and state.receipt is None)


def command_lines(session: Session, canvas: Canvas, *, view: View = ANYONE) -> list[str]:
    """The first next commands, as lines."""
    return shown_commands(next_commands(session, view), canvas)


def shown_commands(commands: Sequence[str], canvas: Canvas, indent: str = "  ") -> list[str]:
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
