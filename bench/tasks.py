"""Looking at tasks and doing them, in plans of up to 100,000, against the programs that people plan with."""

import os
import subprocess
import sys
from collections.abc import Callable
from itertools import chain
from statistics import median
from typing import NamedTuple

from bench.measure import Setting, interleave, seconds_each
from bench.npm import isolated, program
from bench.peers import SCRIPTS, Peer, Unavailable, installed, running
from bench.table import Goal, Row, Section
from bench.task_plans import TITLE, backlog_project, cached_project, task_master_project, task_project

TASK_MASTER, BACKLOG = "task-master-ai@0.43.1", "backlog.md@1.52.0"
_MEMORY_MB = 250
_RUN_S_MAX = 120
_NOT_PASSED_ON = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
#: Tasks that are started and done before it is the other project's turn.
_TURN = 10


class Command:
    """A process that is started in `directory`; calling it waits for its end and looks at its exit code only."""

    def __init__(self, arguments: list[str], directory: str, environment: dict[str, str] | None = None) -> None:
        self._arguments, self._directory = arguments, directory
        self._environment = _plain_environment() if environment is None else environment

    def __call__(self) -> None:
        self._run(subprocess.DEVNULL)

    def output(self) -> str:
        told: str = self._run(subprocess.PIPE).stdout
        return told

    def _run(self, stdout: int) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            self._arguments,
            cwd=self._directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_RUN_S_MAX,
            check=False,
        )
        if done.returncode:
            told = (done.stderr.strip() or "nothing").splitlines()[-1]
            raise RuntimeError(f"{' '.join(self._arguments[-2:])} ended with exit code {done.returncode}: {told}")
        return done


def tasks(setting: Setting) -> Section:
    """Every command is a process of its own; what it prints is looked at once, before it is measured."""
    few, some, many = 1_000, 10_000, setting.pick(100_000, 20_000)
    projects = {count: cached_project(count) for count in (few, some, many)}
    ours = {
        (verb[-1], count): _checked(Command(verb, directory), count if verb[-1] == "list" else 1)
        for verb in (_verb("next"), _verb("list"))
        for count, directory in projects.items()
    }
    rows = [
        _peer_row(
            f"task next : task-master next, {some:,} tasks",
            ours["next", some],
            lambda: _task_master(os.path.join(setting.directory, "task-master"), some),
            Goal(0.03),
            rounds=setting.pick(7, 3),
        ),
        _peer_row(
            f"task list : backlog task list, {few:,} tasks",
            ours["list", few],
            lambda: _backlog(os.path.join(setting.directory, "backlog"), few),
            Goal(0.2),
            rounds=setting.pick(9, 3),
        ),
    ]
    for verb, more, less, goal in (
        ("next", some, few, None),
        ("next", many, some, Goal(3.0)),
        ("list", some, few, None),
        ("list", many, some, Goal(12.0)),
    ):
        what = f"task {verb}, {more:,} tasks : {less:,}"
        rows.append(_compared(what, ours[verb, more], ours[verb, less], goal, rounds=setting.pick(7, 3)))
    for command in (_verb("next"), _verb("list")):
        mb = _peak_mb(command, projects[many])
        what = f"task {command[-1]}, {many:,} tasks : {_MEMORY_MB} MB of memory"
        rows.append(Row(what=what, unit="MB", ours=mb, theirs=_MEMORY_MB, ratio=mb / _MEMORY_MB, goal=Goal(1.0)))
    rows += _done(setting, projects[many], few, f"{many:,} tasks : {few:,}")
    load = os.getloadavg()[0]
    return Section(name="tasks", rows=tuple(rows), remarks=(f"load {load:.1f} at the end of these rows",))


def _done(setting: Setting, many: str, few: int, counts: str) -> list[Row]:
    """Starting a task and saying that it is done, in plans of two sizes."""
    # The large one is the kept project itself, of which a run does a few hundred tasks: a copy's files look edited.
    fresh, script = task_project(os.path.join(setting.directory, "few"), few), "detent_tasks.py"
    with running(sys.executable, script, many) as large, running(sys.executable, script, fresh) as small:
        seen: dict[Peer, list[_Turn]] = {large: [], small: []}

        def work(peer: Peer) -> float:
            seen[peer].append(_Turn(**peer.ask(count=_TURN)))
            return median(seen[peer][-1].each)

        pair = interleave(lambda: work(large), lambda: work(small), rounds=setting.pick(25, 4))
        done, whole = ([what(seen[peer][1:]) for peer in (large, small)] for what in (_done_s, _whole_s))
        alone = interleave(
            lambda: _done_alone(large, many), lambda: _done_alone(small, fresh), rounds=setting.pick(5, 2)
        )
    return [
        Row(what=f"task start + done, {counts}", unit="s", **pair._asdict(), goal=Goal(1.5)),
        Row(what="  task done", unit="s", ours=done[0], theirs=done[1], ratio=done[0] / done[1]),
        Row(
            what=f"  with documents, once in {_TURN}",
            unit="s",
            ours=whole[0],
            theirs=whole[1],
            ratio=whole[0] / whole[1],
        ),
        Row(what="  task done as a command", unit="s", **alone._asdict()),
    ]


class _Turn(NamedTuple):
    """Seconds for each task that was started and done, and for the documents behind all of them."""

    start: list[float]
    done: list[float]
    documents: float

    @property
    def each(self) -> list[float]:
        return [start + done for start, done in zip(self.start, self.done, strict=True)]


def _done_s(turns: list[_Turn]) -> float:
    return median(chain.from_iterable(turn.done for turn in turns))


def _whole_s(turns: list[_Turn]) -> float:
    return median((sum(turn.each) + turn.documents) / len(turn.each) for turn in turns)


def _done_alone(peer: Peer, directory: str) -> float:
    started = peer.ask(start=True)
    finish = Command([*_verb("done"), started["task"], "--claim", str(started["claim"])], directory)
    return seconds_each(finish, 1)


def _peer_row(what: str, ours: Command, prepare: Callable[[], Command], goal: Goal, *, rounds: int) -> Row:
    try:
        theirs = prepare()
    except Unavailable as reason:
        return Row(what=what, goal=goal, skipped=f"peer not available: {reason}")
    return _compared(what, ours, theirs, goal, rounds=rounds)


def _compared(what: str, ours: Command, theirs: Command, goal: Goal | None, *, rounds: int) -> Row:
    pair = interleave(lambda: seconds_each(ours, 1), lambda: seconds_each(theirs, 1), rounds=rounds)
    return Row(what=what, unit="s", **pair._asdict(), goal=goal)


def _task_master(directory: str, count: int) -> Command:
    path = program("task-master", TASK_MASTER, "task-master")
    task_master_project(directory, count)
    environment = isolated(os.path.join(directory, "home"), TASKMASTER_SKIP_AUTO_UPDATE="1")
    shown = Command([path, "next"], directory, environment)
    listed = Command([path, "list", "--compact"], directory, environment)
    try:
        _checked(listed, count)
        return _checked(shown, 1)
    except RuntimeError as error:
        raise Unavailable(str(error)) from error


def _backlog(directory: str, count: int) -> Command:
    path = program("backlog", BACKLOG, "backlog")
    backlog_project(directory, count)
    listed = Command([path, "task", "list", "--plain"], directory, isolated(os.path.join(directory, "home")))
    try:
        return _checked(listed, count)
    except RuntimeError as error:
        raise Unavailable(str(error)) from error


def _verb(name: str) -> list[str]:
    return [installed(), "task", name]


def _plain_environment() -> dict[str, str]:
    """Without what would make Python compile every module again, or write each line by itself."""
    return {name: value for name, value in os.environ.items() if name not in _NOT_PASSED_ON}


def _checked(command: Command, count: int) -> Command:
    """The command, if it tells of the first `count` tasks: one that fails fast would look fast."""
    words = TITLE.partition("{}")[0].strip()
    lines = [line for line in command.output().splitlines() if words in line]
    if len(lines) < count:
        raise RuntimeError(f"it tells of {len(lines)} tasks instead of {count}")
    return command


def _peak_mb(verb: list[str], directory: str) -> float:
    measuring = [sys.executable, os.path.join(SCRIPTS, "peak_memory.py"), *verb]
    return median(int(Command(measuring, directory).output()) for _ in range(3)) / 1e6
