"""The events of a run as plain lines, for a log file, a pipe or CI."""

from collections.abc import Iterator
from datetime import tzinfo

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run.agent_event import AgentEvent, Failed, Finished, Said, Started, ToolStarted, ToolUsed, Used
from detent.core.run.run_event import (
    AgentDid,
    End,
    GateJudged,
    GateStarted,
    PersonNeeded,
    PhaseEnded,
    Retrying,
    RunEnded,
    RunEvent,
    RunStarted,
    StepRan,
    TaskEnded,
    TurnStarted,
)
from detent.core.session.session import Session
from detent.core.workflow.graph import Phase
from detent.core.workflow.phase_title import own_title, titled
from detent.render.next_commands import go_on
from detent.render.terminal.canvas import Canvas
from detent.render.tokens import tokens_text

#: Columns of the time, and of the phase or task that a line is about.
_TIME, _WHERE = len("HH:MM:SS  "), 18
_MOST_WRAPPED = 5
_STATUS_COLOURS = {"completed": "green", "failed": "red", "skipped": "dim"}
_VERDICT_COLOURS = {Verdict.PASS: "green", Verdict.FAIL: "red", Verdict.ERROR: "red"}


def run_lines(
    event: RunEvent, *, canvas: Canvas, session: Session | None = None, zone: tzinfo | None = None
) -> list[str]:
    """The lines of an event; some events have none. Times are local to `zone`, else to this machine.

    `session` names the phases; without it they are shown by their keys.
    """
    where = min(_WHERE, canvas.width // 4)
    name, left_out = _where(event, session, where)
    head = f"{event.at.astimezone(zone):%H:%M:%S}  {canvas.pad(name, where)}  "
    margin = " " * (_TIME + where + 2)
    lines: list[str] = []
    for text, colour in _texts(event, left_out, session):
        for shown in _fitting(event, text, len(margin), canvas):
            lines.append((margin if lines else head) + (canvas.paint(shown, colour) if colour else shown))
    return [*lines, *(_command(event.way_out, margin, canvas) if isinstance(event, PersonNeeded) else ())]


def _fitting(event: RunEvent, text: str, taken: int, canvas: Canvas) -> list[str]:
    """One line for what an agent does and says, several for all that is decided or waits."""
    if isinstance(event, AgentDid | StepRan | GateStarted):
        return [canvas.cut(text, canvas.width - taken)]
    return [line[taken:] for line in canvas.wrap(text, " " * taken)[:_MOST_WRAPPED]]


def _where(event: RunEvent, session: Session | None, columns: int) -> tuple[str, str]:
    """The phase or task in the margin, and what of its name has no room there."""
    match event:
        case RunStarted() | RunEnded():
            return "", ""
        case TurnStarted() | AgentDid() | StepRan() | Retrying() | TaskEnded() if event.task:
            return event.task, ""
        case (
            TurnStarted()
            | AgentDid()
            | StepRan()
            | Retrying()
            | TaskEnded()
            | GateStarted()
            | GateJudged()
            | PhaseEnded()
            | PersonNeeded()
        ):
            phase = session.workflow.by_key.get(event.phase) if session else None
            return _margin(session, phase, columns) if session and phase else (event.phase, "")


def _margin(session: Session, phase: Phase, columns: int) -> tuple[str, str]:
    """The position and the title of a phase; the key in place of it if a title of the workflow is too long."""
    order, title = session.active_order, own_title(phase)
    place = f"{order.index(phase.key) + 1} " if phase.key in order else ""
    room = columns - len(f"{len(order)} ")
    if title and all(len(own_title(each)) <= room for each in session.workflow.phases):
        return f"{place}{title}", phase.key
    return f"{place}{phase.key}", title if len(phase.key) <= room else titled(phase)


def _texts(event: RunEvent, left_out: str, session: Session | None) -> Iterator[tuple[str, str]]:
    """Text and colour of each line. `left_out` of the name of the phase has no room in the margin."""
    match event:
        case RunStarted():
            yield f"run {event.run} of {event.session} started", "bold"
            yield from ((taken, "yellow") for taken in event.taken_over)
        case TurnStarted():
            role = f" ({event.role})" if event.role and event.role != event.agent else ""
            name = f"{left_out}, " if left_out else ""
            yield f"{name}attempt {event.attempt}, turn {event.turn}: {event.agent}{role}", "cyan"
        case AgentDid():
            yield from _agent_texts(event.did)
        case StepRan():
            yield f"step {event.step}{_after_colon(event.said)}", "dim"
        case Retrying():
            yield f"retries in {event.pause_s:g} s ({event.again} of {event.of}): {event.reason}", "yellow"
        case GateStarted():
            yield f"gate {event.gate}{f': {event.command}' if event.command else ''}", "dim"
        case GateJudged():
            yield f"gate {event.gate} {event.verdict}: {event.reason}", _VERDICT_COLOURS.get(event.verdict, "yellow")
        case PhaseEnded():
            yield (
                f"{event.status}, attempt {event.attempt}{_after_colon(event.said)}",
                _STATUS_COLOURS.get(event.status, ""),
            )
            yield from ((f"warning: {warning}", "yellow") for warning in event.warnings)
        case TaskEnded():
            yield f"{event.status}{_after_colon(event.said)}", _STATUS_COLOURS.get(event.status, "")
        case PersonNeeded():
            yield f"needs a person ({event.need}): {event.text}", "yellow"
            if event.choices:
                yield f"one of: {', '.join(event.choices)}", ""
        case RunEnded():
            on = f"; {go_on(session)} goes on" if event.end is End.PAUSED else ""
            yield f"run {event.end}{f': {event.said}' if event.said else ''}{on}", "bold"


def _agent_texts(did: AgentEvent) -> Iterator[tuple[str, str]]:
    match did:
        case Started():
            if did.model:
                yield f"answered by {did.model}", "dim"
        case ToolUsed():
            yield f"{did.tool}  {did.input}{'' if did.succeeded else '  (failed)'}", "dim"
        case Said():
            yield _first_line(did.text), "yellow" if did.by_detent else "dim"
        case ToolStarted() | Used():
            return
        case Finished():
            used = tokens_text(did.report.tokens)
            yield f"is done{f' ({used})' if used else ''}{_after_colon(did.report.summary)}", ""
        case Failed():
            yield f"{did.failure}{_after_colon(did.reason)}", "red"


def _command(way_out: str, margin: str, canvas: Canvas) -> list[str]:
    plain = msgspec.structs.replace(canvas, colour=False)
    return [
        canvas.paint(canvas.cut(line, canvas.width), "bold") for line in plain.command(canvas.clean(way_out), margin)
    ]


def _after_colon(text: str) -> str:
    line = _first_line(text)
    return f": {line}" if line else ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
