"""`run`: runs a session with agents until it ends or needs a person."""

import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from detent.cli.person import WAITING, is_at_terminal
from detent.cli.request import Request, Usage, canvas, print_error, write_text
from detent.cli.run_screen import Screen, Style
from detent.cli.verb import TEXT, known_workflows, quorum_option, session_option, verb
from detent.clients.registry import with_hooks
from detent.errors import Conflict, DetentError, Invalid, LockTimeout, NotFound, Refused, StoreFailed

if TYPE_CHECKING:
    from detent.core.run.choices import RunChoices
    from detent.core.run.run_event import End, RunEvent
    from detent.core.workflow.graph import Workflow
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.run.agents import ConfiguredAgents
    from detent.run.outbox import Outbox
    from detent.run.preflight import Check
    from detent.run.scheduler import Runner
    from detent.worker.address import Address
    from detent.worker.flow_process import FlowProcess

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
@click.option(
    "--into", metavar="BRANCH", help="With --isolation: the branch to merge into, or HEAD; else detent/SESSION."
)
@click.option(
    "--max-hours", metavar="N", type=click.FloatRange(0, min_open=True), help="A person decides after N hours; 8."
)
@click.option("--max-turns", metavar="N", type=click.IntRange(1), help="A person decides after N turns of agents; 200.")
@click.option(
    "--max-tasks", metavar="N", type=click.IntRange(0), help="A person decides if agents add more than N tasks; 50."
)
@click.option("--tests", metavar="COMMAND", help="The test command, for gates that name none.")
@quorum_option
@click.option(
    "--check", is_flag=True, help="Only check whether a run could begin: agents, tests, files, hooks, limits."
)
@click.option("--yes", is_flag=True, help="Begin although files have changes that are not committed.")
@click.option("--wait/--no-wait", default=None, help="Wait for a person, or end; at a terminal it waits.")
@click.option("--on", "address", metavar="URL", help="Run on workers: temporal://HOST:7233/NAMESPACE; docs/scale.md.")
@session_option
def run_verb(
    request: Request,
    /,
    *,
    agents: tuple[str, ...],
    check: bool,
    yes: bool,
    wait: bool | None,
    address: str | None,
    **options: Any,
) -> int:
    """Run the session with agents until it ends or needs a person.

    With a new TASK it starts a session. Without TASK, or with that of the active session, it continues the session. It
    keeps the options of the run before; one that is given again is replaced.
    Ctrl-C pauses the run; a second Ctrl-C kills it. With --on, workers of other machines do the work (detent worker),
    and Ctrl-C leaves the run to them.

    Before anything is spent, it checks whether the run can begin: agents, tests, files, branch, hooks and limits.
    --check does only that, and its exit code is 1 if something is to be done first.

    The exit code is 0 when the session is complete, 6 when a person is needed, 7 when it was cancelled, 4 when another
    process runs it (a terminal shows that run instead), and 130 when the run was paused.
    """
    from detent.core.run.choices import RunChoices
    from detent.engine.policy import Decision

    on = _parsed(address)
    if os.environ.get("DETENT_PHASE"):
        raise Refused("an agent of a run cannot start another run", way_out="detent task add, or ask a person")
    at_terminal = is_at_terminal()
    named = {name: options.pop(name) for name in _RunRequest._fields if name in options}
    asked = _RunRequest(**named, given=RunChoices(agents=_agent_choices(agents), **options))
    if check:
        return _check(request, asked)
    if options["into"] is not None:
        request.authorize(Decision.INTO)
    try:
        with _flow_process(on) as flow, request.changing() as project:
            planned = _planned(project, asked, _existing(project, asked))
            if flow is not None:
                _check_workers_can_run(project)
                # Each job has a tree of its own: the branch and the files here do not matter.
                planned = planned._replace(checks=[each for each in planned.checks if each.subject != "branch"])
            ready = _ready(request, planned, yes=yes, asks=at_terminal and not request.json)
            handle = _begin(request, project, asked, planned)
            request.notices += _beside(project, handle.id) if address is None else []
            request.print_notices()
            waits = at_terminal if wait is None else wait
            if flow is None:
                end = _run(request, project, handle, ready, waits=waits)
            else:
                end = _run_on(request, project, handle, flow, waits=waits)
    except Conflict as conflict:
        if not at_terminal or request.json or conflict.way_out != "detent watch":
            raise
        from detent.cli.commands.watch import watch

        print_error(f"{conflict.message}; showing that run, Ctrl-C leaves it")
        watch(request, asked.session)
        return 0
    return {"waiting": WAITING, "cancelled": CANCELLED, "lost": LOST, "paused": PAUSED}.get(end.value, 0)


def _check_workers_can_run(project: "Project") -> None:
    """Refuse a run on workers with worktrees, or whose files no other machine could get, before anything is begun."""
    from detent.engine.checkpoints.travel import travel_of

    mode = project.settings.run.isolation
    if mode != "none":
        raise Refused(
            f"a run on workers has no worktrees, and isolation is {mode}: each job has a tree of its own already",
            way_out="give --isolation none, or set isolation of [run] in detent.toml to none",
        )
    travel_of(project)
    if not project.takes_checkpoints:
        raise Refused(
            "checkpoints are off, so no other machine could get the files",
            way_out='set capture = "tree" below [checkpoint] in detent.toml',
        )


def _parsed(address: str | None) -> "Address | None":
    if address is None:
        return None
    from detent.worker.address import parse_address

    return parse_address(address)


def _flow_process(on: "Address | None") -> "AbstractContextManager[FlowProcess | None]":
    """The process that starts the workflow of the session; it loads what it needs while the session is started."""
    if on is None:
        return nullcontext()
    from detent.worker.flow_process import FlowProcess

    return FlowProcess(on)


def _check(request: Request, asked: "_RunRequest") -> int:
    """Answer with all that was looked at, and begin nothing."""
    from detent.render.terminal.preflight import preflight_text
    from detent.run.preflight import State

    with request.reading() as project:
        try:
            handle = _existing(project, asked)
        except NotFound:
            # Without a session and a task: what a new one would meet.
            handle = None
        planned = _planned(project, asked, handle)
    offered = "detent gate baseline" if handle is not None and not handle.state.baseline.tests else None
    record = {"session": handle.id if handle else None, "checks": planned.checks, "offered": offered}
    request.answer(lambda canvas: preflight_text(planned.checks, offered, canvas), record)
    return int(any(check.state in (State.PROBLEM, State.ASK) for check in planned.checks))


def _ready(request: Request, planned: "_Planned", *, yes: bool, asks: bool) -> "ConfiguredAgents":
    """The agents. Refuses if a problem was found, or a person does not want to go on; all problems are listed."""
    from detent.cli.person import agrees
    from detent.run.preflight import State

    problems = [check for check in planned.checks if check.state is State.PROBLEM]
    open_ = [] if yes else [check for check in planned.checks if check.state is State.ASK]
    if isinstance(planned.agents, DetentError) and len(problems) + len(open_) == 1:
        raise planned.agents
    if not problems and open_ and asks:
        for check in open_:
            write_text(check.text)
        if agrees("Go on?"):
            open_ = []
    if problems or open_:
        listed = [f"{check.text} (try: {check.way_out})" for check in (*problems, *open_)]
        raise Invalid("the run did not begin", listed, way_out="detent run --check shows all that was looked at")
    if planned.handle is None:
        warnings = (check for check in planned.checks if check.state is State.WARNING)
        request.notices += [f"{check.text}; {check.way_out}" for check in warnings]
    assert not isinstance(planned.agents, DetentError)
    return planned.agents


def _beside(project: "Project", session: str) -> list[str]:
    """A warning if another session is being run in the same files."""
    from detent.engine.run_lease import live_leases

    others = {name: lease for name, lease in live_leases(project.store, now=project.clock()).items() if name != session}
    if not others or project.settings.run.isolation != "none":
        return []
    runs = ", ".join(f"{name} by {lease}" for name, lease in others.items())
    warning = f"another run works in the same files: {runs}. Gates of one see the changes of the other"
    return [f"{warning}; detent run --isolation session works in a git worktree of its own"]


def _set(project: "Project", chosen: "RunChoices", tests: str | None) -> None:
    """Options of the run override the settings."""
    import msgspec

    overrides = {**chosen.overrides(), **({} if tests is None else {"tests": tests})}
    run = msgspec.structs.replace(project.settings.run, **overrides)
    project.settings = msgspec.structs.replace(project.settings, run=run)


def _run(
    request: Request, project: "Project", handle: "SessionHandle", agents: "ConfiguredAgents", *, waits: bool
) -> "End":
    from detent.cli.run_person import Terminal
    from detent.core.run.estimate import usual_minutes
    from detent.engine.confirm import is_confirmed
    from detent.engine.gates.applicable import is_observed
    from detent.engine.policy import may_decide
    from detent.run.context import RunOptions
    from detent.run.feed import Feed
    from detent.run.scheduler import Runner

    # The threads mostly wait for child processes and files; a short interval lets them react at once.
    sys.setswitchinterval(0.0005)
    settings, style = project.settings.run, Style.fitting(json=request.json)
    usual = usual_minutes(project.history(), handle.state.workflow.name)
    screen = Screen(lambda: handle.state, style=style, now=project.clock, usual=usual, notify=settings.notify)
    feed = Feed(project.store.feed_writer(handle.id))
    outbox = _outbox(project, handle)

    def tell(event: "RunEvent") -> None:
        feed.tell(event)
        if outbox is not None:
            outbox.wake()
        with handle.reading():
            screen.tell(event)

    def tick() -> None:
        with handle.reading():
            screen.tick()

    # An agent may have a terminal too, but only a person may decide.
    asks = waits and style is Style.LIVE and sys.stdin.isatty() and may_decide(project.actor)
    person = Terminal(screen) if asks else None
    if asks:
        # It shows what is decided, and reads the answer at the terminal itself.
        project.confirm = is_confirmed
    runner = Runner(
        project,
        handle.id,
        agents,
        options=RunOptions(
            parallel=settings.parallel,
            attempts=settings.attempts,
            turns=settings.turns,
            max_hours=settings.max_hours,
            max_turns=settings.max_turns,
            max_tasks=settings.max_tasks,
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
        request.notices += outbox.close() if outbox is not None else []
    line = _write_report(project, handle)
    if not request.json:
        write_text(line)
    return end


def _run_on(
    request: Request, project: "Project", handle: "SessionHandle", flow: "FlowProcess", *, waits: bool
) -> "End":
    """Run on workers, and show the commits. Ctrl-C leaves the run to the workers."""
    from detent.cli.request import write_json
    from detent.core.run.run_event import End
    from detent.core.session.describe import describe
    from detent.core.session.events import Commit
    from detent.worker.client import check_files, run_on

    request.notices += check_files(project, handle)
    project.flush()
    request.print_notices()

    def tell(commit: Commit) -> None:
        if request.json:
            write_json(
                {"session": handle.id, "version": commit.version, "events": [describe(e) for e in commit.events]}
            )
            return
        for event in commit.events:
            _write_line(describe(event), f"{commit.at.astimezone():%H:%M:%S}  ")

    is_running = False

    def started() -> None:
        nonlocal is_running
        is_running = True
        if not request.json:
            _write_line(f"{handle.id} runs on {flow.address}; Ctrl-C leaves it running, detent pause stops it")

    def note(text: str) -> None:
        if request.json:
            write_json({"session": handle.id, "notice": text})
        else:
            print_error(text)

    idle = f"{handle.id} is active; detent run --on URL continues it"
    try:
        return run_on(project, handle, flow, wait=waits, tell=tell, started=started, note=note)
    except KeyboardInterrupt:
        print_error("the run continues on the workers; detent pause stops it" if is_running else idle)
        return End.PAUSED
    except DetentError:
        if not is_running:
            note(idle)
        raise


def _write_line(text: str, head: str = "") -> None:
    """Write a line: a terminal gets it without broken words, and a pipe as it is."""
    if sys.stdout.isatty():
        write_text("\n".join(canvas().hanging(text, " " * len(head) or "  ", head)))
    else:
        write_text(head + text)
    # The log of a CI job is a pipe, and is read while the run goes on.
    sys.stdout.flush()


def _outbox(project: "Project", handle: "SessionHandle") -> "Outbox | None":
    """Sends telemetry and webhooks; None if the settings name no receiver."""
    if project.settings.telemetry.endpoint is None and not project.settings.webhooks:
        return None
    from detent.run.outbox import open_outbox

    name = project.place.project or os.path.basename(project.place.root)
    return open_outbox(project.settings, project.store, handle.id, name, os.environ)


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
    given: "RunChoices"
    #: What --tests says.
    tests: str | None
    quorum: int | None


class _Planned(NamedTuple):
    """A run before anything of it has begun."""

    #: The session that goes on; None if the run starts one.
    handle: "SessionHandle | None"
    workflow: "Workflow"
    options: "RunChoices"
    #: The agents, or why there are none.
    agents: "ConfiguredAgents | DetentError"
    checks: "list[Check]"


def _planned(project: "Project", asked: _RunRequest, handle: "SessionHandle | None") -> _Planned:
    """The active session, or one with this task, or else a new one, with all that must be known before it begins."""
    from detent.core.run.isolation import isolated
    from detent.run.preflight import preflight

    if handle is not None:
        state = handle.state
        options, workflow, phases = state.options.run.updated(asked.given), state.workflow, state.active_order
        _set(project, options, asked.tests)
    else:
        options = asked.given
        _set(project, options, asked.tests)
        workflow = project.catalogue.workflow(asked.workflow or project.settings.run.workflow)
        workflow = isolated(workflow, project.settings.run.isolation, size=asked.size)
        left_out = workflow.sizes.get(asked.size, ()) if asked.size else ()
        phases = tuple(key for key in workflow.order if key not in left_out)
    agents: ConfiguredAgents | DetentError
    try:
        agents = _agents(project, workflow, phases, options.agents)
    except DetentError as error:
        agents = error
    checks = preflight(project, workflow, phases, agents, begins=handle is None, sets_tests=asked.tests is not None)
    return _Planned(handle, workflow, options, agents, checks)


def _begin(request: Request, project: "Project", asked: _RunRequest, planned: _Planned) -> "SessionHandle":
    """The session of the run: the one that goes on, with its options, or a new one."""
    handle, options = planned.handle, planned.options
    if handle is None:
        assert asked.task is not None
        handle = project.start(planned.workflow, asked.task, size=asked.size, quorum=asked.quorum, run=options)
        request.notices += project.left_out
        return handle
    _check_tests(handle, asked.tests)
    if options != handle.state.options.run:
        handle.set_run_options(asked.given)
    elif str(options):
        request.notices.append(f"with the options of the run before: {options}")
    return handle


def _check_tests(handle: "SessionHandle", tests: str | None) -> None:
    """Refuse a test command other than the one that the session has; set it if the session has none."""
    if tests is None:
        return
    from detent.core.gate import gate_name
    from detent.core.session.decide_gate import find_gate

    state = handle.state
    phases = {gate_name(gate): key for key in state.unfinished for gate in state.workflow.by_key[key].gates}
    for name, key in phases.items():
        # Looked up again: to set the command of one gate sets that of others.
        gate = find_gate(handle.state, key, name)
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
    if handle is not None and not handle.state.has_ended:
        if handle.state.task == task:
            return handle
        raise Refused(
            f"{handle.id} is active with another task: {handle.state.task[:80]}",
            way_out=f"detent run continues it; detent pause, then detent run {task[:30]!r} …, starts another",
        )
    # The run died after the session was completed: repeating the command must not repeat the work.
    completed = [left for left in left_behind(project) if left.state.status is SessionStatus.COMPLETED]
    return next((left for left in completed if left.state.task == task), None)


def _agent_choices(chosen: tuple[str, ...]) -> dict[str, str]:
    """Phase or role to agent, as the option names them."""
    agents: dict[str, str] = {}
    for choice in chosen:
        phase, equals, name = choice.rpartition("=")
        if not name or (equals and not phase):
            raise Usage(f"{choice!r} is not an agent; give NAME, or PHASE=NAME")
        agents[phase] = name
    return agents


def _agents(
    project: "Project", workflow: "Workflow", phases: "tuple[str, ...] | list[str]", overrides: dict[str, str]
) -> "ConfiguredAgents":
    from detent.run.agents import ConfiguredAgents

    known = {*workflow.by_key, *(phase.agent for phase in workflow.phases), ""}
    if unknown := [phase for phase in overrides if phase not in known]:
        raise NotFound(f"{workflow.name} has no phase or role {', '.join(unknown)}")
    return ConfiguredAgents(project.settings, overrides, needed=[(key, workflow.by_key[key].agent) for key in phases])
