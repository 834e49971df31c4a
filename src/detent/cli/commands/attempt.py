"""`begin`, `finish`, `fail`, `redo`: the attempts of a phase."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

import click

from detent.cli.request import Request, is_active
from detent.cli.verb import TEXT, one_phase_argument, phase_argument, session_option, verb

if TYPE_CHECKING:
    from detent.core.session.phase_state import Tokens
    from detent.engine.results import Begun, Outcome

F = TypeVar("F", bound=Callable[..., Any])


class _Ending(TypedDict):
    """What `finish` and `fail` both take."""

    artifacts: tuple[str, ...]
    token: str | None
    tokens_in: int
    tokens_out: int
    session: str | None


def _ending_options(function: F) -> F:
    for option in reversed(
        [
            click.option("--artifact", "artifacts", metavar="PATH", multiple=True, help="A file it made; repeat it."),
            click.option(
                "--token", metavar="T", envvar="DETENT_TOKEN", help="The token that begin gave; or DETENT_TOKEN."
            ),
            click.option("--tokens-in", metavar="N", type=click.IntRange(min=0), default=0, help="Model tokens read."),
            click.option(
                "--tokens-out", metavar="N", type=click.IntRange(min=0), default=0, help="Model tokens written."
            ),
            session_option,
        ]
    ):
        function = option(function)
    return function


@verb("begin", example="detent begin 06-implementation --agent software-developer")
@phase_argument
@click.option("--agent", metavar="NAME", help="Who does the work, if not the phase's own agent.")
@session_option
@click.pass_obj
def begin_verb(request: Request, phase: str | None, *, agent: str | None, session: str | None) -> None:
    """Begin a phase, before its work is delegated.

    Without PHASE the first one that is ready. The answer has the token that finish and fail take, and what earlier
    phases left for this one.
    """
    with request.changing() as project:
        begun = project.session(session).begin(phase, agent=agent)
    _answer_begun(request, begun)


@verb("redo", example='detent redo 06-implementation --cascade --reason "the API changed"')
@one_phase_argument
@click.option("--agent", metavar="NAME", help="Who does the work, if not the phase's own agent.")
@click.option("--reason", default="", help="Why it is done again.")
@click.option("--cascade", is_flag=True, help="Phases that built on it become pending again.")
@session_option
@click.pass_obj
def redo_verb(
    request: Request, phase: str, *, agent: str | None, reason: str, cascade: bool, session: str | None
) -> None:
    """Begin another attempt of a phase.

    Whatever state it is in. The token of the attempt before is worth nothing from then on.
    """
    with request.changing() as project:
        begun = project.session(session).redo(phase, agent=agent, reason=reason, cascade=cascade)
    _answer_begun(request, begun)


@verb("finish", example='detent finish 06-implementation -m "Parser and tests written" --artifact src/parser.py')
@phase_argument
@click.option("-m", "--message", metavar="SUMMARY", required=True, type=TEXT, help="What was done; - reads it.")
@click.option("--deliverable", "deliverables", metavar="TEXT", multiple=True, help="Something delivered; repeat it.")
@click.option("--context", metavar="TEXT", default="", type=TEXT, help="What the next phase should know.")
@click.option("--merged-commit", metavar="SHA", help="The commit the work was merged as, with the last phase.")
@_ending_options
@click.pass_obj
def finish_verb(
    request: Request,
    phase: str | None,
    *,
    message: str,
    deliverables: tuple[str, ...],
    context: str,
    merged_commit: str | None,
    **ending: Unpack[_Ending],
) -> None:
    """Finish an attempt with a summary of the work.

    Without PHASE and token the one that is in progress. The next phase is not begun; the answer says how. After the
    last phase the session is complete.
    """
    from detent.core.session.events import PhaseFinished

    _check_same(phase, ending["token"])
    with request.changing() as project:
        handle = project.session(ending["session"])
        active = is_active(project, handle)
        outcome = handle.finish(
            message,
            token=ending["token"] or None,
            phase=phase,
            artifacts=_from_here(request, ending["artifacts"]),
            deliverables=deliverables,
            context=context,
            tokens=_tokens(ending),
            merged_commit=merged_commit,
        )
    _answer_ended(request, outcome, PhaseFinished, active=active)


@verb("fail", example='detent fail 06-implementation -m "the tests do not pass"')
@phase_argument
@click.option("-m", "--message", metavar="ERROR", required=True, type=TEXT, help="What went wrong; - reads it.")
@_ending_options
@click.pass_obj
def fail_verb(request: Request, phase: str | None, *, message: str, **ending: Unpack[_Ending]) -> None:
    """End an attempt that did not succeed.

    detent redo begins the next one.
    """
    from detent.core.session.events import PhaseFailed

    _check_same(phase, ending["token"])
    with request.changing() as project:
        handle = project.session(ending["session"])
        active = is_active(project, handle)
        outcome = handle.fail(
            message,
            token=ending["token"] or None,
            phase=phase,
            artifacts=_from_here(request, ending["artifacts"]),
            tokens=_tokens(ending),
        )
    _answer_ended(request, outcome, PhaseFailed, active=active)


def _check_same(phase: str | None, token: str | None) -> None:
    """A token, perhaps left in the environment, must not end another phase than the one that was named."""
    from detent.core.session.token import parse_token
    from detent.core.workflow.phase_key import normalize_phase_key

    if phase and token and normalize_phase_key(phase) != normalize_phase_key(parse_token(token).phase):
        raise click.UsageError(
            f"the token {token} is not of phase {phase}; leave one of them out, or unset DETENT_TOKEN"
        )


def _from_here(request: Request, paths: tuple[str, ...]) -> list[str]:
    """Paths that were typed relative to the directory one is in, where they are there; else relative to the project."""
    here = os.path.realpath(request.directory)
    return [joined if path and os.path.exists(joined := os.path.join(here, path)) else path for path in paths]


def _tokens(ending: _Ending) -> "Tokens":
    from detent.core.session.phase_state import Tokens

    return Tokens(input=ending["tokens_in"], output=ending["tokens_out"])


def _answer_begun(request: Request, begun: "Begun") -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import begun_text

    request.notices += dropped(begun)
    request.answer(
        lambda canvas: begun_text(begun.token, begun.handover, canvas=canvas),
        {
            "phase": begun.phase,
            "attempt": begun.token.attempt,
            "agent": begun.handover.agent,
            "token": str(begun.token),
            "handover": begun.handover,
            "warnings": begun.warnings,
            "session": session_record(begun.session),
        },
    )


def _answer_ended(request: Request, outcome: "Outcome", ended: type[Any], *, active: bool) -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import ended_text

    phase = next(event.phase for event in outcome.events if isinstance(event, ended))
    request.notices += dropped(outcome)
    request.answer(
        lambda canvas: ended_text(outcome.session, phase, canvas=canvas, active=active, warnings=outcome.warnings),
        {
            "phase": phase,
            "warnings": outcome.warnings,
            "session": session_record(outcome.session, active=active),
        },
    )


def dropped(outcome: "Outcome") -> list[str]:
    """An unfinished write that the command cut off is told to whoever gave the command."""
    from detent.core.session.describe import describe
    from detent.core.session.events import TailDropped

    return [f"{describe(event)} from the journal" for event in outcome.events if isinstance(event, TailDropped)]
