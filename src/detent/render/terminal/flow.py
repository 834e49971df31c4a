"""The steps of a task, for people: how far they are, what they would run, and what comes next."""

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

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
    stands: str,
    lines: Iterable[str] = (),
    commands: Iterable[str] = (),
    warnings: Iterable[str] = (),
) -> str:
    """`stands` says in a few words how far it is; `commands` are what may be typed next."""
    done = sum(each.is_finished for each in run.steps)
    head = (
        f"{run.task_id}: {stands}, {done} of {len(run.steps)} steps done" if run.steps else f"{run.task_id}: {stands}"
    )
    shown = [canvas.cut(head, canvas.width), *(line for step in steps for line in _step_lines(run, step, canvas))]
    shown += [canvas.paint(line, "yellow") for warning in warnings for line in canvas.wrap(f"warning: {warning}", "  ")]
    shown += [line for text in lines for line in canvas.wrap(text, "  ")]
    typed = [line for command in commands for line in canvas.command(canvas.clean(command))]
    return "\n".join([*shown, *(["", *typed] if typed else [])])


def step_line(number: int, total: int, step: str, action: str) -> str:
    return f"step {number} of {total}: {step}: {action}"


def ended_line(came: StepRun) -> str:
    took = f" after {duration(came.duration_s)}" if came.duration_s is not None else ""
    if came.state is StepState.PENDING:
        return f"failed{took}, and is tried once more: {came.reason}"
    told = "" if came.state is StepState.DONE else f": {came.reason}"
    return f"{came.state}{took}{told}"


def planned_text(planned: Sequence[Mapping[str, Any]], *, canvas: Canvas) -> str:
    """What would run. Values stand as the assignments that the command would find in its environment."""
    lines: list[str] = []
    for number, one in enumerate(planned, 1):
        lines += [*([""] if lines else []), canvas.cut(_headline(number, len(planned), one), canvas.width)]
        lines.append(canvas.cut(f"  in {one['cwd']}, at most {one['timeout_s']:g} s", canvas.width))
        lines += [f"  {name}={canvas.clean(_assigned(value))} \\" for name, value in one["env"].items()]
        first, *rest = f"bash -c {shlex.quote(one['command'])}".split("\n")
        lines += [f"  {canvas.clean(first)}", *map(canvas.clean, rest)]
        if one["problem"]:
            lines += [canvas.paint(line, "yellow") for line in canvas.wrap(f"would not run: {one['problem']}", "  ")]
    return "\n".join(lines) or "there are no steps"


def _headline(number: int, total: int, one: Mapping[str, Any]) -> str:
    return f"{step_line(number, total, one['step'], one['action'])} (on error: {one['on_error']})"


def _assigned(value: str) -> str:
    left_out = len(value) - _MAX_VALUE
    return shlex.quote(value) if left_out <= 0 else f"{shlex.quote(value[:_MAX_VALUE])}… {left_out} more characters"


def _step_lines(run: FlowRun, step: Step, canvas: Canvas) -> Iterator[str]:
    came = next((each for each in run.steps if each.step == step.step), None)
    state = came.state if came else StepState.PENDING
    yield f"  {canvas.glyph(_GLYPHS[state])} " + canvas.cut(f"{step.step}: {step.action}", canvas.width - 4)
    if came is None or state in (StepState.PENDING, StepState.DONE):
        return
    yield from canvas.wrap(f"{_said(state)}: {came.reason}" if came.reason else _said(state), "      ")


def _said(state: StepState) -> str:
    return "begun" if state is StepState.RUNNING else str(state)
