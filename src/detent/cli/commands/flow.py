"""`flow`: runs the flow-control steps of a task."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

import click

from detent.cli.person import WAITING
from detent.cli.request import Request, Usage, canvas, visible
from detent.cli.task import claim_option, known_task, task_argument
from detent.cli.verb import TEXT, VerbGroup, session_option, verb
from detent.render.elapsed import duration
from detent.render.terminal.flow import ended_line, step_line

if TYPE_CHECKING:
    from detent.core.flow.progress import Decision, StepRun
    from detent.core.flow.step import Step
    from detent.engine.flow.flow import FlowOutcome

FAILED = 7
_REDRAW_S = 0.2

_rerun_option = click.option("--rerun-from", metavar="STEP", help="Run again from STEP on; earlier outputs are kept.")
_context_option = click.option(
    "--context", metavar="FILE", type=click.Path(dir_okay=False), help="Also write the agent's context to FILE."
)


@verb("run", example="detent flow run IMPL-1 --dry-run")
@task_argument
@click.option("--dry-run", is_flag=True, help="Show what would run, and run nothing.")
@_rerun_option
@claim_option
@_context_option
@session_option
def run_flow(
    request: Request,
    task: str,
    *,
    dry_run: bool,
    rerun_from: str | None,
    claim: int | None,
    context: str | None,
    session: str | None,
) -> int:
    """Start the task ID, and run its steps in order.

    It prints the context of its agent. The exit code is 6 if a step waits for a person, and 7 if a step failed and
    with it the task.
    """
    from detent.engine.flow.flow import Flow

    if dry_run:
        with request.reading() as project:
            handle = project.session(session)
            outcome = Flow(project, handle).run(known_task(handle, task), dry_run=True)
        _answer_planned(request, outcome)
        return 0
    with request.changing() as project, _stoppable(request, task) as watch:
        handle = project.session(session)
        flow, task = Flow(project, handle), known_task(handle, task)
        outcome = flow.run(task, rerun_from=rerun_from, claim=claim, observer=watch)
        _write_context(request, outcome, context)
    return _answer_ended(request, outcome)


@verb("resume", example="detent flow resume IMPL-1 --skip")
@task_argument
@click.option("--retry", is_flag=True, help="Run the waiting step again.")
@click.option("--skip", is_flag=True, help="Skip the waiting step; its output is empty.")
@click.option(
    "--set", "value", metavar="VALUE", type=TEXT, help="Use VALUE as the output of the waiting step; - reads it."
)
@click.option("--abort", is_flag=True, help="Fail the task.")
@_rerun_option
@claim_option
@_context_option
@session_option
def resume_flow(request: Request, /, task: str, *, context: str | None, session: str | None, **options: Any) -> int:
    """Continue the steps of the task ID where they stopped.

    A step that waits for a person needs one of --retry, --skip, --set and --abort.
    """
    from detent.engine.flow.flow import Flow

    decision = _decision(**{name: options.pop(name) for name in ("retry", "skip", "value", "abort")})
    with request.changing() as project, _stoppable(request, task) as watch:
        handle = project.session(session)
        flow, task = Flow(project, handle), known_task(handle, task)
        outcome = flow.resume(task, decision=decision, observer=watch, **options)
        _write_context(request, outcome, context)
    return _answer_ended(request, outcome)


@verb("show", example="detent flow show IMPL-1")
@task_argument
@session_option
def show_flow(request: Request, task: str, session: str | None) -> None:
    """Show the progress of the steps of the task ID."""
    from detent.engine.flow.flow import Flow
    from detent.render.terminal.flow import flow_text

    with request.reading() as project:
        handle = project.session(session)
        outcome = Flow(project, handle).show(known_task(handle, task))
    state = outcome.ended.value if outcome.ended else "running" if outcome.running else "not finished"
    begun = any(step.state != "pending" for step in outcome.run.steps)
    if not begun:
        state = "not run yet" if outcome.steps else "has no steps"
    commands = [] if outcome.running or not outcome.steps else _next(outcome, begun=begun)
    request.answer(
        lambda canvas: flow_text(outcome.run, outcome.steps, canvas=canvas, state=state, commands=commands),
        {**_record(outcome), "running": outcome.running},
    )


flow_verb = VerbGroup(
    "flow",
    run_flow,
    show_flow,
    resume_flow,
    help="""Run the flow-control steps of a task.

    Steps run before the work of a task. Their outputs become the context of its agent.""",
    example="detent flow run IMPL-1",
)


class _Watch:
    """Shows the progress of steps on standard error, and stops them on a signal; see `Observer` of the engine."""

    def __init__(self, *, shown: bool) -> None:
        self.is_stopped = False
        self._is_live = sys.stderr.isatty()
        self._is_shown = shown or self._is_live
        self._head = ""
        self._since_s = self._drawn_s = 0.0
        self._is_drawn = False

    def begins(self, number: int, total: int, step: "Step") -> None:
        self._check()
        self._head, self._since_s = step_line(number, total, step.step, step.action), time.monotonic()
        if self._is_live:
            self._draw("")
        else:
            self._print(self._head)

    def watches(self, line: str) -> None:
        self._check()
        if self._is_live and time.monotonic() - self._drawn_s >= _REDRAW_S:
            self._draw(line)

    def ended(self, number: int, total: int, run: "StepRun") -> None:
        self.clear()
        if self._is_live:
            self._print(self._head)
        self._print(f"step {number} of {total}: {ended_line(run)}")
        self._check()

    def clear(self) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._is_drawn = False

    def _check(self) -> None:
        if self.is_stopped:
            raise KeyboardInterrupt

    def _draw(self, line: str) -> None:
        self._drawn_s = time.monotonic()
        text = f"{self._head}  {duration(self._drawn_s - self._since_s)}  {line}"
        width = canvas().width
        sys.stderr.write(f"\r{canvas().cut(text, width - 1)}\x1b[K")
        sys.stderr.flush()
        self._is_drawn = True

    def _print(self, line: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"detent: {visible(line)}\n")
            sys.stderr.flush()


def _decision(*, retry: bool, skip: bool, value: str | None, abort: bool) -> "Decision | None":
    from detent.core.flow.progress import Abort, Retry, SetValue, Skip

    decisions: list[Decision] = [
        *([Retry()] if retry else []),
        *([Skip()] if skip else []),
        *([SetValue(value)] if value is not None else []),
        *([Abort()] if abort else []),
    ]
    if len(decisions) > 1:
        raise Usage("only one of --retry, --skip, --set and --abort can be given")
    return decisions[0] if decisions else None


@contextmanager
def _stoppable(request: Request, task: str) -> Iterator["_Watch"]:
    """Stop on a signal, between two writes; the running step is ended with its child processes."""
    watch = _Watch(shown=not request.json)

    def stop(_signal: int, _frame: FrameType | None) -> None:
        watch.is_stopped = True

    kinds = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {kind: signal.signal(kind, stop) for kind in kinds}
    try:
        yield watch
    except KeyboardInterrupt:
        watch.clear()
        request.notices.append(f"detent flow resume {task} continues the steps of {task}")
        raise
    finally:
        watch.clear()
        for kind, handler in before.items():
            signal.signal(kind, handler)


def _write_context(request: Request, outcome: "FlowOutcome", path: str | None) -> None:
    if path is not None and outcome.context is not None:
        with open(os.path.join(request.directory, path), "w", encoding="utf-8") as file:
            json.dump(outcome.context, file, ensure_ascii=False, indent=2)
            file.write("\n")


def _answer_planned(request: Request, outcome: "FlowOutcome") -> None:
    import msgspec

    from detent.render.terminal.flow import planned_text

    planned = msgspec.to_builtins(outcome.planned)
    record = {"session": outcome.session, "task": outcome.task, "dry_run": True, "steps": planned}
    request.answer(lambda canvas: planned_text(planned, canvas=canvas), record)


def _answer_ended(request: Request, outcome: "FlowOutcome") -> int:
    from detent.engine.flow.record import Ended
    from detent.render.terminal.flow import flow_text

    ended = outcome.ended
    assert ended is not None
    notes = [f"the context is in {os.path.relpath(outcome.context_file)}"] if outcome.context_file else []
    request.answer(
        lambda canvas: flow_text(
            outcome.run,
            outcome.steps,
            canvas=canvas,
            state=ended.value,
            lines=notes,
            commands=_next(outcome),
            warnings=outcome.warnings,
        ),
        {**_record(outcome), "context_file": outcome.context_file, "context": outcome.context},
    )
    return {Ended.WAITING: WAITING, Ended.FAILED: FAILED}.get(ended, 0)


def _record(outcome: "FlowOutcome") -> dict[str, Any]:
    return {
        "session": outcome.session,
        "task": outcome.task,
        "ended": outcome.ended,
        "claim": outcome.claim,
        "step": outcome.step,
        "reason": outcome.reason,
        "steps": outcome.run.steps,
        "outputs": outcome.files,
        "warnings": outcome.warnings,
    }


def _next(outcome: "FlowOutcome", *, begun: bool = True) -> list[str]:
    task = outcome.task
    match outcome.ended.value if outcome.ended else "":
        case "finished":
            return [outcome.row.done_command(outcome.claim)]
        case "waiting":
            return [f"detent flow resume {task} {how}" for how in ("--retry", "--skip", "--set VALUE", "--abort")]
        case "failed":
            return [f"detent flow resume {task}"]
        case _:
            return [f"detent flow {'resume' if begun else 'run'} {task}"]
