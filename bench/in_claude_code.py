"""The time that hooks add to a call inside of the real Claude Code: two clients take turns, one without hooks."""

import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from statistics import median

from bench.measure import Setting, say
from bench.table import Goal, Row, Section
from tests.clients import claude_code
from tests.clients.client import Client, ClientUnavailable, Run, install, run_client
from tests.clients.recorder import Recorder
from tests.clients.scripts import Request, Turn, do
from tests.clients.scripts import say as last_words
from tests.clients.server import ModelServer
from tests.clients.stage import Stage

_CALLS, _WARM_UP = 50, 3
_RUN_S_MAX, _TURN_S_MAX = 900.0, 60.0
SETTINGS = """
[workflows.work]
phases = [{ key = "06-implementation", gates = [{ kind = "tests" }] }]
"""
TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"
#: What is called, the name of the call, and the time that hooks may add to it.
_KINDS = {
    "true": ("allowed call", 0.025),
    f"{sys.executable} -m unittest -q test_it": ("test run that is seen", 0.060),
}


def in_claude_code(setting: Setting) -> Section:
    what = {kind: f"Bash in Claude Code, added to {kind} : {most * 1e3:.0f} ms" for kind, most in _KINDS.values()}
    try:
        command = install(claude_code)
    except ClientUnavailable as why:
        skipped = tuple(Row(what=each, goal=Goal(1.0), skipped=str(why)) for each in what.values())
        return Section(name="in-claude-code", rows=skipped)
    rows, remarks = list[Row](), list[str]()
    for number, (called, (kind, most)) in enumerate(_KINDS.items()):
        say(f"  {kind}: {setting.pick(_CALLS, 10)} calls with hooks and as many without")
        times = _measure(Path(setting.directory) / str(number), command, called, setting.pick(_CALLS, 10))
        on, off = median(times["on"]), median(times["off"])
        added = on - off
        rows.append(Row(what=what[kind], unit="s", ours=added, theirs=most, ratio=added / most, goal=Goal(1.0)))
        remarks.append(f"{kind}: p50 {on * 1e3:.1f} ms with hooks, {off * 1e3:.1f} ms without; theirs is the allowance")
    return Section(name="in-claude-code", rows=tuple(rows), remarks=tuple(remarks))


class _InTurns:
    """Lets one client make a call while the other waits for the answer of the model, and keeps the times of calls."""

    def __init__(self, command: str, calls: int) -> None:
        self._command, self._calls = command, calls
        self._next, self._working = "on", {"on", "off"}
        self._changed = threading.Condition()
        self.times: dict[str, list[float]] = {"on": [], "off": []}

    def script(self, name: str) -> Generator[Turn, Request, None]:
        for number in range(self._calls + _WARM_UP):
            self._await_turn(name)
            began_s = time.perf_counter()
            yield do(claude_code.shell(self._command))
            if number >= _WARM_UP:
                self.times[name].append(time.perf_counter() - began_s)
            self._give_turn(name)
        with self._changed:
            self._working.discard(name)
            self._changed.notify_all()
        while True:  # the stop may be held, as a gate is closed
            yield last_words("done")

    def _await_turn(self, name: str) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._next == name or len(self._working) < 2, _TURN_S_MAX):
                raise TimeoutError(f"the other client made no call in {_TURN_S_MAX:g} s")

    def _give_turn(self, name: str) -> None:
        with self._changed:
            self._next = "off" if name == "on" else "on"
            self._changed.notify_all()


def _measure(directory: Path, command: tuple[str, ...], called: str, calls: int) -> dict[str, list[float]]:
    turns, runs = _InTurns(called, calls), dict[str, Run]()
    with ModelServer() as server:
        stages = {name: _stage(directory / name, command, server, hooked=name == "on") for name in ("on", "off")}
        server.play({"on": lambda _: turns.script("on"), "off": lambda _: turns.script("off")})

        def run(name: str) -> None:
            stage = stages[name]
            runs[name] = run_client(stage.client, f"[[S:{name}]] work", stage.project, server, timeout_s=_RUN_S_MAX)

        threads = [threading.Thread(target=run, args=(name,)) for name in stages]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    problems = [*server.problems, *(run.stderr for run in runs.values() if run.exit_code != 0)]
    if problems:
        raise RuntimeError("; ".join(problems))
    return turns.times


def _stage(directory: Path, command: tuple[str, ...], server: ModelServer, *, hooked: bool) -> Stage:
    home, project = directory / "home", directory / "project"
    home.mkdir(parents=True)
    project.mkdir()
    (project / "test_it.py").write_text(TEST)
    stage = Stage(Client(claude_code, command, home), project, server, Recorder(directory / "hook"))
    if hooked:
        (project / "detent.toml").write_text(SETTINGS)
        stage.detent("init", "--agent", claude_code.NAME)
        stage.detent("start", "work", "Measure")
    return stage
