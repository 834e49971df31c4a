"""One attempt of one step: its command made ready, run, and judged."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from detent import process
from detent.core.flow.criterion import judge
from detent.core.flow.expansion import Expanded, expand, task_environment
from detent.core.flow.progress import Outcome, output_text
from detent.core.flow.reference import task_properties
from detent.core.flow.scope import Scope, SessionFacts, render_text
from detent.core.flow.step import DEFAULT_TIMEOUT_S, Step, step_problems
from detent.engine.flow.record import MAX_OUTPUT_BYTES
from detent.errors import DetentError, Invalid, Refused

#: Of a name that only a later step puts out its own strategy decides, when its turn has come.
_DECIDED_LATER = "produced_later"


class Given(msgspec.Struct, frozen=True, kw_only=True):
    """A task as its steps find it: nothing of this changes while they run."""

    task: str
    document: dict[str, Any]
    steps: tuple[Step, ...]
    session: SessionFacts
    summaries: dict[str, str]
    base: str
    #: For the name of each output the file that has all of it.
    files: dict[str, str]
    #: What steps have besides the environment of this process.
    env: dict[str, str] = {}

    def scope(self, values: Mapping[str, str]) -> Scope:
        return Scope(
            task=self.document,
            session=self.session,
            outputs=values,
            dependency_summaries=self.summaries,
            files=self.files,
        )

    def placeholders(self) -> dict[str, str]:
        """For what steps will put out, words that say so."""
        return {step.output_to: f"<what {step.step} puts out>" for step in self.steps if step.output_to is not None}

    def cwd(self, step: Step) -> str:
        return self.session.dir if step.cwd == "session" else self.base

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


def checked(given: Given) -> Given:
    """Refuse what can never run, before anything does."""
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


def ready(given: Given, step: Step, values: Mapping[str, str]) -> Expanded:
    """The command and its own environment; `Refused` if a value is missing or cannot be put in."""
    return expand(step.script, given.scope(values))


def attempt(
    given: Given,
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
