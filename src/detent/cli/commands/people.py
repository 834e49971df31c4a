"""`approve`, `resolve`, `review`, `release`, `escalations`: what only people decide."""

from typing import TYPE_CHECKING

import click

from detent.cli.request import Request
from detent.cli.verb import TEXT, phase_argument, session_option, verb

if TYPE_CHECKING:
    from detent.engine.results import Outcome


@verb("escalations", example="detent escalations")
@session_option
@click.pass_obj
def escalations_verb(request: Request, session: str | None) -> None:
    """List the escalations that wait for a person."""
    with request.reading() as project:
        found = project.session(session).state.escalations
    lines = [f"{one.at:%Y-%m-%d %H:%M}  {one.phase}  {one.kind}\n  {one.detail}" for one in found]
    text = "\n".join([*lines, "", "detent resolve retry|skip|cancel"]) if lines else "nothing waits for a decision"
    request.answer(lambda canvas: "\n".join(map(canvas.clean, text.split("\n"))), {"escalations": found})


@verb("approve", example='detent approve 06-implementation --gate tests -m "flaky on CI, looked at it"')
@phase_argument
@click.option("--gate", metavar="NAME", help="Which gate, if it is not the one that asks for votes.")
@click.option("-m", "--reason", type=TEXT, required=True, help="Why; it is recorded with your name.")
@click.option("--as", "who", metavar="NAME", help="The approver that you are, if not your user name.")
@click.option("--reject", is_flag=True, help="Vote against it.")
@session_option
@click.pass_obj
def approve_verb(
    request: Request,
    phase: str | None,
    *,
    gate: str | None,
    reason: str,
    who: str | None,
    reject: bool,
    session: str | None,
) -> None:
    """Vote at a gate, or open one by hand."""
    with request.changing() as project:
        handle = project.session(session)
        outcome = handle.approve(reason, gate=gate, phase=phase, who=who, approve=not reject)
    _answer(request, outcome)


@verb("resolve", example='detent resolve retry --reason "the server is back"')
@click.argument("action", type=click.Choice(["retry", "skip", "cancel"]))
@click.option("--reason", type=TEXT, default="", help="Why; it is recorded.")
@session_option
@click.pass_obj
def resolve_verb(request: Request, action: str, *, reason: str, session: str | None) -> None:
    """Resolve the open escalations: retry, skip or cancel.

    retry lets the work go on and counts anew, skip leaves the held phases out, cancel ends the session.
    """
    with request.changing() as project:
        outcome = project.session(session).resolve(action, reason)
    _answer(request, outcome)


@verb("review", example='detent review redo -m "smaller steps"')
@click.argument("decision", type=click.Choice(["continue", "review", "redo"]))
@phase_argument
@click.option("-m", "--note", type=TEXT, default="", help="What to tell the agent.")
@session_option
@click.pass_obj
def review_verb(request: Request, decision: str, phase: str | None, *, note: str, session: str | None) -> None:
    """Decide about a finished phase under review."""
    with request.changing() as project:
        outcome = project.session(session).review(decision, phase=phase, note=note)
    _answer(request, outcome)


@verb("release", example='detent release --reason "the gate is wrong, see the log"')
@phase_argument
@click.option("--reason", type=TEXT, required=True, help="Why; it is recorded with your name.")
@session_option
@click.pass_obj
def release_verb(request: Request, phase: str | None, *, reason: str, session: str | None) -> None:
    """Open every closed gate of a phase by hand.

    And resolve what waits for a decision. The one verb that always gets the work going again; the reason is kept in the
    journal.
    """
    with request.changing() as project:
        outcome = project.session(session).release(reason, phase=phase)
    _answer(request, outcome)


def _answer(request: Request, outcome: "Outcome") -> None:
    from detent.core.session.describe import describe
    from detent.render.next_commands import next_commands

    done = [describe(event) for event in outcome.events]
    state = outcome.session
    request.answer(
        lambda canvas: "\n".join(
            [*(canvas.clean(line) for line in done), "", *(f"  {command}" for command in next_commands(state))]
        ),
        {"done": done, "version": state.version, "warnings": outcome.warnings},
    )
