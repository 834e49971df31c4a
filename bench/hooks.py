"""The hook command on a call it allows and on one it denies, against interpreters that do nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from statistics import median, quantiles

import msgspec

from bench.long_journal import grown
from bench.measure import Setting, interleave, seconds_each
from bench.table import Goal, Row, Section
from bench.workload import make_project
from detent.clients.installing import HOOK

_CALLS = 200
_HOOK = [sys.executable, "-I", "-S", HOOK, "claude-code"]
_BARE = [sys.executable, "-I", "-S", "-c", "pass"]


def hooks(setting: Setting) -> Section:
    """p50 is the median of the rounds; p95 stands in the remarks, because a busy machine makes the tail."""
    short, long = (os.path.join(setting.directory, name) for name in ("short", "long"))
    with make_project(short) as project:
        project.start("feature", "Export as CSV")
    work, _ = grown(long, setting.pick(100_000, 5_000))
    work.project.close()
    allow, deny = _event(short, "ls -la src"), _event(short, "echo {} > .workflow/state.json")
    rows = [
        _row("hook, allowed call : python -I -S -c pass", _HOOK, allow, _BARE, Goal(1.5), setting),
        _row("hook, denied call : python -I -S -c pass", _HOOK, deny, _BARE, Goal(4.0), setting),
        _node(allow, setting),
    ]
    far = _event(long, "ls -la src")
    rows.append(
        _compare(
            "hook, 100,000 commits behind it : few",
            lambda: _run(_HOOK, far),
            lambda: _run(_HOOK, allow),
            Goal(1.1),
            setting,
        )
    )
    return Section(name="hooks", rows=tuple(rows), remarks=_tail(allow, deny, setting))


def _row(what: str, ours: list[str], event: bytes, theirs: list[str], goal: Goal, setting: Setting) -> Row:
    return _compare(what, lambda: _run(ours, event), lambda: _run(theirs, b""), goal, setting)


def _compare(what: str, ours: Callable[[], None], theirs: Callable[[], None], goal: Goal, setting: Setting) -> Row:
    pair = interleave(
        lambda: seconds_each(ours, 1), lambda: seconds_each(theirs, 1), rounds=setting.pick(_CALLS, 20), warm_up=5
    )
    return Row(what=what, unit="s", **pair._asdict(), goal=goal)


def _node(event: bytes, setting: Setting) -> Row:
    what, goal, node = "hook, allowed call : node -e 0", Goal(0.25), shutil.which("node")
    if node is None:
        return Row(what=what, goal=goal, skipped="node is not installed")
    return _row(what, _HOOK, event, [node, "-e", "0"], goal, setting)


def _tail(allow: bytes, deny: bytes, setting: Setting) -> tuple[str, ...]:
    told = []
    for name, event in (("allowed", allow), ("denied", deny)):
        times = [seconds_each(partial(_run, _HOOK, event), 1) for _ in range(setting.pick(_CALLS, 20))]
        p95 = quantiles(times, n=20)[-1]
        told.append(f"{name}: p50 {median(times) * 1e3:.1f} ms, p95 {p95 * 1e3:.1f} ms over {len(times)} calls")
    return tuple(told)


def _event(directory: str, command: str) -> bytes:
    return msgspec.json.encode(
        {
            "session_id": "bench",
            "cwd": directory,
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
        }
    )


def _run(command: list[str], event: bytes) -> None:
    # As in Claude Code, where the hook before a call looks for drift.
    project = msgspec.json.decode(event)["cwd"] if event else ""
    # From a file: feeding a pipe would measure how the two processes take turns.
    with tempfile.TemporaryFile() as file:
        file.write(event)
        file.seek(0)
        # Without a time limit: waiting with one looks only every few milliseconds, which is all there is to measure.
        environment = {**os.environ, "CLAUDE_PROJECT_DIR": project}
        subprocess.run(command, stdin=file, stdout=subprocess.DEVNULL, env=environment, check=True)
