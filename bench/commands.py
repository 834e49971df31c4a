"""`detent status`, `begin` and `finish`, each in a process of its own, against a Python that does nothing."""

import os
import subprocess
import sys
import time

from bench.measure import Pair, Setting, interleave
from bench.peers import Unavailable, installed
from bench.table import Goal, Row, Section
from bench.workload import SUMMARY, make_project
from detent.core.workflow.graph import Phase, Workflow
from detent.engine.session import SessionHandle
from detent.errors import GateClosed

_BARE = "python -I -S -c pass, one process"
_GOALS = {"status": Goal(6.0), "begin": Goal(12.0), "finish": Goal(12.0)}
_RUN_S_MAX = 60
#: Enough for every round of both verbs.
_PHASES = 200


def commands(setting: Setting) -> Section:
    try:
        command = installed()
    except Unavailable as why:
        rows = tuple(Row(what=f"detent {verb} : {_BARE}", goal=goal, skipped=str(why)) for verb, goal in _GOALS.items())
        return Section(name="commands", rows=rows)
    half_way = os.path.join(setting.directory, "status")
    _half_way(half_way)
    long_row = os.path.join(setting.directory, "row")
    _long_row(long_row)
    times, rounds = setting.pick(5, 2), setting.pick(15, 5)

    def against_bare(ours: list[str], undo: list[str] | None, directory: str) -> Pair:
        return interleave(
            lambda: _seconds([command, *ours], [command, *undo] if undo else None, directory, times),
            lambda: _seconds([sys.executable, "-I", "-S", "-c", "pass"], None, directory, times),
            rounds=rounds,
        )

    begin, finish = ["begin"], ["finish", "-m", SUMMARY]
    # Each needs the other before its next try. A begun phase is what finish starts from.
    pairs = {
        "status": against_bare(["status"], None, half_way),
        "begin": against_bare(begin, finish, long_row),
    }
    _run([command, *begin], long_row)
    pairs["finish"] = against_bare(finish, begin, long_row)
    return Section(
        name="commands",
        rows=tuple(
            Row(what=f"detent {verb} : {_BARE}", unit="s", **pair._asdict(), goal=_GOALS[verb])
            for verb, pair in pairs.items()
        ),
        remarks=(
            "the console script of a wheel in an environment of its own; status half way through a feature session,",
            "begin and finish with a checkpoint of the files each, in a session of 200 phases without gates",
        ),
    )


def _seconds(command: list[str], undo: list[str] | None, directory: str, times: int) -> float:
    """Seconds a call; `undo` runs after each, untimed, so that the next one finds the same situation."""
    total = 0.0
    for _ in range(times):
        start = time.perf_counter()
        _run(command, directory)
        total += time.perf_counter() - start
        if undo is not None:
            _run(undo, directory)
    return total / times


def _half_way(directory: str) -> None:
    with make_project(directory) as project:
        session = project.start("feature", "Export as CSV")
        for _ in range(len(session.state.workflow.order) // 2):
            _finish(session)
            session.begin()


def _long_row(directory: str) -> None:
    with make_project(directory) as project:
        phases = tuple(
            Phase(key=f"p{number:03d}", needs=(f"p{number - 1:03d}",) if number else ()) for number in range(_PHASES)
        )
        project.start(Workflow(name="row", phases=phases), "Walk the row").finish(SUMMARY)


def _finish(session: SessionHandle) -> None:
    try:
        session.finish(SUMMARY)
    except GateClosed:
        session.release("nothing is worked on here, so no gate can have evidence")
        session.finish(SUMMARY)


def _run(command: list[str], directory: str) -> None:
    subprocess.run(
        command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=_RUN_S_MAX
    )
