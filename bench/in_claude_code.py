"""The time that hooks add to a call inside of the real Claude Code.

One client makes all calls: with Detent's hooks, with a hook that does nothing, and without hooks. A condition of the
client chooses the hook by the command, so the three calls of a round differ in nothing else. The time of a call is that
from the answer of the scripted server, which asks for the call, to the next request, which brings its result.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from itertools import cycle, islice, permutations
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.measure import Setting, median_interval, say
from bench.table import Goal, Row, Section
from tests.clients import claude_code
from tests.clients.client import Client, ClientUnavailable, Run, install, run_client
from tests.clients.recorder import Recorder
from tests.clients.scripts import Request, Turn, do, wait_until
from tests.clients.scripts import say as last_words
from tests.clients.server import ModelServer
from tests.clients.stage import Stage

#: Conversations of a kind of call, and rounds in each of them; the first round is not counted.
_CONVERSATIONS, _ROUNDS = 2, 30
#: Before each call, as a model needs time to answer: the client ends what it does behind its last request.
_PAUSE_S = 0.1
_RUN_S_MAX, _RECORD_S_MAX = 300.0, 30.0
_WITHOUT, _EMPTY, _OURS = "without", "empty", "ours"
_SETTINGS = """
[workflows.work]
phases = [{ key = "06-implementation", gates = [{ kind = "tests" }] }]
"""
_TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"


class _Kind(NamedTuple):
    """A kind of call. `command` takes the name of the hook; `most_s` is the time that hooks may add."""

    name: str
    command: str
    most_s: float
    is_recorded: bool = False


_KINDS = (
    _Kind("call that reads", "cat test_{}.py", 0.025),
    _Kind("call that writes", "cp test_{0}.py copy_{0}", 0.025),
    _Kind("seen test run", f"{sys.executable} -m unittest -q test_{{}}", 0.060, is_recorded=True),
)
Times = dict[str, list[float]]


def in_claude_code(setting: Setting) -> Section:
    what = {kind: f"Bash in Claude Code, added to {kind.name} : {kind.most_s * 1e3:.0f} ms" for kind in _KINDS}
    try:
        command = install(claude_code)
    except ClientUnavailable as why:
        skipped = tuple(Row(what=each, goal=Goal(1.0), skipped=str(why)) for each in what.values())
        return Section(name="in-claude-code", rows=skipped)
    rows, remarks = list[Row](), list[str]()
    conversations, rounds = setting.pick(_CONVERSATIONS, 1), setting.pick(_ROUNDS, 10)
    for kind in _KINDS:
        say(f"{kind.name}: {conversations * rounds} rounds of a call with hooks, with an empty one, and without")
        times: Times = {_WITHOUT: [], _EMPTY: [], _OURS: []}
        for number in range(conversations):
            _measure(Path(setting.directory) / f"{kind.name.replace(' ', '-')}-{number}", command, kind, rounds, times)
        added, low, high = median_interval(_differences(times, _OURS))
        empty, empty_low, empty_high = median_interval(_differences(times, _EMPTY))
        rows += [
            Row(
                what=what[kind],
                unit="s",
                ours=added,
                theirs=kind.most_s,
                ratio=added / kind.most_s,
                interval=(low / kind.most_s, high / kind.most_s),
                goal=Goal(1.0),
            ),
            Row(
                what=f"empty hook in Claude Code, {kind.name} : Detent's",
                unit="s",
                ours=empty,
                theirs=added,
                ratio=empty / added,
            ),
        ]
        remarks.append(
            f"{kind.name}: {median(times[_WITHOUT]) * 1e3:.1f} ms without hooks; added {_span(low, high)}, "
            f"by a hook that does nothing {_span(empty_low, empty_high)} (95 % intervals of the median)"
        )
    return Section(name="in-claude-code", rows=tuple(rows), remarks=("theirs is the allowance", *remarks))


def _differences(times: Times, hook: str) -> list[float]:
    """What the hook added in each round."""
    return [one - other for one, other in zip(times[hook], times[_WITHOUT], strict=True)]


def _span(low: float, high: float) -> str:
    return f"{low * 1e3:.1f} to {high * 1e3:.1f} ms"


def _measure(directory: Path, command: tuple[str, ...], kind: _Kind, rounds: int, times: Times) -> None:
    """Run one conversation, and add its times."""
    with ModelServer() as server:
        stage = _stage(directory, command, server, kind)
        server.play({"work": lambda _: _script(stage.project, kind, rounds, times)})
        arguments = ("--include-hook-events",)
        run = run_client(
            stage.client, "[[S:work]] work", stage.project, server, extra_args=arguments, timeout_s=_RUN_S_MAX
        )
    problems = [*server.problems, *([run.stderr or "Claude Code failed"] if run.exit_code != 0 else [])]
    # Each round has two calls with a hook before and behind it, and the first round is not counted.
    seen, expected = _hooks_run(run), {"PreToolUse": 2 * (rounds + 1), "PostToolUse": 2 * (rounds + 1)}
    if problems or seen != expected:
        raise RuntimeError("; ".join(problems) or f"hooks ran {seen}, and {expected} was expected")


def _hooks_run(run: Run) -> dict[str, int]:
    events = Counter(event["hook_event"] for event in run.events if event.get("subtype") == "hook_response")
    return {name: count for name, count in events.items() if name.endswith("ToolUse")}


def _script(project: Path, kind: _Kind, rounds: int, times: Times) -> Generator[Turn, Request, None]:
    for number, order in enumerate(islice(cycle(permutations(times)), rounds + 1)):
        for hook in order:
            time.sleep(_PAUSE_S)
            began_s = time.perf_counter()
            yield do(claude_code.shell(kind.command.format(hook)))
            if number:
                times[hook].append(time.perf_counter() - began_s)
            if hook == _OURS and kind.is_recorded:
                _await_record(project)
    while True:  # the stop may be held, as a gate is closed
        yield last_words("done")


def _await_record(project: Path) -> None:
    """The run is recorded behind the client. That must not slow down a call without hooks."""
    told = project / ".workflow/.told"
    if not wait_until(lambda: any(told.glob("*")), timeout_s=_RECORD_S_MAX):
        raise TimeoutError(f"no test run was recorded in {_RECORD_S_MAX:g} s")


def _stage(directory: Path, command: tuple[str, ...], server: ModelServer, kind: _Kind) -> Stage:
    home, project = directory / "home", directory / "project"
    home.mkdir(parents=True)
    project.mkdir()
    for hook in (_WITHOUT, _EMPTY, _OURS):
        (project / f"test_{hook}.py").write_text(_TEST)
    (project / "detent.toml").write_text(_SETTINGS)
    stage = Stage(Client(claude_code, command, home), project, server, Recorder(directory / "hook"))
    stage.detent("init", "--agent", claude_code.NAME)
    _choose_by_command(project / claude_code.PROJECT_SETTINGS, kind)
    stage.detent("start", "work", "Measure")
    return stage


def _choose_by_command(settings: Path, kind: _Kind) -> None:
    """Let the hooks of Bash run for one command, and a hook that does nothing for another one."""
    content = json.loads(settings.read_text())
    for group in _groups_of_bash(content):
        for handler in group["hooks"]:
            handler["if"] = f"Bash({kind.command.format(_OURS)})"
        chosen = f"Bash({kind.command.format(_EMPTY)})"
        group["hooks"].append({"type": "command", "command": "/bin/true", "args": [], "if": chosen})
    settings.write_text(json.dumps(content))


def _groups_of_bash(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for event in ("PreToolUse", "PostToolUse", "PostToolUseFailure"):
        yield from (group for group in content["hooks"][event] if "Bash" in group["matcher"].split("|"))
