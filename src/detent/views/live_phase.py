"""The phases of a run along their rails, each with what is going on at it."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Verdict
from detent.core.run_picture import Doing, Picture, Work
from detent.core.session import Session
from detent.core.status import Status
from detent.views.elapsed import duration, elapsed
from detent.views.paper import Paper, columns_of
from detent.views.rails import Rail, is_chain
from detent.views.tokens import tokens_text
from detent.views.weighed import Line, Weight

_TIME = 7
_MINUTE, _HOUR = 60, 3_600


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """All that a picture of a run is drawn from."""

    session: Session
    picture: Picture
    now: datetime
    paper: Paper
    #: Phase key to the minutes that it takes otherwise, where that is known.
    usual: Mapping[str, float] = {}

    def joined(self, *parts: str) -> str:
        return self.paper.draw(" · ").join(part for part in parts if part)


def phase_lines(seen: Seen, tracks: Sequence[Rail]) -> Iterator[Line]:
    paper, order = seen.paper, seen.session.workflow.order
    lanes = max(len(track.left) + 1 + len(track.right) for track in tracks)
    keys = min(max(map(len, order)), paper.width * 2 // 5)
    is_listed = lanes == 1 and not is_chain(seen.session.workflow)
    for at, track in enumerate(tracks):
        if track.above:
            yield Line(text=f"  {paper.draw(track.above)}".rstrip(), weight=Weight.RAIL)
        yield _row(seen, track, at, lanes=lanes, keys=keys, says_needs=is_listed)
        margin = f"  {paper.draw(track.beside):<{lanes}}   "
        for line in _details(seen, track.phase):
            text = paper.cut(line.text, paper.width - len(margin))
            faint = line.weight in (Weight.SPOKEN, Weight.EARLIER)
            yield msgspec.structs.replace(line, text=margin + (paper.paint(text, "dim") if faint else text))
        if track.below:
            yield Line(text=f"  {paper.draw(track.below)}", weight=Weight.RAIL)


def ticking(since: datetime, now: datetime) -> str:
    """As `elapsed`, but it is seen to move: 3m 07s."""
    whole = max(0, int((now - since).total_seconds()))
    return f"{whole // _MINUTE}m {whole % _MINUTE:02d}s" if _MINUTE <= whole < _HOUR else duration(whole)


def _row(seen: Seen, track: Rail, at: int, *, lanes: int, keys: int, says_needs: bool) -> Line:
    paper, key = seen.paper, track.phase
    status = _status(seen, key)
    rail = f"  {paper.draw(track.left)}{paper.glyph(status)}{paper.draw(track.right)}"
    margin = " " * (lanes - len(track.left) - len(track.right))
    head = f"{margin}{paper.pad(key, keys)}  {_spent(seen, key, status):>{_TIME}}  "
    room = paper.width - 2 - lanes - columns_of(head)
    said = _who(seen, key, room) if status is Status.IN_PROGRESS else _said(seen, key, status, says_needs=says_needs)
    said = paper.cut(said, room)
    faint = status in (Status.COMPLETED, Status.PENDING, Status.SKIPPED)
    weight, rank = _weight(seen, key, status, at)
    text = rail + head + (paper.paint(said, "dim") if faint else said)
    return Line(text=text.rstrip(), weight=weight, rank=rank, is_phase=True)


def _status(seen: Seen, key: str) -> Status:
    """As the journal has it, but for a phase of which more was told than was read."""
    status = seen.session.phases[key].status
    return Status.IN_PROGRESS if status is Status.PENDING and seen.picture.of_phase(key) else status


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
            since = state.started or min((work.since for work in seen.picture.of_phase(key)), default=None)
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
    state, works = seen.session.phases[key], seen.picture.of_phase(key)
    attempt = f"attempt {state.attempt}" if state.attempt > 1 else ""
    tokens = tokens_text(seen.picture.tokens_of(key))
    if len(works) != 1:
        return seen.joined(f"{len(works)} agents" if works else state.agent, attempt, tokens)
    (work,) = works
    turn = f"turn {work.turn}" if work.turn > 1 else ""
    told = seen.joined(_name(work) or state.agent, attempt, turn, tokens)
    # What is used says more than the role, which seldom surprises.
    return told if columns_of(told) <= room else seen.joined(work.agent or state.agent, attempt, turn, tokens)


def _name(work: Work) -> str:
    return f"{work.agent} ({work.role})" if work.role and work.role != work.agent else work.agent


def _details(seen: Seen, key: str) -> Iterator[Line]:
    if _status(seen, key) is not Status.IN_PROGRESS:
        return
    works = seen.picture.of_phase(key)
    for work in works:
        whose = f"{work.task}  " if work.task else f"{_name(work)}  " if len(works) > 1 else ""
        yield Line(text=whose + _doing(seen, work), weight=Weight.DETAIL)
        for newness, said in zip(reversed(range(len(work.said))), work.said, strict=True):
            yield Line(text=f'"{said}"', weight=Weight.EARLIER if newness else Weight.SPOKEN, rank=newness)
    for gate, judged in seen.picture.verdicts.get(key, {}).items():
        if judged.verdict is Verdict.PASS:
            yield Line(text=f"gate {gate}: {judged.verdict}", weight=Weight.EARLIER)
        else:
            yield Line(text=f"gate {gate}: {judged.verdict}, {judged.reason}", weight=Weight.DETAIL)


def _doing(seen: Seen, work: Work) -> str:
    quiet = f"  ({elapsed(work.heard, seen.now)} ago)"
    match work.doing:
        case Doing.GATE:
            return f"checks gate {work.note}  ({elapsed(work.heard, seen.now)})"
        case Doing.RETRYING:
            return f"again in {elapsed(seen.now, work.until)}, {work.note}"
        case Doing.STEPS:
            return f"step {work.note}{quiet}"
        case Doing.TURN_OVER if any(need.phase == work.phase for need in seen.picture.needs):
            return "waits for a person"
        case Doing.TURN_OVER:
            return work.note or "the turn is over"
        case Doing.WORKING if work.tool is None:
            return f"at work{quiet if work.said else f'  ({elapsed(work.since, seen.now)})'}"
        case Doing.WORKING:
            assert work.tool is not None
            failed = "" if work.tool.succeeded else ", which failed"
            return f"{work.tool.tool}  {seen.paper.cut(work.tool.input, seen.paper.width // 2)}{failed}{quiet}"
