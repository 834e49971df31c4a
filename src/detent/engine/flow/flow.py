"""Running the steps of a task: claim it, run each step in turn, and give the result to whoever does the work.

How far it is goes to disk before a step starts and after it ended, so that whatever stops the runner, `resume` goes on
at the step where it stopped. That step runs again: execution is at least once.
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
from detent.core.task.row import TaskStatus
from detent.engine import policy
from detent.engine.flow.flow_step import Given, checked, ready
from detent.engine.flow.record import Ended, FlowFiles, Kept, Mask, this_process
from detent.engine.flow.sequence import MAX_REASON, SUMMARIES, Observer, StepSequence
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
    """How far the steps are. `ended` is None if they are running, were interrupted, or never ran."""

    task: str
    session: str
    steps: tuple[Step, ...]
    run: FlowRun
    ended: Ended | None = None
    running: bool = False
    #: Goes with everything that is done about the task from now on.
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
        """`env` is what steps have besides the environment of this process."""
        self._project = project
        self._handle = handle
        self._env = env or {}
        self._tasks: Tasks = handle.tasks
        self._mask = Mask(os.environ)

    def show(self, task: str) -> FlowOutcome:
        """How far the steps of the task are."""
        own = canonical(task)
        kept = self._files(own).load()
        given = self._given(own)
        run = kept.run if kept is not None else progress.begin(given.document)
        known = kept or Kept(run=run)
        stopped = next((each for each in run.steps if each.state in (StepState.WAITING, StepState.FAILED)), None)
        return FlowOutcome(
            task=own,
            session=self._handle.id,
            steps=given.steps,
            run=run,
            ended=known.ended,
            running=known.is_going_on,
            claim=known.claim,
            step=run.current,
            reason=stopped.reason if stopped else "",
            files=given.files,
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
        """Run the steps from the first, or from the one that is named. `claim` is the caller's, who holds the task."""
        given = checked(self._given(canonical(task)))
        files = self._files(given.task)
        if dry_run:
            return self._foreseen(given, files)
        if rerun_from is not None:
            return self.resume(task, rerun_from=rerun_from, claim=claim, observer=observer)
        kept = files.load()
        if kept is not None and kept.run.current is not None and _is_begun(kept.run):
            raise Refused(
                f"the steps of {given.task} have been begun; the turn is at {kept.run.current!r}",
                way_out=f"detent flow resume {given.task}, or detent flow run {given.task} --rerun-from STEP",
            )
        fresh = Kept(run=progress.begin(given.document))
        return self._go(given, fresh, kept, claim, observer)

    def resume(
        self,
        task: str,
        *,
        decision: Decision | None = None,
        rerun_from: str | None = None,
        claim: int | None = None,
        observer: Observer | None = None,
    ) -> FlowOutcome:
        """Go on at the first step that is not finished; at one that waits for a person with what the person decided."""
        given = checked(self._given(canonical(task)))
        files = self._files(given.task)
        kept = files.load()
        if kept is None:
            raise Refused(f"no step of {given.task} has run", way_out=f"detent flow run {given.task}")
        if (decision is not None or rerun_from is not None) and self.waits(task):
            policy.authorize(self._project.actor, policy.Decision.STEP)
        run = progress.resume(kept.run, given.document, rerun_from)
        masked = tuple(name for name in kept.masked if name in {each.step for each in run.steps if each.is_finished})
        going = Kept(run=run, masked=masked)
        waiting = run.of(run.current) if run.current is not None else None
        if waiting is None or waiting.state is not StepState.WAITING:
            if decision is not None:
                raise Refused(f"no step of {given.task} waits for a decision")
            return self._go(given, going, kept, claim, observer)
        if decision is None:
            raise Refused(
                f"step {waiting.step!r} of {given.task} waits for a person: {waiting.reason}",
                way_out=f"detent flow resume {given.task} with --retry, --skip, --set VALUE or --abort",
            )
        return self._go(given, going, kept, claim, observer, decision)

    def waits(self, task: str) -> bool:
        """True if a step waits for a person."""
        kept = self._files(canonical(task)).load()
        return kept is not None and any(each.state is StepState.WAITING for each in kept.run.steps)

    # One run

    def _go(
        self,
        given: Given,
        going: Kept,
        before: Kept | None,
        claim: int | None,
        observer: Observer | None,
        decision: Decision | None = None,
    ) -> FlowOutcome:
        files = self._files(given.task)
        warnings = _masked_warnings(given, going)
        values = files.values(going.run, given.steps)
        if before is not None and before.is_going_on:
            assert before.runner is not None
            raise Refused(f"the steps of {given.task} are being run by process {before.runner.pid}")
        fence, is_ours = self._claim(given, before, claim)
        sequence = StepSequence(given, files, going, values, self._mask, observer)
        try:
            sequence.take(fence, this_process(os.getpid()))
            with suppress(DetentError):  # documents that cannot be written now are written later
                self._project.flush()
            if before is not None and before.group is not None and before.group.is_alive:
                process.end_group(before.group.pid)
                warnings.append("the step that was interrupted was still running, and was ended")
            with self._beating(given.task, fence):
                came = sequence.decided(decision) if decision is not None else Next.GO_ON
                while came in (Next.GO_ON, Next.AGAIN) and sequence.kept.run.current is not None:
                    self._check_held(given.task, fence)
                    came = sequence.advance()
            return self._ended(given, sequence, fence, is_ours=is_ours, warnings=warnings)
        except BaseException as error:
            self._let_go(given.task, sequence, fence if is_ours else None, error)
            raise

    def _claim(self, given: Given, before: Kept | None, claim: int | None) -> tuple[int, bool]:
        """The number that the task is held under, and whether this run is what holds it."""
        task = given.task
        held = self._handle.state.claims.get(task)
        if claim is not None:
            if held is None or held.fence != claim:
                under = f"held under claim {held.fence}" if held else "held by nobody"
                raise Refused(f"{task} is {under}, not under {claim}")
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
        self, given: Given, sequence: StepSequence, fence: int, *, is_ours: bool, warnings: list[str]
    ) -> FlowOutcome:
        run, task = sequence.kept.run, given.task
        stopped = run.of(run.current) if run.current is not None else None
        context = file = None
        if stopped is None:
            ended = Ended.FINISHED
            self._check_held(task, fence)
            fence = self._handed_over(task, fence) if is_ours else fence
            context = self._context(given, sequence, fence)
            file = sequence.files.write(".context.json", msgspec.json.format(msgspec.json.encode(context), indent=2))
        else:
            ended = Ended.WAITING if stopped.state is StepState.WAITING else Ended.FAILED
        # What is recorded first is what a crash in between can be told from.
        sequence.files.save(sequence.keep(ended=ended, claim=fence, runner=None, group=None))
        if stopped is not None:
            reason = f"step {stopped.step!r}: {stopped.reason}"
            move = self._tasks.block if ended is Ended.WAITING else self._tasks.fail
            move(task, reason, fence=fence)
        return FlowOutcome(
            task=task,
            session=self._handle.id,
            steps=given.steps,
            run=sequence.kept.run,
            ended=ended,
            claim=fence if ended is Ended.FINISHED else None,
            step=run.current,
            reason=stopped.reason if stopped else "",
            context=context,
            context_file=file,
            files=given.files,
            warnings=tuple(warnings),
        )

    def _handed_over(self, task: str, fence: int) -> int:
        """The claim of this process ends with it; the task must be held on for the work that follows."""
        held = self._handle.state.claims[task]
        if held.pid is None:
            return fence
        return self._tasks.keep(task, fence).fence

    def _let_go(self, task: str, sequence: StepSequence, fence: int | None, error: BaseException) -> None:
        """Mark the step as interrupted, and give back the task that was claimed for the run."""
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else self._mask.text(str(error))
        with suppress(DetentError):
            sequence.interrupted(why)
        if fence is not None:
            with suppress(DetentError):
                self._tasks.release(task, reason=cut(f"its steps were stopped: {why}", MAX_REASON), fence=fence)

    @contextmanager
    def _beating(self, task: str, fence: int) -> Iterator[None]:
        """Say that the runner is alive, for as long as it is."""
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

    # What the steps are given, and what they give

    def _files(self, task: str) -> FlowFiles:
        return FlowFiles(self._project, self._handle.id, task, self._mask)

    def _given(self, task: str) -> Given:
        context = self._tasks.context(task)
        document, files = context["task"], self._files(task)
        steps = steps_of(document)
        outputs = {
            step.output_to: files.output_path(number, step.step)
            for number, step in enumerate(steps, 1)
            if step.output_to is not None
        }
        given = Given(
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
        )
        if not any(f"[{SUMMARIES}.file]" in step.command for step in steps):
            return given
        return msgspec.structs.replace(given, files={**outputs, SUMMARIES: files.path(f"/{SUMMARIES}.md")})

    def _context(self, given: Given, sequence: StepSequence, fence: int) -> dict[str, Any]:
        """The agent's context: the task, the outputs of its steps, and the work to do now."""
        shown = {name: output_text(value.encode("utf-8", "surrogateescape")) for name, value in sequence.values.items()}
        flow = {
            "outputs": shown,
            "files": given.files,
            "steps": [
                {"step": step.step, "action": step.action, "state": sequence.kept.run.of(step.step).state}
                for step in given.steps
            ],
            "implementation_approach": given.approach(sequence.values),
            "target_files": given.document["flow_control"].get("target_files") or [],
        }
        context: dict[str, Any] = self._mask.tree({**self._tasks.context(given.task), "flow": flow})
        return {**context, "claim": fence}

    def _foreseen(self, given: Given, files: FlowFiles) -> FlowOutcome:
        kept = files.load()
        values = given.placeholders()
        run = progress.begin(given.document)
        if kept is not None:
            with suppress(DetentError):
                run = progress.resume(kept.run, given.document)
                values |= files.values(run, given.steps)
        planned = tuple(self._planned(given, step, values) for step in given.steps)
        return FlowOutcome(
            task=given.task,
            session=self._handle.id,
            steps=given.steps,
            run=run,
            step=run.current,
            planned=planned,
            files=given.files,
        )

    def _planned(self, given: Given, step: Step, values: dict[str, str]) -> Planned:
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


def _masked_warnings(given: Given, going: Kept) -> list[str]:
    """Secrets are not kept, so that steps that still use such an output get it with holes."""
    if going.run.current is None:
        return []
    return [
        f"what step {step.step!r} put out held secrets, which are not kept; --rerun-from {step.step} makes it anew"
        for step in given.steps
        if step.output_to is not None and step.step in going.masked
    ]
