"""`run`: runs a session with agents until it ends or needs a person."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from detent.cli.person import WAITING
from detent.cli.request import Request, Usage, print_error, write_text
from detent.cli.run_screen import Screen, Style
from detent.cli.verb import TEXT, known_workflows, quorum_option, session_option, verb
from detent.clients.registry import with_hooks
from detent.errors import Conflict, LockTimeout, NotFound, Refused, StoreFailed

if TYPE_CHECKING:
    from detent.core.run.run_event import End, RunEvent
    from detent.core.workflow.graph import Workflow
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
    "--agent", "agents", metavar="[PHASE=]NAME", multiple=True, help="The agent for all phases, or for a phase or role."
)
@click.option(
    "--parallel", metavar="N", type=click.IntRange(1, 64), help="Maximum number of phases or tasks to run in parallel."
)
@click.option(
    "--isolation", type=click.Choice(["none", "session", "phase"]), help="Work in git worktrees, merged by a gate."
)
@click.option("--tests", metavar="COMMAND", help="The test command, for gates that name none.")
@quorum_option
@click.option("--wait/--no-wait", default=None, help="Wait for a person, or end; at a terminal it waits.")
@session_option
def run_verb(
    request: Request,
    /,
    task: str | None,
    *,
    workflow: str | None,
    size: str | None,
    agents: tuple[str, ...],
    quorum: int | None,
    wait: bool | None,
    session: str | None,
    **options: Any,
) -> int:
    """Run the session with agents until it ends or needs a person.

    With a new TASK it starts a session. Without TASK, or with that of the active session, it continues the session.
    Ctrl-C pauses the run; a second Ctrl-C kills it.

    The exit code is 0 when the session is complete, 6 when a person is needed, 7 when it was cancelled, 4 when another
    process runs it (a terminal shows that run instead), and 130 when the run was paused.
    """
    if os.environ.get("DETENT_PHASE"):
        raise Refused("an agent of a run cannot start another run", way_out="detent task add, or ask a person")
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    try:
        with request.changing() as project:
            _set(project, **options)
            asked = _RunRequest(task, session, workflow, size, agents, options["tests"], quorum)
            handle, chosen = _resolve_run(request, project, asked)
            request.print_notices()
            end = _run(request, project, handle, chosen, waits=at_terminal if wait is None else wait)
    except Conflict as conflict:
        if not at_terminal or request.json or conflict.way_out != "detent watch":
            raise
        from detent.cli.commands.watch import watch

        print_error(f"{conflict.message}; showing that run, Ctrl-C leaves it")
        watch(request, session)
        return 0
    return {"waiting": WAITING, "cancelled": CANCELLED, "lost": LOST, "paused": PAUSED}.get(end.value, 0)


def _set(project: "Project", **options: Any) -> None:
    """Options of the command line (parallel, isolation, tests) override the settings."""
    import msgspec

    overrides = {name: value for name, value in options.items() if value is not None}
    run = msgspec.structs.replace(project.settings.run, **overrides)
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

    # The threads mostly wait for child processes and files; a short interval lets them react at once.
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

    # An agent may have a terminal too, but only a person may decide.
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
    line = _write_report(project, handle)
    if not request.json:
        write_text(line)
    return end


@contextmanager
def _stoppable(runner: "Runner") -> Iterator[None]:
    """The first signal pauses the run, a second one kills it with its child processes."""
    signals = 0

    def stop(kind: int, _frame: FrameType | None) -> None:
        nonlocal signals
        signals += 1
        if signals == 1:
            runner.pause("interrupted" if kind == signal.SIGINT else f"ended by signal {kind}")
            return
        runner.kill()
        # The threads wait for children that are gone. The next run records the interrupted work.
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
    """Write the report beside the journal; returns a line that names the file."""
    from detent.run.report import write_report

    try:
        return f"The report is in {os.path.relpath(write_report(project, handle))}"
    except (LockTimeout, StoreFailed) as error:
        # The run itself succeeded; detent report writes the report again.
        return f"the report could not be written: {error.message}"


class _RunRequest(NamedTuple):
    task: str | None
    session: str | None
    workflow: str | None
    size: str | None
    agents: tuple[str, ...]
    #: What --tests says.
    tests: str | None
    quorum: int | None


def _resolve_run(request: Request, project: "Project", asked: _RunRequest) -> "tuple[SessionHandle, ConfiguredAgents]":
    """The active session, or one with this task, or else a new one; everything is checked before one is started."""
    from detent.core.run.isolation import isolated

    handle = _existing(project, asked)
    if handle is not None:
        _check_tests(handle, asked.tests)
        state = handle.state
        return handle, _agents(project, state.workflow, state.active_order, asked.agents)
    assert asked.task is not None
    chosen = project.catalogue.workflow(asked.workflow or project.settings.run.workflow)
    chosen = isolated(chosen, project.settings.run.isolation, size=asked.size)
    left_out = chosen.sizes.get(asked.size, ()) if asked.size else ()
    agents = _agents(project, chosen, [key for key in chosen.order if key not in left_out], asked.agents)
    handle = project.start(chosen, asked.task, size=asked.size, delegates=True, joins=True, quorum=asked.quorum)
    request.notices += project.left_out
    return handle, agents


def _check_tests(handle: "SessionHandle", tests: str | None) -> None:
    """Refuse a test command other than the one that the session has; set it if the session has none."""
    if tests is None:
        return
    from detent.core.gate import gate_name

    state = handle.state
    gates = {gate_name(gate): gate for key in state.unfinished for gate in state.workflow.by_key[key].gates}
    for name, gate in gates.items():
        command = gate.runnable()
        if gate.runs_tests and command is None:
            handle.gates.set_command(name, tests, "detent run --tests")
        elif gate.runs_tests and command != tests:
            raise Refused(
                f"gate {name} of {handle.id} is decided by `{command}`, and --tests says `{tests}`",
                way_out=f"leave --tests out, or: detent gate set {name} --command {shlex.quote(tests)} -m WHY",
            )


def _existing(project: "Project", asked: _RunRequest) -> "SessionHandle | None":
    from detent.core.session.session import SessionStatus
    from detent.run.recovery import left_behind

    active = project.active()
    named = project.session_id(asked.session) if asked.session is not None else active
    if named != active:
        raise Refused(f"{named} is not the active session", way_out=f"detent switch {named}")
    handle = project.session() if active is not None else None
    if asked.task is None:
        if handle is None:
            raise NotFound("no session is active", way_out='detent run "TASK"')
        return handle
    task = asked.task.strip()
    if handle is not None and handle.state.status is SessionStatus.ACTIVE:
        if handle.state.task == task:
            return handle
        raise Refused(
            f"{handle.id} is active with another task: {handle.state.task[:80]}",
            way_out=f"detent run continues it; detent pause, then detent run {task[:30]!r} …, starts another",
        )
    # The run died after the session was completed: repeating the command must not repeat the work.
    completed = [left for left in left_behind(project) if left.state.status is SessionStatus.COMPLETED]
    return next((left for left in completed if left.state.task == task), None)


def _agents(
    project: "Project", workflow: "Workflow", phases: "tuple[str, ...] | list[str]", chosen: tuple[str, ...]
) -> "ConfiguredAgents":
    from detent.run.agents import ConfiguredAgents

    overrides: dict[str, str] = {}
    for choice in chosen:
        phase, equals, name = choice.rpartition("=")
        if not name or (equals and not phase):
            raise Usage(f"{choice!r} is not an agent; give NAME, or PHASE=NAME")
        overrides[phase] = name
    known = {*workflow.by_key, *(phase.agent for phase in workflow.phases), ""}
    if unknown := [phase for phase in overrides if phase not in known]:
        raise NotFound(f"{workflow.name} has no phase or role {', '.join(unknown)}")
    return ConfiguredAgents(project.settings, overrides, needed=[(key, workflow.by_key[key].agent) for key in phases])
