"""The phases of a run along their rails, each with what is going on at it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run.run_view import Doing, JobView, RunView
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.render.elapsed import duration, elapsed
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.fit import Line, Weight
from detent.render.terminal.graph_lanes import LaneRow, is_chain
from detent.render.tokens import tokens_text

_TIME = 7
_MINUTE, _HOUR = 60, 3_600


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All that a picture of a run is drawn from."""

    session: Session
    view: RunView
    now: datetime
    canvas: Canvas
    #: Phase key to the minutes that it takes otherwise, where that is known.
    usual: Mapping[str, float] = {}

    def joined(self, *parts: str) -> str:
        return self.canvas.draw(" · ").join(part for part in parts if part)


def phase_lines(seen: Seen, tracks: Sequence[LaneRow]) -> Iterator[Line]:
    canvas, order = seen.canvas, seen.session.workflow.order
    lanes = max(len(track.left) + 1 + len(track.right) for track in tracks)
    keys = min(max(map(len, order)), canvas.width * 2 // 5)
    is_listed = lanes == 1 and not is_chain(seen.session.workflow)
    for at, track in enumerate(tracks):
        if track.above:
            yield Line(text=f"  {canvas.draw(track.above)}".rstrip(), weight=Weight.RAIL)
        yield _row(seen, track, at, lanes=lanes, keys=keys, says_needs=is_listed)
        margin = f"  {canvas.draw(track.beside):<{lanes}}   "
        for line in _details(seen, track.phase):
            text = canvas.cut(line.text, canvas.width - len(margin))
            faint = line.weight in (Weight.SPOKEN, Weight.EARLIER)
            yield msgspec.structs.replace(line, text=margin + (canvas.paint(text, "dim") if faint else text))
        if track.below:
            yield Line(text=f"  {canvas.draw(track.below)}", weight=Weight.RAIL)


def ticking(since: datetime, now: datetime) -> str:
    """As `elapsed`, but it is seen to move: 3m 07s."""
    whole = max(0, int((now - since).total_seconds()))
    return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s" if _MINUTE <= whole < _HOUR else duration(whole)


def _row(seen: Seen, track: LaneRow, at: int, *, lanes: int, keys: int, says_needs: bool) -> Line:
    canvas, key = seen.canvas, track.phase
    status = _status(seen, key)
    rail = f"  {canvas.draw(track.left)}{canvas.glyph(status)}{canvas.draw(track.right)}"
    margin = " " * (lanes - len(track.left) - len(track.right))
    head = f"{margin}{canvas.pad(key, keys)}  {_spent(seen, key, status):>{_TIME}}  "
    room = canvas.width - 2 - lanes - columns_of(head)
    said = _who(seen, key, room) if status is Status.IN_PROGRESS else _said(seen, key, status, says_needs=says_needs)
    said = canvas.cut(said, room)
    faint = status in (Status.COMPLETED, Status.PENDING, Status.SKIPPED)
    weight, rank = _weight(seen, key, status, at)
    text = rail + head + (canvas.paint(said, "dim") if faint else said)
    return Line(text=text.rstrip(), weight=weight, rank=rank, is_phase=True)


def _status(seen: Seen, key: str) -> Status:
    """As the journal has it, but for a phase of which more was told than was read."""
    status = seen.session.phases[key].status
    return Status.IN_PROGRESS if status is Status.PENDING and seen.view.of_phase(key) else status


def _weight(seen: Seen, key: str, status: Status, at: int) -> tuple[Weight, int]:
    """Of what is to come the nearest is worth most, of what is done the latest."""
    match status:
        case Status.IN_PROGRESS | Status.FAILED:
            return Weight.LIVE, at
        case Status.PENDING:
            return (Weight.NEAR if key in seen.session.ready else Weight.PENDING), at
        case Status.COMPLETED | Status.SKIPPED:
            return Weight.DONE, -at


def _spent(seen: Seen, key: str, status: Status) -> str:
    state = seen.session.phases[key]
    match status:
        case Status.IN_PROGRESS:
            since = state.started or min((job.since for job in seen.view.of_phase(key)), default=None)
            return ticking(since, seen.now) if since else ""
        case Status.COMPLETED | Status.FAILED:
            return elapsed(state.started, state.completed)
        case Status.PENDING | Status.SKIPPED:
            return ""


def _said(seen: Seen, key: str, status: Status, *, says_needs: bool) -> str:
    state, needs = seen.session.phases[key], seen.session.workflow.by_key[key].needs
    match status:
        case Status.COMPLETED:
            return state.summary or ""
        case Status.FAILED:
            return f"attempt {state.attempt} failed: {state.error or 'no reason was given'}"
        case Status.SKIPPED:
            return state.skip_reason or ""
        case Status.PENDING:
            usually = f"usually {duration(seen.usual[key] * _MINUTE)}" if seen.usual.get(key) else ""
            return seen.joined(usually, f"after {', '.join(needs)}" if needs and says_needs else "")
        case Status.IN_PROGRESS:
            return ""


def _who(seen: Seen, key: str, room: int) -> str:
    state, jobs = seen.session.phases[key], seen.view.of_phase(key)
    attempt = f"attempt {state.attempt}" if state.attempt > 1 else ""
    tokens = tokens_text(seen.view.tokens_of(key))
    if len(jobs) != 1:
        return seen.joined(f"{len(jobs)} agents" if jobs else state.agent, attempt, tokens)
    (job,) = jobs
    turn = f"turn {job.turn}" if job.turn > 1 else ""
    told = seen.joined(_name(job) or state.agent, attempt, turn, tokens)
    # What is used says more than the role, which seldom surprises.
    return told if columns_of(told) <= room else seen.joined(job.agent or state.agent, attempt, turn, tokens)


def _name(job: JobView) -> str:
    return f"{job.agent} ({job.role})" if job.role and job.role != job.agent else job.agent


def _details(seen: Seen, key: str) -> Iterator[Line]:
    if _status(seen, key) is not Status.IN_PROGRESS:
        return
    jobs = seen.view.of_phase(key)
    for job in jobs:
        whose = f"{job.task}  " if job.task else f"{_name(job)}  " if len(jobs) > 1 else ""
        yield Line(text=whose + _doing(seen, job), weight=Weight.DETAIL)
        for newness, said in zip(reversed(range(len(job.lines))), job.lines, strict=True):
            yield Line(text=f'"{said}"', weight=Weight.EARLIER if newness else Weight.SPOKEN, rank=newness)
    for gate, judged in seen.view.verdicts.get(key, {}).items():
        if judged.verdict is Verdict.PASS:
            yield Line(text=f"gate {gate}: {judged.verdict}", weight=Weight.EARLIER)
        else:
            yield Line(text=f"gate {gate}: {judged.verdict}, {judged.reason}", weight=Weight.DETAIL)


def _doing(seen: Seen, job: JobView) -> str:
    quiet = f"  ({elapsed(job.heard, seen.now)} ago)"
    match job.doing:
        case Doing.GATE:
            return f"checks gate {job.note}  ({elapsed(job.heard, seen.now)})"
        case Doing.RETRYING:
            return f"again in {elapsed(seen.now, job.until)}, {job.note}"
        case Doing.STEPS:
            return f"step {job.note}{quiet}"
        case Doing.TURN_OVER if any(need.phase == job.phase for need in seen.view.needs):
            return "waits for a person"
        case Doing.TURN_OVER:
            return job.note or "the turn is over"
        case Doing.WORKING if job.tool is None:
            return f"at work{quiet if job.lines else f'  ({elapsed(job.since, seen.now)})'}"
        case Doing.WORKING:
            assert job.tool is not None
            failed = "" if job.tool.succeeded else ", which failed"
            return f"{job.tool.tool}  {seen.canvas.cut(job.tool.input, seen.canvas.width // 2)}{failed}{quiet}"
