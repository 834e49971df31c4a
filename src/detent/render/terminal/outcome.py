"""What a command did, and what to type next."""

from collections.abc import Iterable, Iterator

from detent.core.session.handover import Handover, Passed
from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.core.session.token import Token
from detent.render.elapsed import elapsed
from detent.render.next_commands import command_lines
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.header import bar_line, standing

_LABEL = 11
_MAX_SHOWN = 12


def begun_text(token: Token, given: Handover, *, canvas: Canvas) -> str:
    """An attempt that has begun: its token, its agent, and what it is given."""
    again = f" (attempt {token.attempt})" if token.attempt > 1 else ""
    whom = f" for {given.agent}" if given.agent else ""
    return "\n".join(
        [
            f"{canvas.glyph(Status.IN_PROGRESS)} " + canvas.cut(f"began {token.phase}{again}{whom}", canvas.width - 2),
            _labelled("token", str(token), canvas),
            *handover_lines(given, canvas=canvas),
            "",
            *canvas.command(f'detent finish --token {token} -m "SUMMARY"'),
            *canvas.command(f'detent fail --token {token} -m "WHAT WENT WRONG"'),
        ]
    )


def handover_lines(given: Handover, *, canvas: Canvas) -> Iterator[str]:
    yield _labelled("folder", given.artifact_path, canvas)
    for passed in given.passed:
        yield from _passed_lines(passed, canvas)
    if given.discovery:
        yield _labelled("discovery", given.discovery, canvas)
    for warning in given.warnings:
        yield canvas.paint(_labelled("warning", warning, canvas), "yellow")


def ended_text(
    session: Session, phase: str, *, canvas: Canvas, active: bool = True, warnings: Iterable[str] = ()
) -> str:
    """An attempt that was finished or failed."""
    state = session.phases[phase]
    done = "finished" if state.status is Status.COMPLETED else "failed"
    again = f" (attempt {state.attempt})" if state.attempt > 1 else ""
    said = state.summary if state.status is Status.COMPLETED else state.error
    head = f"{done} {phase}{again} after {elapsed(state.begun, state.completed)}"
    return "\n".join(
        [
            f"{canvas.glyph(state.status)} " + canvas.cut(head, canvas.width - 2),
            canvas.cut(f"  {said or ''}", canvas.width),
            *(canvas.cut(f"  {path}", canvas.width) for path in state.artifacts[:_MAX_SHOWN]),
            *_more(len(state.artifacts)),
            *_warnings(warnings, canvas),
            "",
            *moved_lines(session, canvas=canvas, active=active),
        ]
    )


def moved_text(
    session: Session,
    done: Iterable[tuple[Status, str]],
    *,
    canvas: Canvas,
    active: bool = True,
    warnings: Iterable[str] = (),
) -> str:
    """Anything else that changed the session: what was done, each with the glyph of what it led to."""
    heads = [f"{canvas.glyph(status)} {canvas.cut(text, canvas.width - 2)}" for status, text in done]
    return "\n".join([*heads, *_warnings(warnings, canvas), "", *moved_lines(session, canvas=canvas, active=active)])


def moved_lines(session: Session, *, canvas: Canvas, active: bool = True) -> Iterator[str]:
    """Where the session stands after it, and the commands that move it on."""
    if session.status is not SessionStatus.ACTIVE:
        yield canvas.cut(f"session {session.id} is {standing(session)}", canvas.width)
    yield bar_line(session, canvas)
    yield ""
    yield from command_lines(session, canvas, active=active)


def _passed_lines(passed: Passed, canvas: Canvas) -> Iterator[str]:
    yield _labelled("from", f"{passed.phase}: {passed.summary}", canvas)
    for path in passed.artifacts[:_MAX_SHOWN]:
        yield _labelled("", path, canvas)
    yield from (f"  {'':<{_LABEL}}{line.strip()}" for line in _more(len(passed.artifacts)))
    if passed.context:
        yield _labelled("", f"“{passed.context}”" if canvas.has_glyphs else f'"{passed.context}"', canvas)


def _more(count: int) -> list[str]:
    return [f"  and {count - _MAX_SHOWN} more"] if count > _MAX_SHOWN else []


def _warnings(warnings: Iterable[str], canvas: Canvas) -> list[str]:
    return [canvas.paint(canvas.cut(f"  warning: {warning}", canvas.width), "yellow") for warning in warnings]


def _labelled(label: str, text: str, canvas: Canvas) -> str:
    head = f"  {label:<{_LABEL}}"
    return head + canvas.cut(text, canvas.width - len(head))
