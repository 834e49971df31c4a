"""Runs the steps of one task in order: expands the command, runs it, judges the outcome and records it.

A step is recorded before it starts and after it ends.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec

from detent import process
from detent.core.flow import progress
from detent.core.flow.criterion import judge
from detent.core.flow.expansion import Expanded, expand, task_environment
from detent.core.flow.progress import Decision, FlowRun, Next, Outcome, SetValue, StepRun, StepState, output_text
from detent.core.flow.reference import task_properties
from detent.core.flow.scope import Scope, SessionFacts, render_text
from detent.core.flow.step import DEFAULT_TIMEOUT_S, Step, step_problems
from detent.core.limits import cut
from detent.engine.flow.record import MAX_OUTPUT_BYTES, FlowFiles, Mask, Process, Record, this_process, value_of
from detent.errors import DetentError, Invalid, Refused
from detent.process.sandbox import Sandbox

MAX_REASON = 1_000
SUMMARIES = "dependency_summaries"
#: The strategy of a step decides about a missing output when the step runs.
_DECIDED_LATER = "produced_later"


class FlowInput(msgspec.Struct, frozen=True, kw_only=True):
    """A task and its surroundings, which do not change while its steps run."""

    task: str
    document: dict[str, Any]
    steps: tuple[Step, ...]
    session: SessionFacts
    summaries: dict[str, str]
    base: str
    #: The file with the whole output, by the name of the output.
    files: dict[str, str]
    #: Variables in addition to the environment of this process.
    env: dict[str, str] = {}
    #: In a run.
    sandbox: Sandbox | None = None

    def scope(self, values: Mapping[str, str]) -> Scope:
        return Scope(
            task=self.document,
            session=self.session,
            outputs=values,
            dependency_summaries=self.summaries,
            files=self.files,
        )

    def placeholders(self) -> dict[str, str]:
        """A text in place of each output, for a dry run."""
        return {step.output_to: f"<what {step.step} puts out>" for step in self.steps if step.output_to is not None}

    def cwd(self, step: Step) -> str:
        if step.cwd is not None:
            return self.session.dir if step.cwd == "session" else self.base
        # A folder of the project with the same name comes first.
        named = [folder for folder in step.session_folders if not os.path.isdir(os.path.join(self.base, folder))]
        return self.session.dir if named else self.base

    def approach(self, values: Mapping[str, str]) -> Any:
        """The implementation approach of the task, with its values."""
        shown = {name: output_text(value.encode("utf-8", "surrogateescape")) for name, value in values.items()}
        scope = self.scope(shown)
        return _rendered(self.document["flow_control"].get("implementation_approach"), scope)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an attempt, and its output byte for byte."""

    outcome: Outcome
    output: bytes = b""
    errors: bytes = b""


def checked(given: FlowInput) -> FlowInput:
    """Refuse steps that can never run, before the first of them runs."""
    all_problems = step_problems(given.document.get("flow_control"), declared=task_properties(given.document))
    problems = [
        f"{problem.path}: {problem.message}"
        for problem in all_problems
        if problem.severity == "error" and problem.rule != _DECIDED_LATER
    ]
    if problems:
        raise Invalid(f"the steps of {given.task} cannot be run", problems)
    try:
        given.approach(given.placeholders())
    except Refused as refused:
        raise Invalid(f"the implementation approach of {given.task} cannot be read: {refused.message}") from refused
    return given


def ready(given: FlowInput, step: Step, values: Mapping[str, str]) -> Expanded:
    """The command and its own environment; `Refused` if a value is missing or cannot be put in."""
    return expand(step.script, given.scope(values))


def attempt(
    given: FlowInput,
    step: Step,
    values: Mapping[str, str],
    *,
    started: Callable[[int], object],
    watch: Callable[[bytes], object],
) -> Attempt:
    try:
        expanded = ready(given, step, values)
        env = {**os.environ, **given.env, **task_environment(given.document, given.session), **expanded.env}
    except DetentError as error:
        return Attempt(outcome=Outcome(passed=False, reason=error.message))
    cwd = given.cwd(step)
    ran = process.capture(
        expanded.command,
        cwd=cwd,
        env=env,
        timeout_s=step.timeout or DEFAULT_TIMEOUT_S,
        max_bytes=MAX_OUTPUT_BYTES,
        started=started,
        watch=watch,
        sandbox=given.sandbox,
    )
    judged = judge(
        step.success_criteria,
        exit_code=ran.exit_code,
        output=output_text(ran.output),
        exists=lambda path: os.path.exists(os.path.join(cwd, path)),
    )
    reason = judged.reason
    if not judged.passed:
        reason = "; ".join(filter(None, [ran.problem or judged.reason, _last_line(ran.errors)]))
    outcome = Outcome(
        passed=judged.passed,
        exit_code=ran.exit_code,
        duration_s=round(ran.duration_s, 3),
        reason=reason,
    )
    mark = f"\n[… {ran.left_out} more bytes were left out by detent]\n".encode() if ran.left_out else b""
    return Attempt(outcome=outcome, output=ran.output + mark, errors=ran.errors)


def _last_line(errors: bytes) -> str:
    return errors.rstrip().rpartition(b"\n")[2].decode("utf-8", "replace").strip()


def _rendered(value: Any, scope: Scope) -> Any:
    if isinstance(value, str):
        return render_text(value, scope)
    if isinstance(value, dict):
        return {key: _rendered(each, scope) for key, each in value.items()}
    return [_rendered(each, scope) for each in value] if isinstance(value, list) else value


class Observer(Protocol):
    """Is told about each step. An exception that it raises stops the run and the running step."""

    def begins(self, number: int, total: int, step: Step) -> None: ...

    def watches(self, line: str) -> None:
        """Called ten times a second while a step runs, with the last line of its output."""
        ...

    def ended(self, number: int, total: int, state: StepRun) -> None: ...


class StepSequence:
    """`values` are the outputs so far, byte for byte; the files have no secrets."""

    def __init__(
        self,
        given: FlowInput,
        files: FlowFiles,
        record: Record,
        values: dict[str, str],
        mask: Mask,
        observer: Observer | None,
    ) -> None:
        self.given, self.files, self.record, self.values = given, files, record, values
        self._mask = mask
        self._observer = observer
        self._is_taken = False

    def take(self, claim: int, runner: Process | None) -> None:
        """Record this process as the runner; `Refused` if another one runs the steps."""
        self.files.take(self.update(claim=claim, runner=runner))
        self._is_taken = True

    def update(self, **changes: Any) -> Record:
        self.record = msgspec.structs.replace(self.record, **changes)
        return self.record

    def advance(self) -> Next:
        """Run one attempt of the current step."""
        number, step = self._current()
        if SUMMARIES in self.given.files:
            text = render_text(f"[{SUMMARIES}]", self.given.scope({}))
            self.files.write(f"/{SUMMARIES}.md", self._mask.text(text).encode("utf-8", "replace"))
        self.files.save(self.update(run=progress.start(self.record.run, step)))
        total = len(self.given.steps)
        if self._observer is not None:
            self._observer.begins(number, total, step)
        made = attempt(self.given, step, self.values, started=self._started, watch=self._watched)
        self.files.keep_errors(number, step.step, made.errors)
        outcome = msgspec.structs.replace(made.outcome, reason=cut(self._mask.text(made.outcome.reason), MAX_REASON))
        if outcome.passed:
            outcome = msgspec.structs.replace(outcome, output=self._take_output(number, step, made.output))
        else:
            self.files.keep_failed(number, step.step, made.output)
        run, following = progress.record(self.record.run, step, outcome)
        if run.of(step.step).state is StepState.SKIPPED:
            self._take_output(number, step, b"")
        self._move_on(run)
        if self._observer is not None:
            self._observer.ended(number, total, run.of(step.step))
        return following

    def decided(self, decision: Decision) -> Next:
        """Apply a person's decision to the step that waits."""
        number, step = self._current()
        run, following = progress.decide(self.record.run, step.step, decision)
        if isinstance(decision, SetValue):
            written = self._take_output(number, step, f"{decision.value}\n".encode())
            run, following = progress.decide(self.record.run, step.step, SetValue(value=written))
        elif run.of(step.step).state is StepState.SKIPPED:
            self._take_output(number, step, b"")
        self._move_on(run)
        return following

    def interrupted(self, why: str) -> None:
        if not self._is_taken:
            return
        run = self.record.run
        steps = tuple(
            msgspec.structs.replace(each, reason=why) if each.state is StepState.RUNNING else each for each in run.steps
        )
        self.files.save(self.update(run=msgspec.structs.replace(run, steps=steps), runner=None, group=None))

    def _current(self) -> tuple[int, Step]:
        current = self.record.run.current
        return next((number, step) for number, step in enumerate(self.given.steps, 1) if step.step == current)

    def _take_output(self, number: int, step: Step, output: bytes) -> str:
        """Write the output of a step and make it the value of its name; returns the text that was written."""
        masked = self.files.keep_output(number, step.step, output)
        if masked != output:
            self.update(masked=(*self.record.masked, step.step))
        if step.output_to is not None:
            self.values[step.output_to] = value_of(output, self.files.output_path(number, step.step))
        return output_text(masked)

    def _move_on(self, run: FlowRun) -> None:
        # The outputs are in their files; the record would grow without bound.
        steps = tuple(msgspec.structs.replace(each, output=None) for each in run.steps)
        self.files.save(self.update(run=msgspec.structs.replace(run, steps=steps), group=None))

    def _started(self, pid: int) -> None:
        self.files.save(self.update(group=this_process(pid)))

    def _watched(self, line: bytes) -> None:
        if self._observer is not None:
            self._observer.watches(self._mask.text(line.decode("utf-8", "replace")))
