"""`skip`, `complete`, `cancel`, `adopt`: what changes the session as a whole."""

from typing import TYPE_CHECKING

import click

from detent.cli.commands.attempt import dropped
from detent.cli.request import Request, is_active
from detent.cli.verb import TEXT, phases_argument, session_option, verb

if TYPE_CHECKING:
    from detent.core.session.events import Event
    from detent.core.session.status import Status
    from detent.engine.results import Outcome


@verb("skip", example='detent skip 03-architecture 04-design --reason "a one-line change"')
@phases_argument
@click.option("--reason", required=True, type=TEXT, help="Why they are left out; it is recorded.")
@click.option("--size", help="Also those that this size of the workflow leaves out.")
@session_option
@click.pass_obj
def skip_verb(request: Request, phases: tuple[str, ...], *, reason: str, size: str | None, session: str | None) -> None:
    """Skip phases, with a reason."""
    with request.changing() as project:
        handle = project.session(session)
        active = is_active(project, handle)
        outcome = handle.skip(*phases, reason=reason, size=size)
    _answer(request, outcome, active=active)


@verb("complete", example="detent complete --merged-commit 1a2b3c4")
@click.option("--force", is_flag=True, help="Even if phases or tasks are open; it is recorded.")
@click.option("--merged-commit", metavar="SHA", help="The commit that the work was merged as.")
@session_option
@click.pass_obj
def complete_verb(request: Request, *, force: bool, merged_commit: str | None, session: str | None) -> None:
    """Complete the session.

    Finishing the last phase does this too.
    """
    with request.changing() as project:
        handle = project.session(session)
        active = is_active(project, handle)
        outcome = handle.complete(force=force, merged_commit=merged_commit)
    _answer(request, outcome, active=active)


@verb("cancel", example='detent cancel --reason "not wanted any more"')
@click.option("--reason", required=True, type=TEXT, help="Why; it is recorded.")
@session_option
@click.pass_obj
def cancel_verb(request: Request, *, reason: str, session: str | None) -> None:
    """Cancel the session, with a reason."""
    with request.changing() as project:
        handle = project.session(session)
        active = is_active(project, handle)
        outcome = handle.cancel(reason)
    _answer(request, outcome, active=active)


@verb("adopt", example="detent adopt")
@click.pass_obj
def adopt_verb(request: Request) -> None:
    """Adopt edits made by hand, now.

    Every verb that changes something does this first; adopt does nothing else. An edit that cannot be adopted is kept
    beside the document, with the reasons told.
    """
    with request.changing(settled=False) as project:
        adoptions = project.reconcile(every=True)
    said = "\n".join(adoption.describe() for adoption in adoptions) or "nothing was edited by hand"
    request.answer(lambda _: said, {"adoptions": adoptions})


def _answer(request: Request, outcome: "Outcome", *, active: bool) -> None:
    from detent.render.json.record import session_record
    from detent.render.terminal.outcome import moved_text

    request.notices += dropped(outcome)
    request.answer(
        lambda canvas: moved_text(
            outcome.session, _done(outcome.events), canvas=canvas, active=active, warnings=outcome.warnings
        ),
        {"warnings": outcome.warnings, "session": session_record(outcome.session, active=active)},
    )


def _done(events: "tuple[Event, ...]") -> "list[tuple[Status, str]]":
    from detent.core.session.describe import describe
    from detent.core.session.events import PhaseSkipped, SessionCancelled, SessionCompleted
    from detent.core.session.status import Status

    led_to = {
        PhaseSkipped: Status.SKIPPED,
        SessionCompleted: Status.COMPLETED,
        SessionCancelled: Status.SKIPPED,
    }
    return [(led_to[type(event)], describe(event)) for event in events if type(event) in led_to]
