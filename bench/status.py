"""`detent status` in a process of its own against a Python that does nothing."""

import os
import subprocess
import sys

from bench.measure import Setting, interleave, seconds_each
from bench.table import Goal, Row, Section
from bench.workload import SUMMARY, make_project
from detent.engine.handle import SessionHandle
from detent.errors import GateClosed

_WHAT = "detent status : python -I -S -c pass, one process"
_GOAL = Goal(8.0)
_RUN_S_MAX = 60


def status(setting: Setting) -> Section:
    command = os.path.join(os.path.dirname(sys.executable), "detent")
    if not os.path.exists(command):
        return Section(name="status", rows=(Row(what=_WHAT, goal=_GOAL, skipped=f"{command} is not installed"),))
    directory = os.path.join(setting.directory, "status")
    _half_way(directory)
    bare = [sys.executable, "-I", "-S", "-c", "pass"]
    times = setting.pick(5, 2)
    pair = interleave(
        lambda: seconds_each(lambda: _run([command, "status"], directory, times), times),
        lambda: seconds_each(lambda: _run(bare, directory, times), times),
        rounds=setting.pick(15, 5),
    )
    return Section(
        name="status",
        rows=(Row(what=_WHAT, unit="s", **pair._asdict(), goal=_GOAL),),
        remarks=("the installed console script, in a project whose feature session is half way",),
    )


def _half_way(directory: str) -> None:
    with make_project(directory) as project:
        session = project.start("feature", "Export as CSV")
        for _ in range(len(session.state.workflow.order) // 2):
            _finish(session)
            session.begin()


def _finish(session: SessionHandle) -> None:
    try:
        session.finish(SUMMARY)
    except GateClosed:
        session.release("nothing is worked on here, so no gate can have evidence")
        session.finish(SUMMARY)


def _run(command: list[str], directory: str, times: int) -> None:
    for _ in range(times):
        subprocess.run(
            command, cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True, timeout=_RUN_S_MAX
        )
