"""What a command did, and what to type next."""

from collections.abc import Iterable, Iterator

from detent.core.handover import Handover, Passed
from detent.core.session import Session, SessionStatus
from detent.core.status import Status
from detent.core.token import Token
from detent.views.elapsed import elapsed
from detent.views.header import bar_line, standing
from detent.views.paper import Paper
from detent.views.step import command_lines

_LABEL = 11
_MAX_SHOWN = 12


def begun_text(token: Token, given: Handover, *, paper: Paper) -> str:
    """An attempt that has begun: its token, its agent, and what it is given."""
    again = f" (attempt {token.attempt})" if token.attempt > 1 else ""
    whom = f" for {given.agent}" if given.agent else ""
    return "\n".join(
        [
            f"{paper.glyph(Status.IN_PROGRESS)} " + paper.cut(f"began {token.phase}{again}{whom}", paper.width - 2),
            _labelled("token", str(token), paper),
            *handover_lines(given, paper=paper),
            "",
            *paper.command(f'detent finish --token {token} -m "SUMMARY"'),
            *paper.command(f'detent fail --token {token} -m "WHAT WENT WRONG"'),
        ]
    )


def handover_lines(given: Handover, *, paper: Paper) -> Iterator[str]:
    yield _labelled("folder", given.artifact_path, paper)
    for passed in given.passed:
        yield from _passed_lines(passed, paper)
    if given.discovery:
        yield _labelled("discovery", given.discovery, paper)
    for warning in given.warnings:
        yield paper.paint(_labelled("warning", warning, paper), "yellow")


def ended_text(session: Session, phase: str, *, paper: Paper, active: bool = True, warnings: Iterable[str] = ()) -> str:
    """An attempt that was finished or failed."""
    state = session.phases[phase]
    done = "finished" if state.status is Status.COMPLETED else "failed"
    again = f" (attempt {state.attempt})" if state.attempt > 1 else ""
    said = state.summary if state.status is Status.COMPLETED else state.error
    head = f"{done} {phase}{again} after {elapsed(state.begun, state.completed)}"
    return "\n".join(
        [
            f"{paper.glyph(state.status)} " + paper.cut(head, paper.width - 2),
            paper.cut(f"  {said or ''}", paper.width),
            *(paper.cut(f"  {path}", paper.width) for path in state.artifacts[:_MAX_SHOWN]),
            *_more(len(state.artifacts)),
            *_warnings(warnings, paper),
            "",
            *moved_lines(session, paper=paper, active=active),
        ]
    )


def moved_text(
    session: Session,
    done: Iterable[tuple[Status, str]],
    *,
    paper: Paper,
    active: bool = True,
    warnings: Iterable[str] = (),
) -> str:
    """Anything else that changed the session: what was done, each with the glyph of what it led to."""
    heads = [f"{paper.glyph(status)} {paper.cut(text, paper.width - 2)}" for status, text in done]
    return "\n".join([*heads, *_warnings(warnings, paper), "", *moved_lines(session, paper=paper, active=active)])


def moved_lines(session: Session, *, paper: Paper, active: bool = True) -> Iterator[str]:
    """Where the session stands after it, and the commands that move it on."""
    if session.status is not SessionStatus.ACTIVE:
        yield paper.cut(f"session {session.id} is {standing(session)}", paper.width)
    yield bar_line(session, paper)
    yield ""
    yield from command_lines(session, paper, active=active)


def _passed_lines(passed: Passed, paper: Paper) -> Iterator[str]:
    yield _labelled("from", f"{passed.phase}: {passed.summary}", paper)
    for path in passed.artifacts[:_MAX_SHOWN]:
        yield _labelled("", path, paper)
    yield from (f"  {'':<{_LABEL}}{line.strip()}" for line in _more(len(passed.artifacts)))
    if passed.context:
        yield _labelled("", f"“{passed.context}”" if paper.has_glyphs else f'"{passed.context}"', paper)


def _more(count: int) -> list[str]:
    return [f"  and {count - _MAX_SHOWN} more"] if count > _MAX_SHOWN else []


def _warnings(warnings: Iterable[str], paper: Paper) -> list[str]:
    return [paper.paint(paper.cut(f"  warning: {warning}", paper.width), "yellow") for warning in warnings]


def _labelled(label: str, text: str, paper: Paper) -> str:
    head = f"  {label:<{_LABEL}}"
    return head + paper.cut(text, paper.width - len(head))
