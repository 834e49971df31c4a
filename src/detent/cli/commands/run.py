"""`run`: a session by agents, from where it stands to its end."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from detent.cli.person import WAITING
from detent.cli.request import Request, write_text
from detent.cli.run_screen import Screen, Style
from detent.cli.run_session import Asked, resolve_run
from detent.cli.verb import TEXT, known_workflows, session_option, verb
from detent.clients.registry import with_hooks
from detent.errors import Conflict, LockTimeout, Refused, StoreFailed

if TYPE_CHECKING:
    from detent.core.run.run_event import End, RunEvent
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.run.agents import ConfiguredAgents
    from detent.run.scheduler import Runner

CANCELLED, LOST, PAUSED = 7, 4, 130


@verb("run", example=f'detent run "Add login" --workflow feature --agent {with_hooks()[0]}')
@click.argument("task", required=False, type=TEXT)
@click.option("--workflow", metavar="W", shell_complete=known_workflows, help="For a new session; else [run] workflow.")
@click.option("--size", help="A size of the workflow, such as light, for a new session.")
@click.option(
    "--agent", "agents", metavar="[PHASE=]NAME", multiple=True, help="Who does the work, or that of a phase or role."
)
@click.option("--parallel", metavar="N", type=click.IntRange(1, 64), help="So many phases or tasks at once.")
@click.option(
    "--isolation", type=click.Choice(["none", "session", "phase"]), help="Work in git worktrees, merged by a gate."
)
@click.option("--tests", metavar="COMMAND", help="What runs the tests, for gates that name no command.")
@click.option("--wait/--no-wait", default=None, help="Wait for a person, or end; by default wait at a terminal.")
@session_option
@click.pass_obj
def run_verb(
    request: Request,
    /,
    task: str | None,
    *,
    workflow: str | None,
    size: str | None,
    agents: tuple[str, ...],
    wait: bool | None,
    session: str | None,
    **options: Any,
) -> None:
    """Run the session with agents until it ends or needs a person.

    With a TASK that no session is about a new one is started. Without, or when it was interrupted, the session goes on
    where it stands. Ctrl-C pauses the run; a second one ends it at once.

    The exit code is 0 when the session is complete, 6 when a person is needed, 7 when it was cancelled, 4 when
    somebody else runs it (at a terminal you look on instead), and 130 when it was paused.
    """
    if os.environ.get("DETENT_PHASE"):
        raise Refused("an agent of a run does not start another run", way_out="detent task add, or ask a person")
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        with request.changing() as project:
            _set(project, **options)
            handle, chosen = resolve_run(request, project, Asked(task, session, workflow, size, agents))
            request.say_notices()
            end = _run(request, project, handle, chosen, waits=at_terminal if wait is None else wait)
    except Conflict as conflict:
        if not at_terminal or request.json or conflict.way_out != "detent watch":
            raise
        _attach(request, session, conflict)
        return
    _leave(end)


def _set(project: "Project", **options: Any) -> None:
    """What the command line says (parallel, isolation, tests) counts more than the settings."""
    import msgspec

    given = {name: value for name, value in options.items() if value is not None}
    run = msgspec.structs.replace(project.settings.run, **given)
    project.settings = msgspec.structs.replace(project.settings, run=run)


def _run(
    request: Request, project: "Project", handle: "SessionHandle", agents: "ConfiguredAgents", *, waits: bool
) -> "End":
    from detent.cli.run_person import Terminal
    from detent.core.run.estimate import usual_minutes
    from detent.engine.gates.applicable import is_observed
    from detent.engine.policy import may_decide
    from detent.run.context import RunOptions
    from detent.run.feed import Feed, feed_path
    from detent.run.scheduler import Runner

    # Threads that only wait for children and files are not to wait for each other's turn at the interpreter.
    sys.setswitchinterval(0.0005)
    settings, style = project.settings.run, Style.fitting(json=request.json)
    usual = usual_minutes(project.history(), handle.state.workflow.name)
    screen = Screen(lambda: handle.state, style=style, now=project.clock, usual=usual, notify=settings.notify)
    feed = Feed(feed_path(project.store, handle.id))

    def tell(event: "RunEvent") -> None:
        feed.tell(event)
        with handle.reading():
            screen.tell(event)

    def tick() -> None:
        with handle.reading():
            screen.tick()

    # An agent may have a terminal too, and nothing that it says there is a person's word.
    asks = waits and style is Style.LIVE and sys.stdin.isatty() and may_decide(project.actor)
    person = Terminal(screen) if asks else None
    runner = Runner(
        project,
        handle.id,
        agents,
        options=RunOptions(
            parallel=settings.parallel,
            attempts=settings.attempts,
            turns=settings.turns,
            tests=settings.tests,
            observes=is_observed(project.place),
            wait=waits,
        ),
        tell=tell,
        person=person,
        idle=tick,
    )
    try:
        with _stoppable(runner):
            end = runner.run()
    finally:
        screen.close()
        feed.close()
    told = _write_report(project, handle)
    if not request.json:
        write_text(told)
    return end


@contextmanager
def _stoppable(runner: "Runner") -> Iterator[None]:
    """The first signal pauses the run, and a second one ends it with all that it started."""
    seen = 0

    def stop(kind: int, _frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            runner.pause("interrupted" if kind == signal.SIGINT else f"ended by signal {kind}")
            return
        runner.kill()
        # Threads wait for children that are gone now; what they were doing is recorded by the next run.
        os._exit(PAUSED)

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before: dict[int, Callable[[int, FrameType | None], object] | int | None] = {
        kind: signal.signal(kind, stop) for kind in kinds
    }
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _write_report(project: "Project", handle: "SessionHandle") -> str:
    """The report of the session beside its journal; a line that says where."""
    from detent.run.report import write_report

    try:
        return f"The report is in {os.path.relpath(write_report(project, handle))}"
    except (LockTimeout, StoreFailed) as error:
        # The run stands for itself; detent report makes it anew.
        return f"the report could not be written: {error.message}"


def _attach(request: Request, session: str | None, conflict: Conflict) -> None:
    from detent.cli.commands.watch import watch
    from detent.cli.request import print_error

    print_error(f"{conflict.message}; looking on, Ctrl-C leaves")
    watch(request, session)


def _leave(end: "End") -> None:
    code = {"waiting": WAITING, "cancelled": CANCELLED, "lost": LOST, "paused": PAUSED}.get(end.value, 0)
    if code:
        raise click.exceptions.Exit(code)
