"""The live screen of a run: its progress, the work at each phase, and requests to a person.

Every line has a weight, so that a screen of any height shows the most important lines.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum

import msgspec

from detent.core.counted import counted
from detent.core.gate import gate_name
from detent.core.gate.evidence import Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.run.agent_event import ToolUsed
from detent.core.run.estimate import minutes_left
from detent.core.run.run_event import End, Need, PersonNeeded
from detent.core.run.run_view import Doing, JobView, RunView
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.render.elapsed import duration, elapsed
from detent.render.next_commands import go_on, progress
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.graph_lanes import LaneRow, Lanes, in_lanes, lanes_of
from detent.render.terminal.phase_names import PhaseNames, phase_names
from detent.render.tokens import tokens_text

#: The smallest height that is used.
LEAST_HEIGHT = 3
_BAR, _LEAST_BAR = 32, 4
_MOST_TEXT = 3
#: With fewer columns left for the text of a phase, its key is in the text.
_LEAST_TEXT = 10
_TIME = 7
_MINUTE, _HOUR = 60, 3_600


class Weight(IntEnum):
    """Lines with the highest weight are left out first."""

    ALWAYS = 0
    LIVE = 1
    DETAIL = 2
    SPOKEN = 3
    NEAR = 4
    EARLIER = 5
    PENDING = 6
    DONE = 7
    RAIL = 8
    BLANK = 9


class Line(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    weight: Weight = Weight.ALWAYS
    #: Among lines of the same weight those with the highest rank are left out first.
    rank: int = 0
    is_phase: bool = False


class _Frame(msgspec.Struct, frozen=True, kw_only=True):
    """The values that the screen is drawn from."""

    session: Session
    view: RunView
    now: datetime
    canvas: Canvas
    #: The usual minutes of phases, where they are known.
    usual: Mapping[str, float] = {}

    def joined(self, *parts: str) -> str:
        return self.canvas.draw(" · ").join(part for part in parts if part)


def live_lines(
    session: Session, view: RunView, *, now: datetime, canvas: Canvas, height: int, usual: Mapping[str, float]
) -> list[str]:
    """At most `height` lines, none wider than the canvas. `usual` has the usual minutes of phases."""
    frame = _Frame(session=session, view=view, now=now, canvas=canvas, usual=usual)
    head, foot = list(_head(frame)), list(_foot(frame))
    body = list(_phase_lines(frame, lanes_of(session.workflow, canvas)))
    if len(head) + len(body) + len(foot) > height:
        # Lanes with gaps would show another graph than the workflow's.
        body = list(
            _phase_lines(frame, in_lanes(session.workflow, [LaneRow(phase=key) for key in session.workflow.order]))
        )
    return _fit(head, body, foot, height=max(height, LEAST_HEIGHT), canvas=canvas)


def open_needs(session: Session, view: RunView) -> list[PersonNeeded]:
    """The requests to a person that are still open in the journal."""
    return [need for need in view.needs if _is_open(session, need)]


def _is_open(session: Session, need: PersonNeeded) -> bool:
    match need.need:
        case Need.ANSWER:
            phase = session.workflow.by_key.get(need.phase)
            gates = map(gate_name, phase.gates if phase else ())
            return need.about in (*gates, *(question.id for question in session.questions))
        case Need.REVIEW:
            return need.phase in session.awaiting_review
        case Need.DECISION:
            return any(need.phase == escalation.phase for escalation in session.escalations)
        case Need.WORK if need.about in session.tasks:
            return session.tasks[need.about].status is TaskStatus.BLOCKED
        case Need.WORK | Need.APPROVAL:
            return need.phase in session.in_progress and not _is_passed(session, need)


def _is_passed(session: Session, need: PersonNeeded) -> bool:
    """Whether the request is about a gate that was opened meanwhile."""
    gate = session.workflow.by_key[need.phase].gate(need.about)
    return gate is not None and judge_recorded(session, need.phase, gate).verdict is Verdict.PASS


def _head(frame: _Frame) -> Iterator[Line]:
    session, canvas = frame.session, frame.canvas
    name = canvas.cut(session.id, canvas.width)
    about = canvas.draw(" · ") + frame.joined(session.workflow.name, _run_state(frame))
    yield Line(text=canvas.paint(name, "bold") + canvas.cut(about, canvas.width - columns_of(name)))
    yield Line(text=canvas.cut(session.task, canvas.width), weight=Weight.SPOKEN, rank=1)
    yield Line(text=_bar(frame), weight=Weight.LIVE)
    for taken in frame.view.taken_over:
        yield Line(text=canvas.paint(canvas.cut(taken, canvas.width), "dim"), weight=Weight.EARLIER)
    yield Line(text="", weight=Weight.BLANK)


def _run_state(frame: _Frame) -> str:
    ended, started = frame.view.ended, frame.view.started_at
    if ended is not None:
        return f"{ended.end} after {elapsed(started, ended.at)}" if started else str(ended.end)
    return f"running for {_ticking(started, frame.now)}" if started else ""


def _bar(frame: _Frame) -> str:
    canvas, (done, total) = frame.canvas, progress(frame.session)
    text = frame.joined(f"{done} of {counted(total, 'phase')}", tokens_text(_used(frame)), _estimate(frame))
    columns = min(_BAR, canvas.width - columns_of(text) - 2)
    if columns < _LEAST_BAR:
        return canvas.cut(text, canvas.width)
    return f"{canvas.bar(done, total, columns)}  {text}"


def _used(frame: _Frame) -> Tokens:
    """Tokens of the whole session: reported ones, and those of running agents."""
    states = frame.session.phases.values()
    reported = (state.tokens + (state.report.tokens if state.report else Tokens()) for state in states)
    return sum(reported, frame.view.unreported)


def _estimate(frame: _Frame) -> str:
    if frame.view.ended is not None:
        return ""
    left = minutes_left(frame.session, frame.usual, frame.now, frame.view.parallel)
    return f"~{math.ceil(left)} min left" if left is not None else ""


def _foot(frame: _Frame) -> Iterator[Line]:
    needs = open_needs(frame.session, frame.view)
    if needs:
        yield Line(text="", weight=Weight.BLANK)
        yield Line(text=frame.canvas.paint("you are needed", "yellow"), weight=Weight.LIVE)
    for rank, need in enumerate(needs):
        yield from _need_lines(need, rank, frame.canvas)
    ended = frame.view.ended
    if ended is not None and ended.said:
        yield Line(text="", weight=Weight.BLANK)
        yield from (Line(text=text, weight=Weight.DETAIL) for text in frame.canvas.wrap(ended.said)[:_MOST_TEXT])
    if ended is not None and ended.end is End.PAUSED:
        yield from (Line(text=text, weight=Weight.ALWAYS) for text in frame.canvas.command(go_on(frame.session)))


def _need_lines(need: PersonNeeded, rank: int, canvas: Canvas) -> Iterator[Line]:
    text = need.headline
    lines = canvas.wrap(text, "  ")[:_MOST_TEXT]
    if need.choices:
        lines.append(canvas.cut(f"    one of: {', '.join(need.choices)}", canvas.width))
    yield from (Line(text=line, weight=Weight.LIVE, rank=rank) for line in lines)
    plain = msgspec.structs.replace(canvas, colour=False)
    for line in plain.command(canvas.clean(need.way_out), "    "):
        # A long word is cut here: a line that the terminal wraps could not be redrawn.
        shown = canvas.paint(canvas.cut(line, canvas.width), "bold")
        yield Line(text=shown, weight=Weight.LIVE if rank else Weight.ALWAYS, rank=rank)


def _phase_lines(frame: _Frame, lanes: Lanes) -> Iterator[Line]:
    canvas = frame.canvas
    names = phase_names(frame.session.workflow, frame.session.active_order, canvas)
    names = names.within(canvas.width - (2 + lanes.width + 1) - (2 + _TIME + 2), spare=_LEAST_TEXT)
    for at, row in enumerate(lanes.rows):
        if row.above:
            yield Line(text=f"  {canvas.draw(row.above)}".rstrip(), weight=Weight.RAIL)
        shown, apart = _row(frame, lanes, row, at, names)
        yield shown
        margin = f"  {canvas.draw(row.beside):<{lanes.width}}   "
        for line in (*apart, *_details(frame, row.phase)):
            text = canvas.cut(line.text, canvas.width - len(margin))
            faint = line.weight in (Weight.SPOKEN, Weight.EARLIER)
            yield msgspec.structs.replace(line, text=margin + (canvas.paint(text, "dim") if faint else text))
        if row.below:
            yield Line(text=f"  {canvas.draw(row.below)}", weight=Weight.RAIL)


def _ticking(since: datetime, now: datetime) -> str:
    """As `elapsed`, with the seconds, so that it moves: 3m 07s."""
    whole = max(0, int((now - since).total_seconds()))
    return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s" if _MINUTE <= whole < _HOUR else duration(whole)


def _row(frame: _Frame, lanes: Lanes, row: LaneRow, at: int, names: PhaseNames) -> tuple[Line, list[Line]]:
    """The line of a phase, and who works on it on a line of its own if there is no room beside."""
    canvas, key = frame.canvas, row.phase
    status = _status(frame, key)
    head = f"{names.cell(key)}  {_time(frame, key, status):>{_TIME}}  "
    room = canvas.width - 2 - lanes.width - 1 - names.width - 2 - _TIME - 2
    apart = []
    if status is Status.IN_PROGRESS:
        text = _who(frame, key, room)
        if columns_of(canvas.clean(text)) > room:
            text, apart = "", [Line(text=text, weight=Weight.DETAIL)]
    else:
        text = _summary(frame, key, status, needs=lanes.is_listed)
    text = canvas.cut(frame.joined(names.left_out(key), text), room)
    faint = status in (Status.COMPLETED, Status.PENDING, Status.SKIPPED)
    weight, rank = _weight(frame, key, status, at)
    line = f"  {lanes.rail(row, status, canvas)}{head}" + (canvas.paint(text, "dim") if faint else text)
    return Line(text=line.rstrip(), weight=weight, rank=rank, is_phase=True), apart


def _status(frame: _Frame, key: str) -> Status:
    """The status in the journal; the events of the run may be ahead of it."""
    status = frame.session.phases[key].status
    return Status.IN_PROGRESS if status is Status.PENDING and frame.view.of_phase(key) else status


def _weight(frame: _Frame, key: str, status: Status, at: int) -> tuple[Weight, int]:
    """The nearest pending phases and the latest completed ones matter most."""
    match status:
        case Status.IN_PROGRESS | Status.FAILED:
            return Weight.LIVE, at
        case Status.PENDING:
            return (Weight.NEAR if key in frame.session.ready else Weight.PENDING), at
        case Status.COMPLETED | Status.SKIPPED:
            return Weight.DONE, -at


def _time(frame: _Frame, key: str, status: Status) -> str:
    state = frame.session.phases[key]
    match status:
        case Status.IN_PROGRESS:
            since = state.started or min((job.since for job in frame.view.of_phase(key)), default=None)
            return _ticking(since, frame.now) if since else ""
        case Status.COMPLETED | Status.FAILED:
            return elapsed(state.started, state.completed)
        case Status.PENDING | Status.SKIPPED:
            return ""


def _summary(frame: _Frame, key: str, status: Status, *, needs: bool) -> str:
    state, needed = frame.session.phases[key], frame.session.workflow.by_key[key].needs
    match status:
        case Status.COMPLETED:
            return state.summary or ""
        case Status.FAILED:
            return f"attempt {state.attempt} failed: {state.error or 'no reason was given'}"
        case Status.SKIPPED:
            return state.skip_reason or ""
        case Status.PENDING:
            usually = f"usually {duration(frame.usual[key] * _MINUTE)}" if frame.usual.get(key) else ""
            return frame.joined(usually, f"after {', '.join(needed)}" if needed and needs else "")
        case Status.IN_PROGRESS:
            return ""


def _who(frame: _Frame, key: str, room: int) -> str:
    state, jobs = frame.session.phases[key], frame.view.of_phase(key)
    attempt = f"attempt {state.attempt}" if state.attempt > 1 else ""
    tokens = tokens_text(frame.view.tokens_of(key))
    if len(jobs) != 1:
        return frame.joined(f"{len(jobs)} agents" if jobs else state.agent, attempt, tokens)
    (job,) = jobs
    turn = f"turn {job.turn}" if job.turn > 1 else ""
    text = frame.joined(_name(job) or state.agent, attempt, turn, tokens)
    # Where both do not fit, the tokens matter more than the role.
    return text if columns_of(text) <= room else frame.joined(job.agent or state.agent, attempt, turn, tokens)


def _name(job: JobView) -> str:
    return f"{job.agent} ({job.role})" if job.role and job.role != job.agent else job.agent


def _details(frame: _Frame, key: str) -> Iterator[Line]:
    if _status(frame, key) is not Status.IN_PROGRESS:
        return
    jobs = frame.view.of_phase(key)
    for job in jobs:
        whose = f"{job.task}  " if job.task else f"{_name(job)}  " if len(jobs) > 1 else ""
        yield Line(text=whose + _doing(frame, job), weight=Weight.DETAIL)
        for newness, text in zip(reversed(range(len(job.lines))), job.lines, strict=True):
            yield Line(text=f'"{text}"', weight=Weight.EARLIER if newness else Weight.SPOKEN, rank=newness)
    asked = {need.about for need in open_needs(frame.session, frame.view) if need.phase == key}
    for gate, judged in frame.view.verdicts.get(key, {}).items():
        if gate in asked:
            # The request says the same, and is newer.
            continue
        if judged.verdict is Verdict.PASS:
            yield Line(text=f"gate {gate}: {judged.verdict}", weight=Weight.EARLIER)
        else:
            yield Line(text=f"gate {gate}: {judged.verdict}, {judged.reason}", weight=Weight.DETAIL)


def _doing(frame: _Frame, job: JobView) -> str:
    quiet = f"  ({elapsed(job.heard, frame.now)} ago)"
    match job.doing:
        case Doing.GATE:
            return f"checks gate {job.note}  ({elapsed(job.heard, frame.now)})"
        case Doing.RETRYING:
            return f"retries in {elapsed(frame.now, job.until)}, {job.note}"
        case Doing.STEPS:
            return f"step {job.note}{quiet}"
        case Doing.TURN_OVER if any(need.phase == job.phase for need in frame.view.needs):
            return "waits for a person"
        case Doing.TURN_OVER:
            return job.note or "the turn is over"
        case Doing.WORKING if job.tool is None:
            return f"at work{quiet if job.lines else f'  ({elapsed(job.since, frame.now)})'}"
        case Doing.WORKING:
            assert job.tool is not None
            has_failed = isinstance(job.tool, ToolUsed) and not job.tool.succeeded
            failed = ", which failed" if has_failed else ""
            return f"{job.tool.tool}  {frame.canvas.cut(job.tool.input, frame.canvas.width // 2)}{failed}{quiet}"


def _fit(head: Sequence[Line], body: Sequence[Line], foot: Sequence[Line], *, height: int, canvas: Canvas) -> list[str]:
    """At most `height` of the lines, in their order; a line after the body counts the phases that were left out."""
    lines = [*head, *body, *foot]
    if len(lines) <= height:
        return [line.text for line in lines]
    order = sorted(range(len(lines)), key=lambda at: (lines[at].weight, lines[at].rank, at))
    shown = sorted(order[: height - 1])
    hidden = sum(line.is_phase for line in lines) - sum(lines[at].is_phase for at in shown)
    if not hidden:
        return [lines[at].text for at in sorted(order[:height])]
    end = len(head) + len(body)
    more = canvas.cut(f"  {canvas.draw('…')} {counted(hidden, 'more phase')}", canvas.width)
    before, behind = [at for at in shown if at < end], [at for at in shown if at >= end]
    return [*(lines[at].text for at in before), canvas.paint(more, "dim"), *(lines[at].text for at in behind)]
