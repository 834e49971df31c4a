"""The steps of a task, for people: their progress, their commands, and the commands to type next."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from detent.core.counted import counted
from detent.core.flow.progress import FlowRun, StepRun, StepState
from detent.core.flow.step import Step
from detent.core.session.status import Status
from detent.render.elapsed import duration
from detent.render.terminal.canvas import Canvas

_GLYPHS = {
    StepState.DONE: Status.COMPLETED,
    StepState.SKIPPED: Status.SKIPPED,
    StepState.RUNNING: Status.IN_PROGRESS,
    StepState.WAITING: Status.IN_PROGRESS,
    StepState.FAILED: Status.FAILED,
    StepState.PENDING: Status.PENDING,
}
_MAX_VALUE = 2_000


def flow_text(
    run: FlowRun,
    steps: Sequence[Step],
    *,
    canvas: Canvas,
    state: str,
    lines: Iterable[str] = (),
    commands: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> str:
    """`state` describes the run in a few words; `commands` are the commands to type next."""
    done = sum(step.is_finished for step in run.steps)
    head = f"{run.task_id}: {state}" + (f", {done} of {counted(len(run.steps), 'step')} done" if run.steps else "")
    shown = [canvas.cut(head, canvas.width), *(line for step in steps for line in _step_lines(run, step, canvas))]
    shown += canvas.warnings(warnings)
    shown += [line for text in lines for line in canvas.wrap(text, "  ")]
    typed = canvas.commands(map(canvas.clean, commands))
    return "\n".join([*shown, *(["", *typed] if typed else [])])


def step_line(number: int, total: int, step: str, action: str) -> str:
    return f"step {number} of {total}: {step}: {action}"


def ended_line(run: StepRun) -> str:
    took = f" after {duration(run.duration_s)}" if run.duration_s is not None else ""
    if run.state is StepState.PENDING:
        return f"failed{took}, will be retried: {run.reason}"
    reason = "" if run.state is StepState.DONE else f": {run.reason}"
    return f"{run.state}{took}{reason}"


def planned_text(planned: Sequence[Mapping[str, Any]], *, canvas: Canvas) -> str:
    """The commands of a dry run. Values are shown as assignments of environment variables."""
    lines: list[str] = []
    for number, step in enumerate(planned, 1):
        lines += [*([""] if lines else []), canvas.cut(_headline(number, len(planned), step), canvas.width)]
        lines.append(canvas.cut(f"  in {step['cwd']}, at most {step['timeout_s']:g} s", canvas.width))
        lines += [f"  {name}={canvas.clean(_assigned(value))} \\" for name, value in step["env"].items()]
        first, *rest = f"bash -c {shlex.quote(step['command'])}".split("\n")
        lines += [f"  {canvas.clean(first)}", *map(canvas.clean, rest)]
        if step["problem"]:
            lines += [canvas.paint(line, "yellow") for line in canvas.wrap(f"would not run: {step['problem']}", "  ")]
    return "\n".join(lines) or "there are no steps"


def _headline(number: int, total: int, step: Mapping[str, Any]) -> str:
    return f"{step_line(number, total, step['step'], step['action'])} (on error: {step['on_error']})"


def _assigned(value: str) -> str:
    left_out = len(value) - _MAX_VALUE
    return shlex.quote(value) if left_out <= 0 else f"{shlex.quote(value[:_MAX_VALUE])}… {left_out} more characters"


def _step_lines(run: FlowRun, step: Step, canvas: Canvas) -> Iterator[str]:
    current = next((each for each in run.steps if each.step == step.step), None)
    state = current.state if current else StepState.PENDING
    yield f"  {canvas.glyph(_GLYPHS[state])} " + canvas.cut(f"{step.step}: {step.action}", canvas.width - 4)
    if current is None or state in (StepState.PENDING, StepState.DONE):
        return
    word = "begun" if state is StepState.RUNNING else str(state)
    yield from canvas.wrap(f"{word}: {current.reason}" if current.reason else word, "      ")
