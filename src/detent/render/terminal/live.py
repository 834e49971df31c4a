"""A run while it goes on: how far it is, what is going on at which phase, and what a person must do."""

import math
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from detent.core.gate import gate_name
from detent.core.run.estimate import minutes_left
from detent.core.run.run_event import Need, PersonNeeded
from detent.core.run.run_view import RunView
from detent.core.session.phase_state import Tokens
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.render.elapsed import elapsed
from detent.render.next_commands import progress
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.fit import Line, Weight, fit
from detent.render.terminal.graph_lanes import LaneRow, graph_lanes
from detent.render.terminal.live_phase import Seen, phase_lines, ticking
from detent.render.tokens import tokens_text

#: Below this nothing sensible can be shown.
LEAST_HEIGHT = 3
_BAR, _LEAST_BAR = 32, 4
_MOST_TEXT = 3


def live_lines(
    session: Session, view: RunView, *, now: datetime, canvas: Canvas, height: int, usual: Mapping[str, float]
) -> list[str]:
    """At most `height` lines, none wider than the paper. `usual` has the minutes that phases take otherwise."""
    seen = Seen(session=session, view=view, now=now, canvas=canvas, usual=usual)
    head, foot = list(_head(seen)), list(_foot(seen))
    body = list(phase_lines(seen, graph_lanes(session.workflow, canvas.width // 8)))
    if len(head) + len(body) + len(foot) > height:
        # Rails with gaps would show a graph that is not the workflow's.
        body = list(phase_lines(seen, [LaneRow(phase=key) for key in session.workflow.order]))
    return fit(head, body, foot, height=max(height, LEAST_HEIGHT), canvas=canvas)


def open_needs(session: Session, view: RunView) -> list[PersonNeeded]:
    """What a person has not given yet. The journal knows of answers that nobody told of."""
    return [one for one in view.needs if _is_open(session, one)]


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
    session, canvas = seen.session, seen.canvas
    name = canvas.cut(session.id, canvas.width)
    about = canvas.draw(" · ") + seen.joined(session.workflow.name, _standing(seen))
    yield Line(text=canvas.paint(name, "bold") + canvas.cut(about, canvas.width - columns_of(name)))
    yield Line(text=canvas.cut(session.task, canvas.width), weight=Weight.SPOKEN, rank=1)
    yield Line(text=_bar(seen), weight=Weight.LIVE)
    for taken in seen.view.taken_over:
        yield Line(text=canvas.paint(canvas.cut(taken, canvas.width), "dim"), weight=Weight.EARLIER)
    yield Line(text="", weight=Weight.BLANK)


def _standing(seen: Seen) -> str:
    ended, started = seen.view.ended, seen.view.started_at
    if ended is not None:
        return f"{ended.end} after {elapsed(started, ended.at)}" if started else str(ended.end)
    return f"running for {ticking(started, seen.now)}" if started else ""


def _bar(seen: Seen) -> str:
    canvas, (done, total) = seen.canvas, progress(seen.session)
    said = seen.joined(f"{done} of {total} phases", tokens_text(_used(seen)), _estimate(seen))
    columns = min(_BAR, canvas.width - columns_of(said) - 2)
    if columns < _LEAST_BAR:
        return canvas.cut(said, canvas.width)
    filled = columns * done // total if total else columns
    full, rest = canvas.draw("━") * filled, canvas.draw("─") * (columns - filled)
    return f"{canvas.paint(full, 'green')}{canvas.paint(rest, 'dim')}  {said}"


def _used(seen: Seen) -> Tokens:
    """Of the whole session: what was reported, and what goes on."""
    states = seen.session.phases.values()
    reported = (state.tokens + (state.report.tokens if state.report else Tokens()) for state in states)
    return sum(reported, seen.view.unreported)


def _estimate(seen: Seen) -> str:
    if seen.view.ended is not None:
        return ""
    left = minutes_left(seen.session, seen.usual, seen.now, seen.view.parallel)
    return f"~{math.ceil(left)} min left" if left is not None else ""


def _foot(seen: Seen) -> Iterator[Line]:
    needs = open_needs(seen.session, seen.view)
    if needs:
        yield Line(text="", weight=Weight.BLANK)
        yield Line(text=seen.canvas.paint("you are needed", "yellow"), weight=Weight.LIVE)
    for rank, need in enumerate(needs):
        yield from _need_lines(need, rank, seen.canvas)
    ended = seen.view.ended
    if ended is not None and ended.said:
        yield Line(text="", weight=Weight.BLANK)
        yield from (Line(text=text, weight=Weight.DETAIL) for text in seen.canvas.wrap(ended.said)[:_MOST_TEXT])


def _need_lines(need: PersonNeeded, rank: int, canvas: Canvas) -> Iterator[Line]:
    text = need.text if need.phase in need.text else f"{need.phase}: {need.text}"
    told = canvas.wrap(text, "  ")[:_MOST_TEXT]
    if need.choices:
        told.append(canvas.cut(f"    one of: {', '.join(need.choices)}", canvas.width))
    yield from (Line(text=line, weight=Weight.LIVE, rank=rank) for line in told)
    plain = msgspec.structs.replace(canvas, colour=False)
    for line in plain.command(canvas.clean(need.way_out), "    "):
        # A word that is longer than a line is cut after all: a line that the terminal breaks would be drawn over.
        shown = canvas.paint(canvas.cut(line, canvas.width), "bold")
        yield Line(text=shown, weight=Weight.LIVE if rank else Weight.ALWAYS, rank=rank)
