"""Answers that several verbs share: what a command changed, and the commands to type next. Needs no click."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from detent.cli.request import Request

if TYPE_CHECKING:
    from detent.core.session.open_decision import View
    from detent.core.session.session import Session
    from detent.core.session.status import Status
    from detent.engine.project import Project
    from detent.engine.results import Begun, Outcome
    from detent.engine.session import SessionHandle

    Action = Callable[[SessionHandle], Outcome]


def note_dropped(request: Request, outcome: "Outcome | Begun") -> None:
    """Report an unfinished write that the command cut off the journal."""
    from detent.core.session.describe import describe
    from detent.core.session.events import TailDropped

    request.notices += [
        f"{describe(event)} from the journal" for event in outcome.events if isinstance(event, TailDropped)
    ]


def answer_begun(request: Request, begun: "Begun") -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import begun_text

    note_dropped(request, begun)
    request.answer(
        lambda canvas: begun_text(begun.session, begun.token, begun.handover, canvas=canvas),
        lambda: {
            "phase": begun.phase,
            "attempt": begun.token.attempt,
            "agent": begun.handover.agent,
            "token": str(begun.token),
            "handover": begun.handover,
            "warnings": begun.warnings,
            "session": session_record(begun.session),
        },
    )


def end_attempt(request: Request, session: str | None, end: "Action") -> None:
    """Finish or fail an attempt, and answer with the state of the session."""
    from detent.core.session.events import PhaseFailed, PhaseFinished
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import ended_text

    outcome, view = _changed(request, session, end)
    phase = next(event.phase for event in outcome.events if isinstance(event, PhaseFinished | PhaseFailed))
    request.answer(
        lambda canvas: ended_text(outcome.session, phase, canvas=canvas, view=view, warnings=outcome.warnings),
        lambda: {"phase": phase, "warnings": outcome.warnings, "session": session_record(outcome.session, view)},
    )


def change_session(request: Request, session: str | None, change: "Action") -> None:
    """Change the session as a whole, and answer with the changes and its state."""
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import moved_text

    outcome, view = _changed(request, session, change)
    done = _done(outcome)
    request.answer(
        lambda canvas: moved_text(outcome.session, done, canvas=canvas, view=view, warnings=outcome.warnings),
        lambda: {"warnings": outcome.warnings, "session": session_record(outcome.session, view)},
    )


def decide(request: Request, session: str | None, decision: "Action") -> None:
    """Record the decision of a person, and answer with its events."""
    from detent.core.session.describe import describe
    from detent.core.session.phase_name import phase_name
    from detent.engine.decisions import verdicts_now, view_now
    from detent.render.next_commands import next_commands, shown_commands

    with request.changing() as project:
        outcome = decision(project.session(session))
        state = outcome.session
        commands = next_commands(state, view_now(project, state), judged=verdicts_now(project, state))
    done = [describe(event, lambda key: phase_name(state, key)) for event in outcome.events]
    request.answer(
        lambda canvas: "\n".join(
            [*(line for text in done for line in canvas.wrap(text)), "", *shown_commands(commands, canvas)]
        ),
        {"done": done, "version": state.version, "warnings": outcome.warnings, "next": commands},
    )


def activate(request: Request, choose: "Callable[[Project], SessionHandle]", change: str = "active") -> None:
    """Make another session the active one; the session that was active before is paused."""
    from detent.core.counted import listed
    from detent.core.task.row import TaskStatus
    from detent.render.json.record import session_record
    from detent.render.terminal.sessions import activated_text

    with request.changing() as project:
        before = project.active()
        held = project.session(before).state.tasks.with_status(TaskStatus.ACTIVE) if before else ()
        state = choose(project).state
    paused = before if before != state.id else None
    lines = [f"{state.id} is {change}" + (" already" if before == state.id else "")]
    lines += [f"{paused} is paused" + (f"; given back: {listed(held)}" if held else "")] if paused else []
    request.answer(
        lambda canvas: activated_text(state, lines, canvas=canvas),
        lambda: {"session": session_record(state), "paused": paused},
    )


def _changed(request: Request, session: str | None, change: "Action") -> "tuple[Outcome, View]":
    """The outcome, and how the caller sees the session."""
    from detent.engine.decisions import view_now

    with request.changing() as project:
        outcome = change(project.session(session))
        view = view_now(project, outcome.session)
    note_dropped(request, outcome)
    return outcome, view


def _done(outcome: "Outcome") -> "list[tuple[Status, str]]":
    from detent.core.session.describe import describe
    from detent.core.session.events import PhaseSkipped, SessionCancelled, SessionCompleted
    from detent.core.session.phase_name import phase_name
    from detent.core.session.status import Status

    statuses = {
        PhaseSkipped: Status.SKIPPED,
        SessionCompleted: Status.COMPLETED,
        SessionCancelled: Status.SKIPPED,
    }
    shown = [event for event in outcome.events if type(event) in statuses]
    return [(statuses[type(event)], describe(event, lambda key: phase_name(outcome.session, key))) for event in shown]


def answer_started(request: Request, project: "Project", handle: "SessionHandle") -> "Callable[[], None]":
    """Collect what `start` and `import` answer; the result prints it after the project is closed."""
    from detent.cli.request import local_now
    from detent.render.json.record import session_record
    from detent.render.terminal.status import started_text

    state: Session = handle.state
    now = local_now(project)
    live = state.in_progress
    handover = handle.handover(live[0]) if live else None
    token = state.token(live[0]) if live else None
    record = {"session": session_record(state), "token": str(token) if token else None, "handover": handover}
    return lambda: request.answer(lambda canvas: started_text(state, token, handover, now=now, canvas=canvas), record)
