"""A run while it goes on: how far it is, what is going on at which phase, and what a person must do."""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from detent.core.estimate import minutes_left
from detent.core.gate import gate_name
from detent.core.phase_state import Tokens
from detent.core.run_event import Need, PersonNeeded
from detent.core.run_picture import Picture
from detent.core.session import Session
from detent.core.status import Status
from detent.core.task.row import TaskStatus
from detent.views.elapsed import elapsed
from detent.views.live_phase import Seen, phase_lines, ticking
from detent.views.paper import Paper, columns_of
from detent.views.rails import Rail, rails
from detent.views.step import progress
from detent.views.tokens import tokens_text
from detent.views.weighed import Line, Weight, fitted

#: Below this nothing sensible can be shown.
LEAST_HEIGHT = 3
_BAR, _LEAST_BAR = 32, 4
_MOST_TEXT = 3


def live_lines(
    session: Session, picture: Picture, *, now: datetime, paper: Paper, height: int, usual: Mapping[str, float]
) -> list[str]:
    """At most `height` lines, none wider than the paper. `usual` has the minutes that phases take otherwise."""
    seen = Seen(session=session, picture=picture, now=now, paper=paper, usual=usual)
    head, foot = list(_head(seen)), list(_foot(seen))
    body = list(phase_lines(seen, rails(session.workflow, paper.width // 8)))
    if len(head) + len(body) + len(foot) > height:
        # Rails with gaps would show a graph that is not the workflow's.
        body = list(phase_lines(seen, [Rail(phase=key) for key in session.workflow.order]))
    return fitted(head, body, foot, height=max(height, LEAST_HEIGHT), paper=paper)


def open_needs(session: Session, picture: Picture) -> list[PersonNeeded]:
    """What a person has not given yet. The journal knows of answers that nobody told of."""
    return [one for one in picture.needs if _is_open(session, one)]


def _is_open(session: Session, one: PersonNeeded) -> bool:
    match one.need:
        case Need.ANSWER:
            phase = session.workflow.by_key.get(one.phase)
            gates = map(gate_name, phase.gates if phase else ())
            return one.about in (*gates, *(question.id for question in session.questions))
        case Need.REVIEW:
            return one.phase in session.awaiting_review
        case Need.DECISION:
            return any(one.phase == escalation.phase for escalation in session.escalations)
        case Need.WORK if one.about in session.tasks:
            return session.tasks[one.about].status is TaskStatus.BLOCKED
        case Need.WORK | Need.APPROVAL:
            return one.phase in session.with_status(Status.IN_PROGRESS)


def _head(seen: Seen) -> Iterator[Line]:
    session, paper = seen.session, seen.paper
    name = paper.cut(session.id, paper.width)
    about = paper.draw(" · ") + seen.joined(session.workflow.name, _standing(seen))
    yield Line(text=paper.paint(name, "bold") + paper.cut(about, paper.width - columns_of(name)))
    yield Line(text=paper.cut(session.task, paper.width), weight=Weight.SPOKEN, rank=1)
    yield Line(text=_bar(seen), weight=Weight.LIVE)
    for taken in seen.picture.taken_over:
        yield Line(text=paper.paint(paper.cut(taken, paper.width), "dim"), weight=Weight.EARLIER)
    yield Line(text="", weight=Weight.BLANK)


def _standing(seen: Seen) -> str:
    ended, started = seen.picture.ended, seen.picture.started_at
    if ended is not None:
        return f"{ended.end} after {elapsed(started, ended.at)}" if started else str(ended.end)
    return f"running for {ticking(started, seen.now)}" if started else ""


def _bar(seen: Seen) -> str:
    paper, (done, total) = seen.paper, progress(seen.session)
    said = seen.joined(f"{done} of {total} phases", tokens_text(_used(seen)), _estimate(seen))
    columns = min(_BAR, paper.width - columns_of(said) - 2)
    if columns < _LEAST_BAR:
        return paper.cut(said, paper.width)
    filled = columns * done // total if total else columns
    full, rest = paper.draw("━") * filled, paper.draw("─") * (columns - filled)
    return f"{paper.paint(full, 'green')}{paper.paint(rest, 'dim')}  {said}"


def _used(seen: Seen) -> Tokens:
    """Of the whole session: what was reported, and what goes on."""
    states = seen.session.phases.values()
    reported = (state.tokens + (state.report.tokens if state.report else Tokens()) for state in states)
    return sum(reported, seen.picture.unreported)


def _estimate(seen: Seen) -> str:
    if seen.picture.ended is not None:
        return ""
    left = minutes_left(seen.session, seen.usual, seen.now, seen.picture.parallel)
    return f"~{math.ceil(left)} min left" if left is not None else ""


def _foot(seen: Seen) -> Iterator[Line]:
    needs = open_needs(seen.session, seen.picture)
    if needs:
        yield Line(text="", weight=Weight.BLANK)
        yield Line(text=seen.paper.paint("you are needed", "yellow"), weight=Weight.LIVE)
    for rank, need in enumerate(needs):
        yield from _need_lines(need, rank, seen.paper)
    ended = seen.picture.ended
    if ended is not None and ended.said:
        yield Line(text="", weight=Weight.BLANK)
        yield from (Line(text=text, weight=Weight.DETAIL) for text in seen.paper.wrap(ended.said)[:_MOST_TEXT])


def _need_lines(need: PersonNeeded, rank: int, paper: Paper) -> Iterator[Line]:
    text = need.text if need.phase in need.text else f"{need.phase}: {need.text}"
    told = paper.wrap(text, "  ")[:_MOST_TEXT]
    if need.choices:
        told.append(paper.cut(f"    one of: {', '.join(need.choices)}", paper.width))
    yield from (Line(text=line, weight=Weight.LIVE, rank=rank) for line in told)
    plain = msgspec.structs.replace(paper, colour=False)
    for line in plain.command(paper.clean(need.way_out), "    "):
        # A word that is longer than a line is cut after all: a line that the terminal breaks would be drawn over.
        shown = paper.paint(paper.cut(line, paper.width), "bold")
        yield Line(text=shown, weight=Weight.LIVE if rank else Weight.ALWAYS, rank=rank)
