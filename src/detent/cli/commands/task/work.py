"""`task start`, `next`, `done`, `fail`, `block` and the other verbs that change the state of a task."""

from typing import TYPE_CHECKING

import click

from detent.cli.answers import note_dropped
from detent.cli.request import Request, is_active, session_of
from detent.cli.task import claim_option, known_task, move_task, optional_task_argument, task_argument
from detent.cli.task_next import next_text
from detent.cli.verb import TEXT, session_option, verb
from detent.errors import NotFound, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.engine.tasks.tasks import Claimed

_LEASE_S = 3600.0
#: Tasks of one kind that an answer names line by line.
_MOST_LINES = 5
_LONGEST_LEASE_S = 30 * 86_400.0
_owner_option = click.option("--owner", metavar="NAME", type=TEXT, help="Who starts the task, if not you.")


@verb("start", example="detent task start IMPL-3")
@optional_task_argument
@_owner_option
@click.option(
    "--lease",
    metavar="SECONDS",
    type=click.FloatRange(min=1, max=_LONGEST_LEASE_S),
    default=_LEASE_S,
    help="Lease in seconds, 3600 if not given; another worker may take the task after it expires.",
)
@click.option(
    "--pid",
    metavar="PID",
    type=click.IntRange(min=1),
    help="The process that holds the claim; the claim ends with it.",
)
@session_option
def start_task(
    request: Request, task: str | None, *, owner: str | None, lease: float, pid: int | None, session: str | None
) -> None:
    """Start a task: ID, or the next one that is ready.

    Only one worker can hold a task. The answer has the number of the claim, which done, fail, block and release take as
    --claim, and the context of the task.
    """
    with request.changing() as project:
        handle = project.session(session)
        own = known_task(handle, task) if task is not None else None
        claimed = handle.tasks.start(own, owner=owner, pid=pid, lease_s=lease)
        _answer_claimed(request, project, handle, claimed)


@verb("next", example="detent task next --claim")
@click.option("--claim", is_flag=True, help="Start it, as detent task start does.")
@session_option
def next_task(request: Request, *, claim: bool, session: str | None) -> None:
    """Show the task to do next.

    The first ready task, in the order of dependencies and then of numbers; else one whose holder is gone. If there is
    neither, the exit code is 1 and the answer names what is blocked, and by what.
    """
    from detent.render.terminal.tasks import task_record

    if claim:
        with request.changing() as project:
            handle = project.session(session)
            if handle.tasks.next() is None:
                raise _nothing_next(handle.state)
            _answer_claimed(request, project, handle, handle.tasks.start())
        return
    with request.reading() as project:
        handle = session_of(project, session)
        row, state, active = handle.tasks.next(), handle.state, is_active(project, handle)
    if row is None:
        raise _nothing_next(state)
    request.answer(
        lambda canvas: next_text(state.id, row, canvas=canvas, active=active),
        {"session": state.id, "task": task_record(state, row)},
    )


@verb("done", example='detent task done IMPL-3 --claim 12 -m "The form validates" --met "test_form passes"')
@task_argument
@click.option("-m", "--message", metavar="SUMMARY", type=TEXT, default="", help="What was done; - reads it.")
@click.option("--met", metavar="HOW", type=TEXT, multiple=True, help="How the next acceptance criterion is met.")
@claim_option
@session_option
def done_task(
    request: Request, task: str, *, message: str, met: tuple[str, ...], claim: int | None, session: str | None
) -> None:
    """Complete a task.

    A task with acceptance criteria needs --met for each of them, in their order; detent task show lists them.
    The summary is kept in .summaries and is part of the context of tasks that depend on this one. If the task cannot be
    completed, the summary is kept beside them, and the refusal names the file.
    """

    def notes(state: "Session", own: str) -> list[str]:
        saved = [f"summary in {state.id}/.summaries/{own}-summary.md"] if message.strip() or met else []
        return [*saved, *_phase_note(state)]

    move_task(
        request,
        session,
        task,
        lambda tasks, own: tasks.done(own, message, met=met, fence=claim),
        notes,
        summary=message,
    )


@verb("fail", example='detent task fail IMPL-3 -m "the tests do not pass"')
@task_argument
@click.option("-m", "--message", metavar="ERROR", type=TEXT, required=True, help="What went wrong; - reads it.")
@claim_option
@session_option
def fail_task(request: Request, task: str, *, message: str, claim: int | None, session: str | None) -> None:
    """Fail a task.

    Tasks that depend on it wait; detent task retry makes it pending again.
    """
    move_task(request, session, task, lambda tasks, own: tasks.fail(own, message, fence=claim))


@verb("block", example='detent task block IMPL-3 --reason "needs the API key"')
@task_argument
@click.option("-m", "--reason", type=TEXT, required=True, help="What the task waits for; it is recorded.")
@claim_option
@session_option
def block_task(request: Request, task: str, *, reason: str, claim: int | None, session: str | None) -> None:
    """Block a task until something else happens."""
    move_task(request, session, task, lambda tasks, own: tasks.block(own, reason, fence=claim))


@verb("unblock", example="detent task unblock IMPL-3")
@task_argument
@session_option
def unblock_task(request: Request, task: str, *, session: str | None) -> None:
    """Make a blocked task pending again."""
    move_task(request, session, task, lambda tasks, own: tasks.unblock(own))


@verb("resume", example="detent task resume IMPL-3")
@task_argument
@_owner_option
@session_option
def resume_task(request: Request, task: str, *, owner: str | None, session: str | None) -> None:
    """Continue a blocked task."""
    with request.changing() as project:
        handle = project.session(session)
        _answer_claimed(request, project, handle, handle.tasks.resume(known_task(handle, task), owner=owner))


@verb("retry", example="detent task retry IMPL-3")
@task_argument
@session_option
def retry_task(request: Request, task: str, *, session: str | None) -> None:
    """Make a failed task pending again."""
    move_task(request, session, task, lambda tasks, own: tasks.retry(own))


@verb("reopen", example="detent task reopen IMPL-3")
@task_argument
@session_option
def reopen_task(request: Request, task: str, *, session: str | None) -> None:
    """Reopen a completed task.

    Completed tasks that depend on it stay completed; the answer names them as possibly stale.
    """
    move_task(request, session, task, lambda tasks, own: tasks.reopen(own))


@verb("release", example="detent task release IMPL-3 --claim 12")
@optional_task_argument
@click.option("-m", "--reason", type=TEXT, default="", help="Why; it is recorded.")
@click.option("--abandoned", is_flag=True, help="Instead of ID: all tasks whose holders are gone.")
@claim_option
@session_option
def release_task(
    request: Request, task: str | None, *, reason: str, abandoned: bool, claim: int | None, session: str | None
) -> None:
    """Release a task unfinished.

    It is pending again. A holder is gone when its process ended or its lease expired.
    """
    if (task is None) != abandoned:
        raise click.UsageError("name a task, or give --abandoned for all whose holders are gone")
    if task is not None:
        move_task(request, session, task, lambda tasks, own: tasks.release(own, reason=reason, fence=claim))
        return
    with request.changing() as project:
        handle = project.session(session)
        released = handle.tasks.release_abandoned()
    text = f"given back: {', '.join(released)}" if released else "every task in progress has a live holder"
    request.answer(lambda canvas: "\n".join(canvas.wrap(text)), {"session": handle.id, "released": released})


@verb("beat", example="detent task beat IMPL-3 --claim 12")
@task_argument
@claim_option
@session_option
def beat_task(request: Request, task: str, *, claim: int | None, session: str | None) -> None:
    """Renew the lease of a task."""
    with request.changing() as project:
        handle = project.session(session)
        own = known_task(handle, task)
        held = handle.state.claims.get(own)
        if held is None:
            raise Refused(f"{own} is not claimed", way_out=f"detent task start {own}")
        if claim is not None and claim != held.fence:
            raise Refused(f"{own} is held by {held.owner} under claim {held.fence}, not {claim}")
        handle.tasks.beat(own, held.fence)
    request.answer(
        lambda canvas: canvas.cut(f"{own} is held by {held.owner} for another {held.lease_s:g} seconds", canvas.width),
        {"session": handle.id, "task": own, "claim": held.fence, "lease_s": held.lease_s},
    )


def _answer_claimed(request: Request, project: "Project", handle: "SessionHandle", claimed: "Claimed") -> None:
    from detent.engine.decisions import view_now
    from detent.render.terminal.task import claimed_text

    view = view_now(project, claimed.session)
    context = handle.tasks.context(claimed.task)
    note_dropped(request, claimed)
    request.answer(
        lambda canvas: claimed_text(claimed.session, claimed.events, claimed.task, context, canvas=canvas, view=view),
        {
            "session": claimed.session.id,
            "task": claimed.task,
            "claim": claimed.fence,
            "owner": claimed.claim.owner,
            "lease_s": claimed.claim.lease_s,
            "version": claimed.session.version,
            "context": context,
        },
    )


def _nothing_next(state: "Session") -> NotFound:
    """Why no task can be started, and the next command."""
    from detent.core.counted import listed
    from detent.core.task.row import TaskStatus

    plan = state.tasks
    if not len(plan):
        return NotFound("there are no tasks", way_out='detent task add "TITLE"')
    if plan.is_completed:
        return NotFound(plan.done_text, way_out="detent status")
    active, failed = plan.with_status(TaskStatus.ACTIVE), plan.with_status(TaskStatus.FAILED)
    blocked, waiting = plan.with_status(TaskStatus.BLOCKED), plan.waiting
    reasons = [
        *([f"in progress: {listed(active)}"] if active else []),
        *_each(failed, lambda task: f"{task} failed: {plan[task].reason}"),
        *_each(blocked, lambda task: f"{task} is blocked: {plan[task].reason}"),
        *_each(tuple(waiting), lambda task: f"{task} waits for {listed(waiting[task])}"),
    ]
    way_out = f"detent task retry {failed[0]}" if failed else f"detent task unblock {blocked[0]}" if blocked else None
    return NotFound("\n  - ".join(["no task is ready", *reasons]), way_out=way_out or "detent task list")


def _each(tasks: "Sequence[str]", line: "Callable[[str], str]") -> list[str]:
    """A line a task, for the first ones."""
    more = [f"and {len(tasks) - _MOST_LINES} more"] if len(tasks) > _MOST_LINES else []
    return [*map(line, tasks[:_MOST_LINES]), *more]


def _phase_note(state: "Session") -> list[str]:
    """A note if all tasks are completed but their phase is not."""

    live = state.in_progress
    if not state.tasks.is_completed or live != ("IMPLEMENT",):
        return []
    return ["all tasks are done, but IMPLEMENT is blocked: detent why explains"]
