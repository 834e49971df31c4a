"""The steps of one run, one after the other: each is recorded before it starts and after it ended."""

from typing import Any, Protocol

import msgspec

from detent.core.flow import progress
from detent.core.flow.progress import Decision, FlowRun, Next, SetValue, StepRun, StepState, output_text
from detent.core.flow.scope import render_text
from detent.core.flow.step import Step
from detent.core.limits import cut
from detent.engine.flow.flow_step import Given, attempt
from detent.engine.flow.record import FlowFiles, Kept, Mask, Process, this_process, value_of

MAX_REASON = 1_000
SUMMARIES = "dependency_summaries"


class Observer(Protocol):
    """Who looks on. Whatever it raises stops the run, with nothing left running."""

    def begins(self, number: int, total: int, step: Step) -> None: ...

    def watches(self, line: str) -> None:
        """Called ten times a second while a step runs, with the last line that it put out."""
        ...

    def ended(self, number: int, total: int, came: StepRun) -> None: ...


class StepSequence:
    """`values` are the outputs so far, exactly as they came; what is written has no secrets."""

    def __init__(
        self,
        given: Given,
        files: FlowFiles,
        kept: Kept,
        values: dict[str, str],
        mask: Mask,
        observer: Observer | None,
    ) -> None:
        self.given, self.files, self.kept, self.values = given, files, kept, values
        self._mask = mask
        self._observer = observer
        self._is_taken = False

    def take(self, claim: int, runner: Process | None) -> None:
        """Nobody else runs the steps from here on."""
        self.files.take(self.keep(claim=claim, runner=runner))
        self._is_taken = True

    def keep(self, **changes: Any) -> Kept:
        self.kept = msgspec.structs.replace(self.kept, **changes)
        return self.kept

    def advance(self) -> Next:
        """One attempt of the step whose turn it is."""
        number, step = self._turn()
        if SUMMARIES in self.given.files:
            text = render_text(f"[{SUMMARIES}]", self.given.scope({}))
            self.files.write(f"/{SUMMARIES}.md", self._mask.text(text).encode("utf-8", "replace"))
        self.files.save(self.keep(run=progress.start(self.kept.run, step)))
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
        run, came = progress.record(self.kept.run, step, outcome)
        if run.of(step.step).state is StepState.SKIPPED:
            self._take_output(number, step, b"")
        self._move_on(run)
        if self._observer is not None:
            self._observer.ended(number, total, run.of(step.step))
        return came

    def decided(self, decision: Decision) -> Next:
        """Apply a person's decision to the step that waits."""
        number, step = self._turn()
        run, came = progress.decide(self.kept.run, step.step, decision)
        if isinstance(decision, SetValue):
            written = self._take_output(number, step, f"{decision.value}\n".encode())
            run, came = progress.decide(self.kept.run, step.step, SetValue(value=written))
        elif run.of(step.step).state is StepState.SKIPPED:
            self._take_output(number, step, b"")
        self._move_on(run)
        return came

    def interrupted(self, why: str) -> None:
        if not self._is_taken:
            return
        run = self.kept.run
        steps = tuple(
            msgspec.structs.replace(each, reason=why) if each.state is StepState.RUNNING else each for each in run.steps
        )
        self.files.save(self.keep(run=msgspec.structs.replace(run, steps=steps), runner=None, group=None))

    def _turn(self) -> tuple[int, Step]:
        current = self.kept.run.current
        return next((number, step) for number, step in enumerate(self.given.steps, 1) if step.step == current)

    def _take_output(self, number: int, step: Step, output: bytes) -> str:
        """Keep what a step put out, and make it the value of its name; returns the text that was written."""
        masked = self.files.keep_output(number, step.step, output)
        if masked != output:
            self.keep(masked=(*self.kept.masked, step.step))
        if step.output_to is not None:
            self.values[step.output_to] = value_of(output, self.files.output_path(number, step.step))
        return output_text(masked)

    def _move_on(self, run: FlowRun) -> None:
        # The outputs are in their files; holding them all here would have no bound.
        steps = tuple(msgspec.structs.replace(each, output=None) for each in run.steps)
        self.files.save(self.keep(run=msgspec.structs.replace(run, steps=steps), group=None))

    def _started(self, pid: int) -> None:
        self.files.save(self.keep(group=this_process(pid)))

    def _watched(self, line: bytes) -> None:
        if self._observer is not None:
            self._observer.watches(self._mask.text(line.decode("utf-8", "replace")))
