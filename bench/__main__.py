"""`python -m bench`: every benchmark, or some of them, as one table. A missed goal is told, not an error."""

import argparse
import os
import shlex
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import msgspec

from bench.checkpoint import checkpoint, first_checkpoint
from bench.commands import commands
from bench.history import history
from bench.hooks import hooks
from bench.in_claude_code import in_claude_code
from bench.long_journal import long_journal
from bench.machine import facts
from bench.machines import machines, travel
from bench.mcp import mcp
from bench.measure import Setting, say
from bench.page import page
from bench.page_in_browser import page_in_browser
from bench.peers import ENVIRONMENTS
from bench.postgres import postgres
from bench.protected import protected
from bench.rollback import rollback
from bench.runner import runner
from bench.stored import stored
from bench.superstep import growth, superstep
from bench.table import NOISY, WIDTH, Row, Section, render
from bench.tasks import tasks
from bench.telemetry import telemetry
from bench.transition import transition
from bench.writers import writers

BENCHMARKS: Mapping[str, Callable[[Setting], Section]] = {
    "transition": transition,
    "superstep": superstep,
    "writers": writers,
    "long-journal": long_journal,
    "growth": growth,
    "history": history,
    "commands": commands,
    "hooks": hooks,
    "mcp": mcp,
    "in-claude-code": in_claude_code,
    "first-checkpoint": first_checkpoint,
    "checkpoint": checkpoint,
    "rollback": rollback,
    "protected": protected,
    "stored": stored,
    "tasks": tasks,
    "runner": runner,
    "travel": travel,
    "machines": machines,
    "postgres": postgres,
    "telemetry": telemetry,
    "page": page,
    "page-in-browser": page_in_browser,
}


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    # Asked to stop, leave as after Ctrl-C: temporary directories go, processes started here are ended.
    signal.signal(signal.SIGTERM, _interrupted)
    chosen = options.only or list(BENCHMARKS)
    os.makedirs(ENVIRONMENTS, exist_ok=True)
    sections: list[Section] = []
    machine: dict[str, str] = {}
    is_interrupted = False
    try:
        # Inside the checkout: a temporary directory of the system may be in memory, where a sync costs nothing.
        with tempfile.TemporaryDirectory(prefix="run-", dir=ENVIRONMENTS, ignore_cleanup_errors=True) as directory:
            # On the same disk as the projects, and not in the account's own state.
            os.environ["XDG_STATE_HOME"] = os.path.join(directory, "state")
            machine = facts(directory)
            for number, name in enumerate(chosen, 1):
                say(f"[{number}/{len(chosen)}] {name}")
                with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as own:
                    sections.append(_run(name, Setting(own, options.quick)))
    except KeyboardInterrupt:
        say("interrupted; these are the figures so far")
        is_interrupted = True
    command = shlex.join(["python", "-m", "bench", *(sys.argv[1:] if arguments is None else arguments)])
    print(render(sections))
    print("-" * WIDTH)
    print("ratio = ours / theirs, median of rounds that ran both in turns; " + _verdict(sections))
    if any(row.is_noisy for section in sections for row in section.rows):
        reason = f"the middle half of the ratios spans over {NOISY:.0%}, or the interval of the ratio spans the goal"
        print(f"? = the machine was busy: {reason}; repeat when it is idle")
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    print(command)
    if options.json:
        _write_json(options.json, sections, machine, command)
    if is_interrupted:
        return 130
    return 1 if any(row.failed for section in sections for row in section.rows) else 0


def _run(name: str, setting: Setting) -> Section:
    try:
        return BENCHMARKS[name](setting)
    except Exception as error:  # noqa: BLE001 - one that fails must not take the figures of the others with it
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}".splitlines()[0][: WIDTH - 10]
        return Section(name=name, rows=(Row(what=name, failed=reason),))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="run this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and shorter journals: a first impression")
    parser.add_argument("--json", metavar="FILE", help="write the figures to FILE as well")
    return parser.parse_args(arguments)


def _verdict(sections: list[Section]) -> str:
    marks = [row.mark for section in sections for row in section.rows if row.goal]
    return f"{marks.count('ok')} of {len(marks)} goals met, {marks.count('skipped')} skipped"


def _write_json(path: str, sections: list[Section], machine: dict[str, str], command: str) -> None:
    rows: list[dict[str, Any]] = [
        {"benchmark": section.name, **msgspec.to_builtins(row), "mark": row.mark, "noisy": row.is_noisy}
        for section in sections
        for row in section.rows
    ]
    figures = {"command": command, "machine": machine, "rows": rows}
    with open(path, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(figures), indent=2) + b"\n")


def _interrupted(*_: object) -> NoReturn:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
