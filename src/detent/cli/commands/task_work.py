"""`task start|next|done|fail|block|…`: taking tasks, and saying what became of them."""

from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, is_active, session_of
from detent.cli.task_argument import answer_moved, claim_option, known, optional_task_argument, task_argument
from detent.cli.verb import TEXT, session_option, verb
from detent.errors import NotFound, Refused

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.engine.tasks.tasks import Claimed

_LEASE_S = 3600.0
_LONGEST_LEASE_S = 30 * 86_400.0
_owner_option = click.option("--owner", metavar="NAME", type=TEXT, help="Who takes it, if not you.")


@verb("start", example="detent task start IMPL-3")
@optional_task_argument
@_owner_option
@click.option(
    "--lease",
    metavar="SECONDS",
    type=click.FloatRange(min=1, max=_LONGEST_LEASE_S),
    default=_LEASE_S,
    help="After so long without a sign of life others may take it; 3600 if not given.",
)
@click.option(
    "--pid",
    metavar="PID",
    type=click.IntRange(min=1),
    help="The process that holds it; when it ends, so does the claim.",
)
@session_option
@click.pass_obj
def start_task(
    request: Request, task: str | None, *, owner: str | None, lease: float, pid: int | None, session: str | None
) -> None:
    """Take a task: ID, or the next one that is ready.

    Of several who ask for the same one, one gets it. The answer has the number of the claim, which done, fail, block
    and release take as --claim, and what the task asks for.
    """
    with request.changing() as project:
        handle = project.session(session)
        wanted = known(handle, task) if task is not None else None
        claimed = handle.tasks.start(wanted, owner=owner, pid=pid, lease_s=lease)
        _answer_claimed(request, project, handle, claimed)


@verb("next", example="detent task next --claim")
@click.option("--claim", is_flag=True, help="Take it, as detent task start does.")
@session_option
@click.pass_obj
def next_task(request: Request, *, claim: bool, session: str | None) -> None:
    """Show the task to do next.

    The first that is ready, in the order of dependencies and then of numbers. If none is, the exit code is 1 and the
    answer says what the others wait for.
    """
    from detent.render.terminal.tasks import task_record

    if claim:
        with request.changing() as project:
            handle = project.session(session)
            _check_ready(handle.state)
            _answer_claimed(request, project, handle, handle.tasks.start())
        return
    with request.reading() as project:
        handle = session_of(project, session)
        state, active = handle.state, is_active(project, handle)
    _check_ready(state)
    row = state.tasks[str(state.tasks.next_ready())]
    named = "" if active else f" --session {state.id}"
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"{row.id} {row.title}", canvas.width),
                "",
                *canvas.command(f"detent task start {row.id}{named}"),
            ]
        ),
        {"session": state.id, "task": task_record(state, row)},
    )


@verb("done", example='detent task done IMPL-3 --claim 12 -m "The form validates on the server"')
@task_argument
@click.option("-m", "--message", metavar="SUMMARY", type=TEXT, default="", help="What was done; - reads it.")
@claim_option
@session_option
@click.pass_obj
def done_task(request: Request, task: str, *, message: str, claim: int | None, session: str | None) -> None:
    """A task is done.

    The summary is kept in .summaries and is given to whoever starts a task that depends on this one.
    """
    with request.changing() as project:
        handle = project.session(session)
        own = known(handle, task)
        outcome = handle.tasks.done(own, message, fence=claim)
        notes = [f"summary in {handle.id}/.summaries/{own}-summary.md"] if message.strip() else []
        answer_moved(request, project, handle, outcome, notes=[*notes, *_phase_note(outcome.session)])


@verb("fail", example='detent task fail IMPL-3 -m "the tests do not pass"')
@task_argument
@click.option("-m", "--message", metavar="ERROR", type=TEXT, required=True, help="What went wrong; - reads it.")
@claim_option
@session_option
@click.pass_obj
def fail_task(request: Request, task: str, *, message: str, claim: int | None, session: str | None) -> None:
    """A task did not succeed.

    What depends on it waits; detent task retry makes it pending again.
    """
    with request.changing() as project:
        handle = project.session(session)
        answer_moved(request, project, handle, handle.tasks.fail(known(handle, task), message, fence=claim))


@verb("block", example='detent task block IMPL-3 --reason "needs the API key"')
@task_argument
@click.option("--reason", type=TEXT, required=True, help="What it waits for; it is recorded.")
@claim_option
@session_option
@click.pass_obj
def block_task(request: Request, task: str, *, reason: str, claim: int | None, session: str | None) -> None:
    """A task cannot go on before something else happens."""
    with request.changing() as project:
        handle = project.session(session)
        answer_moved(request, project, handle, handle.tasks.block(known(handle, task), reason, fence=claim))


@verb("unblock", example="detent task unblock IMPL-3")
@task_argument
@session_option
@click.pass_obj
def unblock_task(request: Request, task: str, *, session: str | None) -> None:
    """A blocked task is pending again."""
    with request.changing() as project:
        handle = project.session(session)
        answer_moved(request, project, handle, handle.tasks.unblock(known(handle, task)))


@verb("resume", example="detent task resume IMPL-3")
@task_argument
@_owner_option
@session_option
@click.pass_obj
def resume_task(request: Request, task: str, *, owner: str | None, session: str | None) -> None:
    """Go on with a blocked task where it was left."""
    with request.changing() as project:
        handle = project.session(session)
        _answer_claimed(request, project, handle, handle.tasks.resume(known(handle, task), owner=owner))


@verb("retry", example="detent task retry IMPL-3")
@task_argument
@session_option
@click.pass_obj
def retry_task(request: Request, task: str, *, session: str | None) -> None:
    """A failed task is pending again."""
    with request.changing() as project:
        handle = project.session(session)
        answer_moved(request, project, handle, handle.tasks.retry(known(handle, task)))


@verb("reopen", example="detent task reopen IMPL-3")
@task_argument
@session_option
@click.pass_obj
def reopen_task(request: Request, task: str, *, session: str | None) -> None:
    """Do a completed task again.

    Completed tasks that built on it stay as they are and are named as possibly stale.
    """
    with request.changing() as project:
        handle = project.session(session)
        answer_moved(request, project, handle, handle.tasks.reopen(known(handle, task)))


@verb("release", example="detent task release IMPL-3 --claim 12")
@optional_task_argument
@click.option("--reason", type=TEXT, default="", help="Why; it is recorded.")
@click.option("--abandoned", is_flag=True, help="Instead of ID: all whose holders are gone.")
@claim_option
@session_option
@click.pass_obj
def release_task(
    request: Request, task: str | None, *, reason: str, abandoned: bool, claim: int | None, session: str | None
) -> None:
    """Give a task back unfinished.

    It is pending again. A holder is gone when its process ended or its lease ran out.
    """
    if (task is None) != abandoned:
        raise click.UsageError("name a task, or give --abandoned for all whose holders are gone")
    with request.changing() as project:
        handle = project.session(session)
        if task is not None:
            outcome = handle.tasks.release(known(handle, task), reason=reason, fence=claim)
            answer_moved(request, project, handle, outcome)
            return
        found = handle.tasks.release_abandoned()
    told = f"given back: {', '.join(found)}" if found else "every task in progress has a holder that is there"
    request.answer(lambda canvas: "\n".join(canvas.wrap(told)), {"session": handle.id, "released": found})


@verb("beat", example="detent task beat IMPL-3 --claim 12")
@task_argument
@claim_option
@session_option
@click.pass_obj
def beat_task(request: Request, task: str, *, claim: int | None, session: str | None) -> None:
    """Say that you still work on a task.

    Its lease counts anew from now.
    """
    with request.changing() as project:
        handle = project.session(session)
        own = known(handle, task)
        held = handle.state.claims.get(own)
        if held is None:
            raise Refused(f"nobody holds {own}", way_out=f"detent task start {own}")
        if claim is not None and claim != held.fence:
            raise Refused(f"{own} is held by {held.owner} under claim {held.fence}, not {claim}")
        handle.tasks.beat(own, held.fence)
    request.answer(
        lambda canvas: canvas.cut(f"{own} is held by {held.owner} for {held.lease_s:g} seconds more", canvas.width),
        {"session": handle.id, "task": own, "claim": held.fence, "lease_s": held.lease_s},
    )


def _answer_claimed(request: Request, project: "Project", handle: "SessionHandle", claimed: "Claimed") -> None:
    from detent.cli.commands.attempt import dropped
    from detent.render.terminal.task import claimed_text

    active = is_active(project, handle)
    context = handle.tasks.context(claimed.task)
    request.notices += dropped(claimed)
    request.answer(
        lambda canvas: claimed_text(
            claimed.session, claimed.events, claimed.task, context, canvas=canvas, active=active
        ),
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


def _check_ready(state: "Session") -> None:
    """If nothing is ready, say what holds the tasks, and what would move them."""
    from detent.core.task.row import TaskStatus
    from detent.render.terminal.tasks import named

    plan = state.tasks
    if not len(plan):
        raise NotFound("there are no tasks", way_out='detent task add "TITLE"')
    if plan.next_ready() is not None:
        return
    if plan.is_completed:
        raise NotFound(f"all {plan.leaf_count} tasks are done", way_out="detent status")
    active, failed = plan.with_status(TaskStatus.ACTIVE), plan.with_status(TaskStatus.FAILED)
    blocked, waiting = plan.with_status(TaskStatus.BLOCKED), plan.waiting
    told = [
        *([f"in progress: {named(active)}"] if active else []),
        *([f"failed: {named(failed)}"] if failed else []),
        *([f"blocked: {named(blocked)}"] if blocked else []),
        *(f"{task} waits for {named(needs)}" for task, needs in list(waiting.items())[:5]),
        *([f"and {len(waiting) - 5} more wait"] if len(waiting) > 5 else []),
    ]
    way_out = f"detent task retry {failed[0]}" if failed else f"detent task unblock {blocked[0]}" if blocked else None
    raise NotFound("\n  - ".join(["no task is ready", *told]), way_out=way_out or "detent task list")


def _phase_note(state: "Session") -> list[str]:
    """Tasks that are all done while their phase is not: something holds it, and `why` says what."""
    from detent.core.session.status import Status

    live = state.with_status(Status.IN_PROGRESS)
    if not state.tasks.is_completed or live != ("IMPLEMENT",):
        return []
    return ["all tasks are done, and IMPLEMENT is held: detent why says by what"]
