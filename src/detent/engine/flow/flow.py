"""Runs the steps of a task: claims the task, runs the steps, and prepares the context for the agent.

The progress is saved before a step starts and after it ends, so that `resume` continues at the step at which a run
stopped. That step runs again: execution is at least once.
"""

import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import msgspec

from detent import process
from detent.core.flow import progress
from detent.core.flow.expansion import task_environment
from detent.core.flow.progress import Decision, FlowRun, Next, StepState, output_text
from detent.core.flow.scope import SessionFacts
from detent.core.flow.step import DEFAULT_TIMEOUT_S, Step, steps_of
from detent.core.limits import cut
from detent.core.task.id import canonical
from detent.core.task.row import Row, TaskStatus
from detent.engine import policy
from detent.engine.flow.record import Ended, FlowFiles, Mask, Record, this_process
from detent.engine.flow.steps import MAX_REASON, SUMMARIES, FlowInput, Observer, StepSequence, checked, ready
from detent.errors import DetentError, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.engine.tasks.tasks import Tasks

BEAT_S = 60.0


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A step as it would run. `problem` says why it would not."""

    step: str
    action: str
    command: str
    env: dict[str, str]
    cwd: str
    timeout_s: float
    on_error: str
    problem: str | None = None


class FlowOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of the steps. `ended` is None if they are running, were interrupted, or never ran."""

    task: str
    #: The task as it was when the steps were looked at.
    row: Row
    session: str
    steps: tuple[Step, ...]
    run: FlowRun
    ended: Ended | None = None
    running: bool = False
    #: The fence for every later command about the task.
    claim: int | None = None
    step: str | None = None
    reason: str = ""
    planned: tuple[Planned, ...] = ()
    context: dict[str, Any] | None = None
    context_file: str | None = None
    files: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


class Flow:
    def __init__(self, project: "Project", handle: "SessionHandle", *, env: Mapping[str, str] | None = None) -> None:
        """`env` adds variables to the environment of the steps."""
        self._project = project
        self._handle = handle
        self._env = env or {}
        self._tasks: Tasks = handle.tasks
        self._mask = Mask(os.environ)

    def show(self, task: str) -> FlowOutcome:
        """The progress of the steps of the task."""
        own = canonical(task)
        given = self._input(own)
        record = self._files(own).load() or Record(run=progress.begin(given.document))
        stops = (each for each in record.run.steps if each.state in (StepState.WAITING, StepState.FAILED))
        stopped = next(stops, None)
        return self._outcome(
            given,
            record.run,
            ended=record.ended,
            running=record.is_running,
            claim=record.claim,
            reason=stopped.reason if stopped else "",
        )

    def run(
        self,
        task: str,
        *,
        dry_run: bool = False,
        rerun_from: str | None = None,
        claim: int | None = None,
        observer: Observer | None = None,
    ) -> FlowOutcome:
        """Run the steps from the first, or from `rerun_from`. `claim` is the fence of a caller who holds the task."""
        given = checked(self._input(canonical(task)))
        files = self._files(given.task)
        if dry_run:
            return self._dry_run(given, files)
        if rerun_from is not None:
            return self.resume(task, rerun_from=rerun_from, claim=claim, observer=observer)
        record = files.load()
        if record is not None and record.run.current is not None and _is_begun(record.run):
            raise Refused(
                f"the steps of {given.task} were started; the current step is {record.run.current!r}",
                way_out=f"detent flow resume {given.task}, or detent flow run {given.task} --rerun-from STEP",
            )
        fresh = Record(run=progress.begin(given.document))
        return self._go(given, fresh, record, claim, observer)

    def resume(
        self,
        task: str,
        *,
        decision: Decision | None = None,
        rerun_from: str | None = None,
        claim: int | None = None,
        observer: Observer | None = None,
    ) -> FlowOutcome:
        """Continue at the first step that is not finished. A step that waits for a person needs a decision."""
        given = checked(self._input(canonical(task)))
        files = self._files(given.task)
        record = files.load()
        if record is None:
            raise Refused(f"no step of {given.task} has run", way_out=f"detent flow run {given.task}")
        if (decision is not None or rerun_from is not None) and self.waits(task):
            policy.authorize(self._project.actor, policy.Decision.STEP)
        run = progress.resume(record.run, given.document, rerun_from)
        masked = tuple(name for name in record.masked if name in {each.step for each in run.steps if each.is_finished})
        current = Record(run=run, masked=masked)
        waiting = run.of(run.current) if run.current is not None else None
        if waiting is None or waiting.state is not StepState.WAITING:
            if decision is not None:
                raise Refused(f"no step of {given.task} waits for a decision")
            return self._go(given, current, record, claim, observer)
        if decision is None:
            raise Refused(
                f"step {waiting.step!r} of {given.task} waits for a person: {waiting.reason}",
                way_out=f"detent flow resume {given.task} with --retry, --skip, --set VALUE or --abort",
            )
        return self._go(given, current, record, claim, observer, decision)

    def waits(self, task: str) -> bool:
        """True if a step waits for a person."""
        record = self._files(canonical(task)).load()
        return record is not None and any(each.state is StepState.WAITING for each in record.run.steps)

    # One run

    def _go(
        self,
        given: FlowInput,
        current: Record,
        before: Record | None,
        claim: int | None,
        observer: Observer | None,
        decision: Decision | None = None,
    ) -> FlowOutcome:
        files = self._files(given.task)
        warnings = _masked_warnings(given, current)
        values = files.values(current.run, given.steps)
        if before is not None and before.is_running:
            assert before.runner is not None
            raise Refused(f"the steps of {given.task} are being run by process {before.runner.pid}")
        fence, is_ours = self._claim(given, before, claim)
        sequence = StepSequence(given, files, current, values, self._mask, observer)
        try:
            sequence.take(fence, this_process(os.getpid()))
            with suppress(DetentError):  # documents that cannot be written now are written later
                self._project.flush()
            if before is not None and before.group is not None and before.group.is_alive:
                process.end_group(before.group.pid)
                warnings.append("the step that was interrupted was still running, and was ended")
            with self._renewing_lease(given.task, fence):
                following = sequence.decided(decision) if decision is not None else Next.GO_ON
                while following in (Next.GO_ON, Next.AGAIN) and sequence.record.run.current is not None:
                    self._check_held(given.task, fence)
                    following = sequence.advance()
            return self._ended(given, sequence, fence, is_ours=is_ours, warnings=warnings)
        except BaseException as error:
            self._interrupt(given.task, sequence, fence if is_ours else None, error)
            raise

    def _claim(self, given: FlowInput, before: Record | None, claim: int | None) -> tuple[int, bool]:
        """The fence under which the task is held, and whether this run holds it."""
        task = given.task
        held = self._handle.state.claims.get(task)
        if claim is not None:
            if held is None or held.fence != claim:
                under = f"held under claim {held.fence}" if held else "not claimed"
                raise Refused(f"{task} is {under}; claim {claim} does not hold it")
            return claim, False
        status = self._tasks.row(task).status
        if before is not None:
            is_left = before.runner is not None and held is not None and before.claim == held.fence
            if status is TaskStatus.ACTIVE and is_left:
                assert held is not None
                return held.fence, True
            if status is TaskStatus.BLOCKED and before.ended is Ended.WAITING:
                return self._tasks.resume(task).fence, True
            if status is TaskStatus.FAILED and before.ended is Ended.FAILED:
                self._tasks.retry(task)
        return self._tasks.start(task, pid=os.getpid()).fence, True

    def _check_held(self, task: str, fence: int) -> None:
        held = self._handle.state.claims.get(task)
        if held is None or held.fence != fence:
            raise Refused(f"{task} was taken from this run, which held it under claim {fence}")

    def _ended(
        self, given: FlowInput, sequence: StepSequence, fence: int, *, is_ours: bool, warnings: list[str]
    ) -> FlowOutcome:
        run, task = sequence.record.run, given.task
        stopped = run.of(run.current) if run.current is not None else None
        context = file = None
        if stopped is None:
            ended = Ended.FINISHED
            self._check_held(task, fence)
            fence = self._keep_claim(task, fence) if is_ours else fence
            context = self._context(given, sequence, fence)
            file = sequence.files.write(".context.json", msgspec.json.format(msgspec.json.encode(context), indent=2))
        else:
            ended = Ended.WAITING if stopped.state is StepState.WAITING else Ended.FAILED
        # Recorded before the task changes, so that a crash in between can be recognised.
        sequence.files.save(sequence.update(ended=ended, claim=fence, runner=None, group=None))
        if stopped is not None:
            reason = f"step {stopped.step!r}: {stopped.reason}"
            move = self._tasks.block if ended is Ended.WAITING else self._tasks.fail
            move(task, reason, fence=fence)
        return self._outcome(
            given,
            run,
            ended=ended,
            claim=fence if ended is Ended.FINISHED else None,
            reason=stopped.reason if stopped else "",
            context=context,
            context_file=file,
            warnings=tuple(warnings),
        )

    def _outcome(self, given: FlowInput, run: FlowRun, **more: Any) -> FlowOutcome:
        return FlowOutcome(
            task=given.task,
            row=self._tasks.row(given.task),
            session=self._handle.id,
            steps=given.steps,
            run=run,
            step=run.current,
            files=given.files,
            **more,
        )

    def _keep_claim(self, task: str, fence: int) -> int:
        """The fence of a claim that outlives this process, for the work that follows."""
        held = self._handle.state.claims[task]
        if held.pid is None:
            return fence
        return self._tasks.keep(task, fence).fence

    def _interrupt(self, task: str, sequence: StepSequence, fence: int | None, error: BaseException) -> None:
        """Mark the step as interrupted, and release the task if this run claimed it."""
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else self._mask.text(str(error))
        with suppress(DetentError):
            sequence.interrupted(why)
        if fence is not None:
            with suppress(DetentError):
                self._tasks.release(task, reason=cut(f"its steps were stopped: {why}", MAX_REASON), fence=fence)

    @contextmanager
    def _renewing_lease(self, task: str, fence: int) -> Iterator[None]:
        """Renew the lease of the task in the background."""
        over = threading.Event()

        def beat() -> None:
            while not over.wait(BEAT_S):
                with suppress(DetentError):
                    self._tasks.beat(task, fence)

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    # Input and output of the steps

    def _files(self, task: str) -> FlowFiles:
        return FlowFiles(self._project, self._handle.id, task, self._mask)

    def _input(self, task: str) -> FlowInput:
        context = self._tasks.context(task)
        document, files, sandbox = context["task"], self._files(task), self._project.sandbox
        steps = steps_of(document)
        outputs = {
            step.output_to: files.output_path(number, step.step)
            for number, step in enumerate(steps, 1)
            if step.output_to is not None
        }
        given = FlowInput(
            task=task,
            document=document,
            steps=steps,
            session=SessionFacts(
                id=self._handle.id, dir=context["paths"]["session"], phase=context["workflow"]["phase"]
            ),
            summaries=context["dependency_summaries"],
            base=self._project.place.base,
            files=outputs,
            env=dict(self._env),
            sandbox=sandbox.for_check(self._project.place) if sandbox is not None else None,
        )
        if not any(f"[{SUMMARIES}.file]" in step.command for step in steps):
            return given
        return msgspec.structs.replace(given, files={**outputs, SUMMARIES: files.path(f"/{SUMMARIES}.md")})

    def _context(self, given: FlowInput, sequence: StepSequence, fence: int) -> dict[str, Any]:
        """The agent's context: the task, the outputs of its steps, and the work to do now."""
        shown = {name: output_text(value.encode("utf-8", "surrogateescape")) for name, value in sequence.values.items()}
        flow = {
            "outputs": shown,
            "files": given.files,
            "steps": [
                {"step": step.step, "action": step.action, "state": sequence.record.run.of(step.step).state}
                for step in given.steps
            ],
            "implementation_approach": given.approach(sequence.values),
            "target_files": given.document["flow_control"].get("target_files") or [],
        }
        context: dict[str, Any] = self._mask.tree({**self._tasks.context(given.task), "flow": flow})
        return {**context, "claim": fence}

    def _dry_run(self, given: FlowInput, files: FlowFiles) -> FlowOutcome:
        record = files.load()
        values = given.placeholders()
        run = progress.begin(given.document)
        if record is not None:
            with suppress(DetentError):
                run = progress.resume(record.run, given.document)
                values |= files.values(run, given.steps)
        return self._outcome(given, run, planned=tuple(self._planned(given, step, values) for step in given.steps))

    def _planned(self, given: FlowInput, step: Step, values: dict[str, str]) -> Planned:
        command, problem, env = step.script, None, {}
        try:
            properties = task_environment(given.document, given.session)
            expanded = ready(given, step, values)
            command = expanded.command
            env = {
                **{name: value for name, value in properties.items() if re.search(rf"\$\{{?{name}\b", command)},
                **expanded.env,
            }
        except Refused as refused:
            problem = self._mask.text(refused.message)
        return Planned(
            step=step.step,
            action=step.action,
            command=self._mask.text(command),
            env={name: self._mask.text(output_text(os.fsencode(value))) for name, value in env.items()},
            cwd=given.cwd(step),
            timeout_s=step.timeout or DEFAULT_TIMEOUT_S,
            on_error=step.on_error.value,
            problem=problem,
        )


def _is_begun(run: FlowRun) -> bool:
    return any(each.state is not StepState.PENDING for each in run.steps)


def _masked_warnings(given: FlowInput, record: Record) -> list[str]:
    """Warnings about outputs that later steps get with their secrets redacted."""
    if record.run.current is None:
        return []
    return [
        f"the output of step {step.step!r} is stored without its secrets; --rerun-from {step.step} runs the step again"
        for step in given.steps
        if step.output_to is not None and step.step in record.masked
    ]
