"""The progress of the steps of a task: a value that survives a crash, and its transition table.

A step that was interrupted runs again: execution is at least once. Only attempts with a known outcome are counted.
"""

import hashlib
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from detent.core.flow.step import OnError, Step, steps_of
from detent.errors import Invalid, NotFound, Refused

MAX_ATTEMPTS = 2  # of retry_once


class StepState(StrEnum):
    PENDING = "pending"
    RUNNING = "running"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"
    WAITING = "waiting"


class Move(StrEnum):
    START = "start"
    FINISH = "finish"
    SKIP = "skip"
    FAIL = "fail"
    WAIT = "wait"
    RETRY = "retry"


class Next(StrEnum):
    """The next action after a step."""

    AGAIN = "again"
    GO_ON = "go_on"
    FINISHED = "finished"
    FAILED = "failed"
    WAITING = "waiting"


TRANSITIONS: dict[tuple[StepState, Move], StepState] = {
    (StepState.PENDING, Move.START): StepState.RUNNING,
    (StepState.RUNNING, Move.FINISH): StepState.DONE,
    (StepState.RUNNING, Move.SKIP): StepState.SKIPPED,
    (StepState.RUNNING, Move.FAIL): StepState.FAILED,
    (StepState.RUNNING, Move.WAIT): StepState.WAITING,
    (StepState.RUNNING, Move.RETRY): StepState.PENDING,
    (StepState.WAITING, Move.FINISH): StepState.DONE,
    (StepState.WAITING, Move.SKIP): StepState.SKIPPED,
    (StepState.WAITING, Move.FAIL): StepState.FAILED,
    (StepState.WAITING, Move.RETRY): StepState.PENDING,
}
_FINISHED = (StepState.DONE, StepState.SKIPPED)


class StepRun(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    state: StepState = StepState.PENDING
    attempts: int = 0
    exit_code: int | None = None
    duration_s: float | None = None
    template_hash: str
    output_hash: str | None = None
    output: str | None = None
    reason: str = ""

    @property
    def is_finished(self) -> bool:
        return self.state in _FINISHED


class FlowRun(msgspec.Struct, frozen=True, kw_only=True):
    task_id: str
    steps: tuple[StepRun, ...]

    @property
    def current(self) -> str | None:
        """The first step that is not finished."""
        return next((each.step for each in self.steps if not each.is_finished), None)

    def of(self, step: str) -> StepRun:
        for each in self.steps:
            if each.step == step:
                return each
        raise NotFound(f"task {self.task_id} has no step {step!r}")


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one attempt. A command that could not be prepared, or was killed, has no exit code."""

    passed: bool
    output: str = ""
    exit_code: int | None = None
    duration_s: float = 0.0
    reason: str = ""


class Retry(msgspec.Struct, frozen=True, tag="retry"):
    """Run the step again."""


class Skip(msgspec.Struct, frozen=True, tag="skip"):
    """Continue without the output of the step."""


class SetValue(msgspec.Struct, frozen=True, tag="set_value"):
    """Continue with a value that a person gives."""

    value: str


class Abort(msgspec.Struct, frozen=True, tag="abort"):
    """The task fails."""


Decision = Retry | Skip | SetValue | Abort


def begin(document: Mapping[str, Any]) -> FlowRun:
    steps = tuple(StepRun(step=step.step, template_hash=template_hash(step)) for step in steps_of(document))
    return FlowRun(task_id=str(document.get("id")), steps=steps)


def resume(run: FlowRun, document: Mapping[str, Any], rerun_from: str | None = None) -> FlowRun:
    """The run to continue: finished steps stay, steps that were running or failed run again.

    Finished steps must be unchanged and in the same order. From the step `rerun_from` on, every step runs again. A step
    that waits for a person continues to wait.
    """
    fresh = begin(document)
    if fresh.task_id != run.task_id:
        raise Refused(f"this run is of task {run.task_id}, not {fresh.task_id}")
    stop = len(fresh.steps)
    if rerun_from is not None:
        stop = fresh.steps.index(fresh.of(rerun_from))
    before = {each.step: each for each in run.steps}
    kept = tuple(_kept(before.get(each.step), each) for each in fresh.steps[:stop])
    problems = _changes(run, kept, fresh, stop)
    if problems:
        way_out = "run again from a step on with --rerun-from; what follows it is run again, too"
        raise Refused("\n  - ".join(["the task changed since its steps ran", *problems]), way_out=way_out)
    return FlowRun(task_id=run.task_id, steps=kept + fresh.steps[stop:])


def start(run: FlowRun, step: Step) -> FlowRun:
    """The run with the step running; it is saved before the command starts."""
    state = _expected(run, step)
    return _moved(run, msgspec.structs.replace(state, exit_code=None, duration_s=None, reason=""), Move.START)


def record(run: FlowRun, step: Step, outcome: Outcome) -> tuple[FlowRun, Next]:
    """The run after one attempt, and the next action. A step that was not started is started first."""
    state = _expected(run, step)
    if state.state is StepState.PENDING:
        run = start(run, step)
    attempts = state.attempts + 1
    state = msgspec.structs.replace(
        run.of(step.step),
        attempts=attempts,
        exit_code=outcome.exit_code,
        duration_s=outcome.duration_s,
        reason=outcome.reason,
    )
    if outcome.passed:
        return _advanced(_moved(run, _with_output(state, outcome.output), Move.FINISH))
    match step.on_error:
        case OnError.SKIP_OPTIONAL:
            return _advanced(_moved(run, _with_output(state, ""), Move.SKIP))
        case OnError.RETRY_ONCE if attempts < MAX_ATTEMPTS:
            return _moved(run, state, Move.RETRY), Next.AGAIN
        case OnError.MANUAL_INTERVENTION:
            return _moved(run, state, Move.WAIT), Next.WAITING
        case OnError.FAIL | OnError.RETRY_ONCE:
            return _moved(run, state, Move.FAIL), Next.FAILED


def decide(run: FlowRun, step: str, decision: Decision) -> tuple[FlowRun, Next]:
    """A person's decision on a step that waits."""
    state = run.of(step)
    if state.state is not StepState.WAITING:
        raise Refused(f"step {step!r} is {state.state} and does not wait for a person")
    match decision:
        case Retry():
            return _moved(run, state, Move.RETRY), Next.AGAIN
        case Skip():
            return _advanced(_moved(run, _with_output(state, ""), Move.SKIP))
        case SetValue(value=value):
            return _advanced(_moved(run, _with_output(state, _checked(value)), Move.FINISH))
        case Abort():
            return _moved(run, state, Move.FAIL), Next.FAILED


def output_text(raw: bytes) -> str:
    """The output of a program as a value: without NUL bytes and without the newline at its end."""
    return raw.replace(b"\0", b"").decode("utf-8", "replace").removesuffix("\n")


def template_hash(step: Step) -> str:
    """A digest of the command and its directory. The strategy for errors may change without a new run."""
    return _hash(f"{step.cwd}\n{step.command}")


def _kept(old: StepRun | None, fresh: StepRun) -> StepRun:
    if old is None:
        return fresh
    if old.is_finished or (old.state is StepState.WAITING and old.template_hash == fresh.template_hash):
        return old
    is_same = old.template_hash == fresh.template_hash and old.state is not StepState.FAILED
    return msgspec.structs.replace(fresh, attempts=old.attempts if is_same else 0)


def _changes(run: FlowRun, kept: tuple[StepRun, ...], fresh: FlowRun, stop: int) -> list[str]:
    names = [each.step for each in fresh.steps]
    is_rerun = stop < len(fresh.steps)
    gone = [
        f"finished step {each.step!r} is gone"
        for each in run.steps
        if each.is_finished and each.step not in names and not is_rerun
    ]
    changed = [
        f"finished step {old.step!r} has another command now"
        for old, new in zip(kept, fresh.steps[:stop], strict=True)
        if old.is_finished and old.template_hash != new.template_hash
    ]
    order = [each.step for each in run.steps]
    finished = [each.step for each in kept if each.is_finished]
    moved = [] if finished == [name for name in order if name in finished] else ["finished steps are in another order"]
    open_at = next((at for at, each in enumerate(kept) if not each.is_finished), len(kept))
    early = [
        f"step {kept[open_at].step!r} has not run and finished step {each.step!r} comes after it"
        for each in kept[open_at:]
        if each.is_finished
    ]
    return gone + changed + moved + early


def _expected(run: FlowRun, step: Step) -> StepRun:
    """The state of the current step, if its command is unchanged."""
    state = run.of(step.step)
    if state.state is StepState.FAILED or step.step != run.current:
        raise Refused(f"step {step.step!r} is {state.state}; the turn is at {run.current!r}")
    if state.template_hash != template_hash(step):
        raise Refused(f"step {step.step!r} has another command than when the run began; resume the run first")
    return state


def _moved(run: FlowRun, state: StepRun, move: Move) -> FlowRun:
    to = TRANSITIONS.get((state.state, move))
    if to is None:
        raise Refused(f"step {state.step!r} is {state.state}, which does not allow to {move} it")
    state = msgspec.structs.replace(state, state=to)
    return msgspec.structs.replace(run, steps=tuple(state if each.step == state.step else each for each in run.steps))


def _advanced(run: FlowRun) -> tuple[FlowRun, Next]:
    return run, Next.FINISHED if run.current is None else Next.GO_ON


def _with_output(state: StepRun, output: str) -> StepRun:
    return msgspec.structs.replace(state, output=output, output_hash=_hash(output))


def _checked(value: str) -> str:
    if "\0" in value:
        raise Invalid("a value cannot hold a NUL character")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"a value must be UTF-8 text; character {error.start + 1} is not") from error
    return value


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
