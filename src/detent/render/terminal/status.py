"""Where a session stands: what people look at all day."""

from collections.abc import Iterator, Sequence
from datetime import datetime

import msgspec

from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Question, Session, SessionStatus
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase
from detent.render.elapsed import elapsed
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.footer import footer_lines
from detent.render.terminal.graph_lanes import LaneRow, graph_lanes, is_chain
from detent.render.terminal.header import header_lines

_TIME, _STATUS = 7, 11
#: With this many columns left, what a phase has to say stands on its line; otherwise below it.
_ROOM_BESIDE = 40


def status_text(session: Session, *, now: datetime, canvas: Canvas, active: bool = True, runner: str = "") -> str:
    """`active` tells whether the project's marker names this session, `runner` who runs it."""
    return "\n".join(
        [
            *header_lines(session, now, canvas, active=active),
            "",
            *phase_lines(session, now, canvas),
            *_task_lines(session, now, canvas, active=active),
            *_asked_lines(session, canvas),
            "",
            *footer_lines(session, now, canvas, active=active, runner=runner),
        ]
    )


def _task_lines(session: Session, now: datetime, canvas: Canvas, *, active: bool) -> list[str]:
    if not len(session.tasks):
        return []
    from detent.render.terminal.tasks import status_lines  # noqa: PLC0415 - many sessions have no tasks

    return ["", *status_lines(session, now, canvas, is_active=active)]


def _asked_lines(session: Session, canvas: Canvas) -> list[str]:
    if not session.questions or session.status is not SessionStatus.ACTIVE:
        return []
    return ["", *question_lines(session.questions, canvas)]


def question_lines(questions: Sequence[Question], canvas: Canvas) -> Iterator[str]:
    """What agents wait to hear from a person, and what to type for each."""
    for one in questions:
        yield from canvas.wrap(f"{one.id} of {one.phase} asks: {one.text}", "  ")
        for number, choice in enumerate(one.choices, 1):
            yield from canvas.wrap(f"{number}. {choice}", "      ")
        yield from canvas.command(f"detent reply {one.id} {'NUMBER' if one.choices else 'ANSWER'}", "    ")


def own_title(phase: Phase) -> str:
    """The title, if it says more than the key does."""
    said = "".join(filter(str.isalnum, phase.key.lower()))
    return "" if "".join(filter(str.isalnum, phase.title.lower())) in said else phase.title


def phase_lines(session: Session, now: datetime, canvas: Canvas) -> Iterator[str]:
    """The phases along their rails, each with what has become of it."""
    layout = _Layout.of(session, canvas)
    for track in layout.tracks:
        state = session.phases[track.phase]
        if track.above:
            yield f"  {canvas.draw(track.above)}".rstrip()
        rail = f"  {canvas.draw(track.left)}{canvas.glyph(state.status)}{canvas.draw(track.right)}"
        margin = " " * (layout.lanes - len(track.left) - len(track.right))
        key = canvas.pad(track.phase, layout.key_columns)
        row = f"{rail}{margin}{key}  {_state_word(state):<{_STATUS}} {_spent(state, now):>{_TIME}}  "
        who, said = _who(session, track.phase, canvas), _said(session, track.phase, alone=layout.is_listed)
        if layout.room:
            yield (row + canvas.pad(who, layout.who_columns) + "  " + _dim(said, canvas, layout.room)).rstrip()
        else:
            yield (row + canvas.cut(who, layout.who_columns)).rstrip()
            if said:
                below = f"  {canvas.draw(track.beside):<{layout.lanes}}   "
                yield below + _dim(said, canvas, canvas.width - len(below))
        if track.below:
            yield f"  {canvas.draw(track.below)}"


class _Layout(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of the phases' table."""

    tracks: list[LaneRow]
    lanes: int
    key_columns: int
    who_columns: int
    #: Columns for what a phase has to say on its line; 0 if there are too few and it goes below.
    room: int
    #: The rails would be too wide, so that what a phase needs has to be said.
    is_listed: bool

    @classmethod
    def of(cls, session: Session, canvas: Canvas) -> "_Layout":
        tracks = graph_lanes(session.workflow, canvas.width // 8)
        lanes = max(len(track.left) + 1 + len(track.right) for track in tracks)
        beside_key = 2 + lanes + 1 + 2 + _STATUS + 1 + _TIME
        key_columns = min(max(map(len, session.workflow.order)), canvas.width * 2 // 5, canvas.width - beside_key)
        left = canvas.width - beside_key - key_columns - 2
        widest_who = max(columns_of(_who(session, track.phase, canvas)) for track in tracks)
        room = left - widest_who - 2
        return cls(
            tracks=tracks,
            lanes=lanes,
            key_columns=key_columns,
            who_columns=widest_who if room >= _ROOM_BESIDE else max(left, 0),
            room=room if room >= _ROOM_BESIDE else 0,
            is_listed=not is_chain(session.workflow) and lanes == 1,
        )


def _dim(text: str, canvas: Canvas, columns: int) -> str:
    return canvas.paint(canvas.cut(text, columns), "dim")


def _state_word(state: PhaseState) -> str:
    return str(state.status).replace("_", " ")


def _spent(state: PhaseState, now: datetime) -> str:
    match state.status:
        case Status.COMPLETED | Status.FAILED:
            return elapsed(state.started, state.completed)
        case Status.IN_PROGRESS:
            return elapsed(state.started, now)
        case _:
            return ""


def _who(session: Session, key: str, canvas: Canvas) -> str:
    state = session.phases[key]
    attempt = f"attempt {state.attempt}" if state.attempt > 1 else ""
    return canvas.draw(" · ").join(
        canvas.clean(part) for part in (attempt, own_title(session.workflow.by_key[key]), state.agent) if part
    )


def _said(session: Session, key: str, *, alone: bool) -> str:
    state = session.phases[key]
    match state.status:
        case Status.COMPLETED:
            return state.summary or ""
        case Status.FAILED:
            return state.error or ""
        case Status.SKIPPED:
            return state.skip_reason or ""
        case Status.PENDING if alone and session.workflow.by_key[key].needs:
            return f"after {', '.join(session.workflow.by_key[key].needs)}"
        case _:
            return ""
