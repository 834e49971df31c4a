"""Chains of phases by the runner: what it adds to an agent, durable steps of others beside it, and its memory."""

import multiprocessing
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import count
from multiprocessing.connection import Connection
from typing import NamedTuple

from bench.measure import Batch, Setting, interleave, say, seconds_each
from bench.peers import DBOS, LANGGRAPH, Peer, Unavailable, environment, running
from bench.table import Goal, Row, Section
from bench.tree import Repository
from bench.workload import ACTOR
from detent.clients.adapter.agent import Agent, Turn
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import AgentEvent, Finished, Started
from detent.core.run.run_event import End, PhaseEnded, RunEvent
from detent.core.session.phase_state import Report
from detent.core.workflow.graph import chain
from detent.engine.project import Project, init_project, open_project
from detent.run.agents import make_agent
from detent.run.context import RunOptions
from detent.run.scheduler import Runner

_OVERHEAD_S = 0.025
#: The limit is for agents that do not end.
_MAX_TURNS = 1_000_000
_FILES = 20
_STATUS = "/proc/self/status"
_MEMORY_S_MAX = 600
_WARM = 5
#: A run that is over leaves nothing behind; of a phase that is over, the session keeps what came of it.
_FLAT, _RECORDED = Goal(1.1), Goal(1.3)
COMMAND = AgentSettings(adapter="command", command="true")


class _Instant:
    """An agent that is done at once, without a process: what is left is the runner's own time."""

    def work(self, turn: Turn, stopping: Callable[[], bool]) -> Iterator[AgentEvent]:  # noqa: ARG002 - the protocol's
        yield Started()
        yield Finished(report=Report(summary=f"{turn.phase} is done"))


class _Everyone(NamedTuple):
    """The same agent for every phase."""

    agent: Agent

    def for_phase(self, phase: str, role: str) -> tuple[str, Agent]:  # noqa: ARG002 - the protocol's
        return "bench", self.agent

    def settings_of(self, name: str) -> AgentSettings:  # noqa: ARG002 - the protocol's
        return COMMAND


class Chain:
    """A small project in which sessions of so many phases are run, one after the other."""

    def __init__(self, directory: str, phases: int, by: Agent, *, checkpoints: bool = True) -> None:
        self.project: Project = _project(directory, checkpoints=checkpoints)
        self._workflow = chain("bench", [(f"step {number}", "developer") for number in range(phases)])
        self._agents = _Everyone(by)
        self._numbers = count(1)

    def run(self, tell: Callable[[RunEvent], None] = lambda _: None) -> None:
        """Start a session, run it to its end, and write the documents that are written behind."""
        handle = self.project.start(self._workflow, f"Measure run {next(self._numbers)}")
        end = Runner(self.project, handle.id, self._agents, options=RunOptions(max_turns=_MAX_TURNS), tell=tell).run()
        if end is not End.COMPLETED:
            raise RuntimeError(f"the run of {handle.id} ended {end}, instead of completed")
        self.project.flush()


def runner(setting: Setting) -> Section:
    steps = setting.pick(1_000, 200)
    overhead = _overhead_rows(setting)
    side_by_side, remarks = _side_by_side(setting, steps)
    return Section(
        name="runner",
        rows=(*overhead, *side_by_side, *_memory_rows(setting)),
        remarks=(
            f"ours: start, Runner.run() and documents, in a git project of {_FILES} files, a checkpoint of them",
            "before and after each phase; theirs: the call of the graph or workflow, each step committed",
            *remarks,
        ),
    )


def _overhead_rows(setting: Setting) -> tuple[Row, Row]:
    phases = setting.pick(200, 50)
    say(f"{phases} phases by a command")
    ours = Chain(os.path.join(setting.directory, "command"), phases, make_agent(COMMAND))

    def bare() -> None:
        for _ in range(phases):
            subprocess.run(["bash", "-c", "true"], check=True)

    with ours.project:
        pair = interleave(
            lambda: seconds_each(ours.run, phases), lambda: seconds_each(bare, phases), rounds=setting.pick(7, 3)
        )
    over = pair.ours - pair.theirs
    return (
        Row(
            what="added to a phase by the runner : 25 ms",
            unit="s",
            ours=over,
            theirs=_OVERHEAD_S,
            ratio=over / _OVERHEAD_S,
            goal=Goal(1.0),
        ),
        Row(what="  phase, agent `true` : bash -c true", unit="s", **pair._asdict()),
    )


def _side_by_side(setting: Setting, steps: int) -> tuple[list[Row], list[str]]:
    """Durable steps of others, each in turns with ours; a peer that is not to be had is skipped."""
    peers: dict[str, Callable[[], AbstractContextManager[Peer]]] = {
        f"LangGraph, chain of {steps:,} nodes": lambda: running(
            environment("langgraph", LANGGRAPH), "langgraph_nodes.py", _database(setting, "langgraph"), str(steps)
        ),
        f"DBOS, workflow of {steps:,} steps": lambda: running(
            environment("dbos", DBOS), "dbos_steps.py", _database(setting, "dbos")
        ),
    }
    rows: list[Row] = []
    remarks: list[str] = []
    kept = Chain(os.path.join(setting.directory, "kept"), steps, _Instant())
    bare = Chain(os.path.join(setting.directory, "bare"), steps, _Instant(), checkpoints=False)
    with kept.project, bare.project:
        for name, start in peers.items():
            say(f"{steps:,} phases beside {name}")
            what = f"{steps:,} phases : {name}"
            try:
                with start() as peer:
                    theirs = _asked(peer, steps)
                    pair = interleave(_timed(kept), theirs, rounds=setting.pick(5, 2))
                    without = interleave(_timed(bare), theirs, rounds=setting.pick(3, 2))
                    facts = peer.ask(count=steps)
            except Unavailable as reason:
                rows.append(Row(what=what, goal=Goal(1.0), skipped=f"{name.split(',')[0]} {reason}"))
                continue
            rows.append(Row(what=what, unit="s", **pair._asdict(), goal=Goal(1.0)))
            rows.append(Row(what="  without checkpoints of the files", unit="s", **without._asdict()))
            remarks.append(f"{facts['versions']}: {facts['mode']}")
    return rows, remarks


def _timed(work: Chain) -> Batch:
    return lambda: seconds_each(work.run, 1)


def _asked(peer: Peer, steps: int) -> Batch:
    return lambda: float(peer.ask(count=steps)["seconds"])


def _memory_rows(setting: Setting) -> tuple[Row, Row]:
    phases = setting.pick(10_000, 1_000)
    runs, of = 20, phases // 20
    in_many = f"memory after {runs} runs of {of:,} phases : after {_WARM}"
    in_one = f"memory at phase {phases:,} of one run : at {phases // 10:,}"
    if not os.path.exists(_STATUS):
        reason = f"there is no {_STATUS} here"
        return Row(what=in_many, goal=_FLAT, skipped=reason), Row(what=in_one, goal=_RECORDED, skipped=reason)
    say(f"memory: {runs} runs of {of:,} phases, then one of {phases:,}")
    return (
        _memory_row(in_many, _FLAT, _memory_of_several, os.path.join(setting.directory, "again"), of, runs),
        _memory_row(in_one, _RECORDED, _memory_of_one, os.path.join(setting.directory, "long"), phases // 10, phases),
    )


def _memory_row(what: str, goal: Goal, measure: Callable[..., list[float]], *arguments: object) -> Row:
    try:
        first, *_, last = _in_own_process(measure, *arguments)
    except (TimeoutError, EOFError) as error:
        # The other rows are worth having all the same.
        return Row(what=what, goal=goal, failed=str(error) or "its process died")
    return Row(what=what, unit="MB", ours=last, theirs=first, ratio=last / first, goal=goal)


def _memory_of_one(directory: str, few: int, many: int) -> list[float]:
    """At phase `few` of one run, and at phase `many`."""
    found: list[float] = []
    ended = count(1)

    def tell(event: RunEvent) -> None:
        if isinstance(event, PhaseEnded) and next(ended) in (few, many):
            found.append(_resident_mb())

    work = Chain(directory, many, _Instant())
    with work.project:
        work.run(tell)
    return found


def _memory_of_several(directory: str, phases: int, sessions: int) -> list[float]:
    """After each of the runs, from when all is loaded and as many sessions are kept as ever are."""
    found: list[float] = []
    work = Chain(directory, phases, _Instant())
    with work.project:
        for _ in range(sessions):
            work.run()
            found.append(_resident_mb())
    return found[_WARM - 1 :]


def _in_own_process(measure: Callable[..., list[float]], *arguments: object) -> list[float]:
    context = multiprocessing.get_context("spawn")
    answer, question = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(question, measure, arguments))
    process.start()
    question.close()
    try:
        if not answer.poll(_MEMORY_S_MAX):
            raise TimeoutError(f"it was not done after {_MEMORY_S_MAX} s")
        found: list[float] = answer.recv()
        return found
    finally:
        process.terminate()
        process.join()


def _answer(to: Connection, measure: Callable[..., list[float]], arguments: tuple[object, ...]) -> None:
    to.send(measure(*arguments))


def _resident_mb() -> float:
    with open(_STATUS, encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS:")) / 1024


def _project(directory: str, *, checkpoints: bool) -> Project:
    os.makedirs(os.path.join(directory, "src"))
    for number in range(_FILES):
        with open(os.path.join(directory, "src", f"part_{number}.py"), "w", encoding="utf-8") as file:
            file.write(f"def part_{number}():\n    return {number}\n" * 20)
    if not checkpoints:
        with open(os.path.join(directory, "detent.toml"), "w", encoding="utf-8") as file:
            file.write('[checkpoint]\ncapture = "off"\n')
    Repository(directory).commit()
    init_project(directory)
    return open_project(directory, actor=ACTOR)


def _database(setting: Setting, name: str) -> str:
    return os.path.join(setting.directory, f"{name}.sqlite")
