"""The status of a session: its header, its phases, its tasks, and the commands to type next."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import msgspec

from detent.core.gate import gate_name
from detent.core.session.open_decision import ANYONE, OpenDecision, View, answer_word
from detent.core.session.phase_name import phase_name
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.core.testrun.baseline import FILES_ONLY
from detent.render.elapsed import elapsed, moment
from detent.render.next_commands import MOST_SHOWN, START, next_commands, shown_commands, upcoming
from detent.render.terminal.canvas import FACT_COLUMNS, Canvas, columns_of
from detent.render.terminal.graph_lanes import Lanes, lanes_of
from detent.render.terminal.outcome import bar_line, begun_text, session_state
from detent.render.terminal.phase_names import PhaseNames, phase_names

if TYPE_CHECKING:
    from detent.core.session.handover import Handover

_TIME, _STATUS = 7, 11
#: With this many columns left, the summary of a phase is on its line, otherwise below it.
_ROOM_BESIDE = 40
#: The most lines of a task or a reason.
_MOST_LINES = 3


def status_text(
    session: Session,
    *,
    now: datetime,
    canvas: Canvas,
    view: View = ANYONE,
    decisions: Sequence[OpenDecision] = (),
    commands: Sequence[str] | None = None,
    runner: str = "",
    sandbox: str | None = None,
) -> str:
    """`decisions` wait for a person, `commands` continue the session, `runner` names the process that runs it.

    `sandbox` says whether its agents are in one.
    """
    if commands is None:
        commands = next_commands(session, view, decisions=decisions)
    return "\n".join(
        [
            *(_decision_lines(decisions, view, now, canvas) if decisions else ()),
            *_header_lines(session, now, canvas, view),
            "",
            *_phase_lines(session, now, canvas),
            *_task_lines(session, now, canvas, view=view),
            "",
            *_footer_lines(
                session, now, canvas, _typed(session.id, decisions, view, commands), runner=runner, sandbox=sandbox
            ),
        ]
    )


def _decision_lines(decisions: Sequence[OpenDecision], view: View, now: datetime, canvas: Canvas) -> Iterator[str]:
    from detent.render.terminal.decisions import decision_lines  # noqa: PLC0415 - most sessions wait for none

    return decision_lines(decisions, view, now=now, canvas=canvas)


def _typed(session: str, decisions: Sequence[OpenDecision], view: View, commands: Sequence[str]) -> list[str]:
    """The commands of the last lines. Those of decisions are at the top, and one verb goes through them."""
    if not any(entry.is_yours for entry in decisions) or view.identity is None:
        return list(commands)
    own = {entry.command for entry in decisions}
    named = "" if view.active else f" --session {session}"
    return [f"detent decide{named}", *(command for command in commands if command not in own)]


def started_text(
    session: Session, token: Token | None, handover: "Handover | None", *, now: datetime, canvas: Canvas
) -> str:
    """A new session, with the attempt that has begun, if any."""
    if token is None or handover is None:
        return status_text(session, now=now, canvas=canvas)
    begun = begun_text(session, token, handover, canvas=canvas)
    return "\n".join([*_header_lines(session, now, canvas), "", begun])


def idle_text(where: str, *, paused: str | None = None, canvas: Canvas) -> str:
    """The status of a project without an active session; `paused` was paused last."""
    going_on = canvas.command(f"detent resume {paused}", " " * FACT_COLUMNS)
    return "\n".join(
        [
            *canvas.wrap(f"No session is active in {where}"),
            "",
            *(canvas.fact_commands("go on", going_on) if paused else ()),
            canvas.fact("start one", START),
            canvas.fact("choose", "detent workflows"),
            canvas.fact("look back", "detent report, detent history"),
        ]
    )


def question_lines(session: Session, canvas: Canvas) -> Iterator[str]:
    """Open questions of agents, each with the command to answer it."""
    for question in session.questions:
        yield from canvas.wrap(f"{phase_name(session, question.phase)}: {question.id} asks: {question.text}", "  ")
        for number, choice in enumerate(question.choices, 1):
            yield from canvas.wrap(f"{number}. {choice}", "      ")
        yield from canvas.command(f"detent reply {question.id} {answer_word(question.choices)}", "    ")


def _header_lines(session: Session, now: datetime, canvas: Canvas, view: View = ANYONE) -> Iterator[str]:
    about = [session.workflow.name, session.work_id or "", session_state(session, now, view=view)]
    first, *rest = canvas.wrap("".join([session.id, *(canvas.draw(" · ") + part for part in about if part)]))
    yield first.replace(session.id, canvas.paint(session.id, "bold"), 1)
    yield from rest
    yield from _some_lines(session.task, canvas)
    if session.branch:
        yield from canvas.wrap(f"on branch {session.branch}")
    if session.cancel_reason:
        yield from _some_lines(f"because {session.cancel_reason}", canvas)
    yield ""
    yield bar_line(session, canvas)


def _some_lines(text: str, canvas: Canvas) -> list[str]:
    """The first lines of a text."""
    lines = canvas.wrap(text)
    if len(lines) <= _MOST_LINES:
        return lines
    return [*lines[: _MOST_LINES - 1], canvas.cut(f"{lines[_MOST_LINES - 1]} {lines[_MOST_LINES]}", canvas.width)]


def _task_lines(session: Session, now: datetime, canvas: Canvas, *, view: View) -> list[str]:
    if not len(session.tasks):
        return []
    from detent.render.terminal.tasks import status_lines  # noqa: PLC0415 - many sessions have no tasks

    return ["", *status_lines(session, now, canvas, view=view)]


def _footer_lines(
    session: Session, now: datetime, canvas: Canvas, commands: Sequence[str], *, runner: str, sandbox: str | None
) -> Iterator[str]:
    """Phases in progress, failed and next, the runner if there is one, and the commands to type."""
    for key in session.in_progress[:MOST_SHOWN]:
        state = session.phases[key]
        since = f" since {moment(state.begun, now)} ({elapsed(state.begun, now)})" if state.begun else ""
        attempt = f", attempt {state.attempt}," if state.attempt > 1 else ""
        agent = f" with {state.agent}" if state.agent else ""
        yield canvas.fact("in progress", f"{phase_name(session, key)}{attempt}{since}{agent}")
    if (baseline := _baseline_text(session)) is not None:
        yield canvas.fact("baseline", baseline)
    for key in session.with_status(Status.FAILED)[:MOST_SHOWN]:
        state = session.phases[key]
        error = (state.error or "no reason was given").partition("\n")[0]
        text = f"{phase_name(session, key)}, attempt {state.attempt}: {error}"
        yield canvas.fact("failed", text)
    following = upcoming(session)
    if following and not session.has_ended:
        yield canvas.fact("next", ", ".join(phase_name(session, key) for key in following))
    if runner:
        yield canvas.fact("run by", runner)
    if sandbox:
        yield canvas.fact("sandbox", sandbox)
    yield from canvas.fact_commands("type", shown_commands(commands, canvas, " " * FACT_COLUMNS))


def _baseline_text(session: Session) -> str | None:
    """The hint for a phase in progress that protects tests which no run has named."""
    live = session.in_progress if session.gates_apply else ()
    gates = (gate for key in live for gate in session.workflow.by_key[key].gates if gate.protects)
    gate = next((gate for gate in gates if not session.baseline.is_named(gate.runnable())), None)
    if gate is None:
        return None
    if (gate.runnable() or "") in session.baseline.tests:
        return f"{FILES_ONLY}; the test runner does not name its tests"
    how = "the first whole run" if gate.runnable() is None else f"detent gate baseline {gate_name(gate)}"
    return f"{FILES_ONLY}; {how} names the tests"


def _phase_lines(session: Session, now: datetime, canvas: Canvas) -> Iterator[str]:
    """The phases along their lanes, each with its status, time, agent and summary."""
    layout = _Layout.of(session, canvas)
    for row in layout.lanes.rows:
        state = session.phases[row.phase]
        if row.above:
            yield f"  {canvas.draw(row.above)}".rstrip()
        word = f"{str(state.status).replace('_', ' '):<{_STATUS}} " if layout.has_status else ""
        line = (
            f"  {layout.lanes.rail(row, state.status, canvas)}{layout.names.cell(row.phase)}  "
            f"{word}{_time(state, now):>{_TIME}}  "
        )
        who, detail = _who(session, row.phase, canvas), _detail(session, row.phase, needs=layout.lanes.is_listed)
        if layout.room:
            yield (
                line + canvas.pad(who, layout.who_columns) + "  " + canvas.paint(canvas.cut(detail, layout.room), "dim")
            ).rstrip()
        else:
            yield (line + canvas.cut(who, layout.who_columns)).rstrip()
            margin = f"  {canvas.draw(row.beside):<{layout.lanes.width}}   "
            if key := layout.names.left_out(row.phase):
                yield from (canvas.paint(line, "dim") for line in canvas.wrap(key, margin))
            # The last lines name the agents at work. Those of pending phases are not worth a line.
            apart = who if state.status in (Status.COMPLETED, Status.FAILED) and not layout.who_columns else ""
            if below := canvas.draw(" · ").join(filter(None, (apart, detail))):
                yield margin + canvas.paint(canvas.cut(below, canvas.width - len(margin)), "dim")
        if row.below:
            yield f"  {canvas.draw(row.below)}"


class _Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the table of phases. What has no room is on the line below its phase."""

    lanes: Lanes
    names: PhaseNames
    #: The status as a word; without room for it the glyph says it.
    has_status: bool
    #: 0 if there are too few columns, and who works is below.
    who_columns: int
    #: Columns for the summary on the line of its phase; 0 if there are too few and it is below.
    room: int

    @classmethod
    def of(cls, session: Session, canvas: Canvas) -> "_Layout":
        lanes, names = lanes_of(session.workflow, canvas), phase_names(session.workflow, session.active_order, canvas)
        beside_names = canvas.width - (2 + lanes.width + 1) - (2 + _TIME)
        names = names.within(beside_names)
        has_status = names.width + _STATUS + 1 <= beside_names
        left = beside_names - names.width - (_STATUS + 1 if has_status else 0) - 2
        widest_who = max(columns_of(_who(session, key, canvas)) for key in session.workflow.order)
        room = left - widest_who - 2
        return cls(
            lanes=lanes,
            names=names,
            has_status=has_status,
            who_columns=widest_who if widest_who <= left else 0,
            room=room if room >= _ROOM_BESIDE else 0,
        )


def _time(state: PhaseState, now: datetime) -> str:
    match state.status:
        case Status.COMPLETED | Status.FAILED:
            return elapsed(state.started, state.completed)
        case Status.IN_PROGRESS:
            return elapsed(state.started, now)
        case Status.PENDING | Status.SKIPPED:
            return ""


def _who(session: Session, key: str, canvas: Canvas) -> str:
    state = session.phases[key]
    attempt = f"attempt {state.attempt}" if state.attempt > 1 else ""
    return canvas.draw(" · ").join(canvas.clean(part) for part in (attempt, state.agent) if part)


def _detail(session: Session, key: str, *, needs: bool) -> str:
    state = session.phases[key]
    match state.status:
        case Status.COMPLETED:
            return state.summary or ""
        case Status.FAILED:
            return state.error or ""
        case Status.SKIPPED:
            return state.skip_reason or ""
        case Status.PENDING if needs and session.workflow.by_key[key].needs:
            return f"after {', '.join(session.workflow.by_key[key].needs)}"
        case Status.PENDING | Status.IN_PROGRESS:
            return ""
