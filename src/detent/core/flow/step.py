"""Steps: parses and checks `flow_control.pre_analysis` of a task."""

import re
from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import Any, Literal

import msgspec

from detent.core.flow.criterion import parse
from detent.core.flow.reference import IDENTIFIER, references
from detent.core.flow.site import Unsure
from detent.core.flow.sites import track
from detent.core.limits import cut
from detent.core.problem import Problem
from detent.errors import Invalid

DEFAULT_TIMEOUT_S = 600.0
MAX_TIMEOUT_S = 86_400.0
MAX_STEPS = 200
#: A command is written as `bash(…)`: up to the last parenthesis, whatever parentheses are inside.
_WRAPPER = "bash("


def is_wrapped(command: str) -> bool:
    return command.strip().startswith(_WRAPPER)


def is_balanced(command: str) -> bool:
    """Whether a wrapper is closed at the end of the command."""
    return not is_wrapped(command) or command.strip().endswith(")")


def unwrap(command: str) -> str:
    """The command for bash, without its wrapper if it has one."""
    if not is_wrapped(command) or not is_balanced(command):
        return command
    return command.strip()[len(_WRAPPER) : -1]


_SESSION_FOLDER = re.compile(r"""(?:^|[\s"'=(<>|;&])(?:\./)?(\.(?:summaries|task|chat|brainstorming))/""")


class OnError(StrEnum):
    SKIP_OPTIONAL = "skip_optional"
    FAIL = "fail"
    RETRY_ONCE = "retry_once"
    MANUAL_INTERVENTION = "manual_intervention"


class Step(msgspec.Struct, frozen=True, kw_only=True):
    step: str
    action: str
    command: str
    output_to: str | None = None
    on_error: OnError = OnError.FAIL
    success_criteria: str | list[str] | None = None
    timeout: float | None = DEFAULT_TIMEOUT_S
    #: None: that of the project, or of the session if the command names one of its folders.
    cwd: Literal["project", "session"] | None = None

    @property
    def session_folders(self) -> frozenset[str]:
        """The folders of the session that the command names by a relative path, as in `cat .summaries/IMPL-1.md`."""
        return frozenset(_SESSION_FOLDER.findall(self.script))

    @property
    def script(self) -> str:
        """The command without its `bash(…)`."""
        return unwrap(self.command)


def steps_of(document: Mapping[str, Any]) -> tuple[Step, ...]:
    """The steps of a valid document. A null field counts as left out."""
    flow = document.get("flow_control")
    raw = flow.get("pre_analysis") if isinstance(flow, Mapping) else None
    try:
        return tuple(
            msgspec.convert({key: value for key, value in step.items() if value is not None}, Step)
            for step in raw or ()
        )
    except (msgspec.ValidationError, AttributeError, TypeError) as error:
        raise Invalid(f"the steps of {document.get('id')!r} cannot be read: {error}") from error


def step_problems(flow_control: object, *, declared: Collection[str]) -> list[Problem]:
    """Every problem of the steps. `declared` are the names of the task's own properties."""
    if not isinstance(flow_control, Mapping):
        return [Problem(rule="flow_control", path="flow_control", message="flow_control must be an object")]
    path = "flow_control.pre_analysis"
    raw = flow_control.get("pre_analysis")
    if not isinstance(raw, list):
        return [Problem(rule="pre_analysis", path=path, message="pre_analysis must be an array of steps")]
    if len(raw) > MAX_STEPS:
        message = f"a task may have {MAX_STEPS} steps and this one has {len(raw)}"
        return [Problem(rule="pre_analysis", path=path, message=message)]
    return _Check(raw, declared).problems


class _Check:
    def __init__(self, raw: list[object], declared: Collection[str]) -> None:
        self.problems: list[Problem] = []
        self.properties = frozenset(declared)
        self.steps = raw
        self.made_by: dict[str, int] = {}
        names: dict[str, int] = {}
        for at, step in enumerate(raw):
            if isinstance(step, Mapping):
                self._unique(at, "step", step.get("step"), names)
                self._unique(at, "output_to", step.get("output_to"), self.made_by)
        self.declared = self.properties | frozenset(self.made_by)
        for at, step in enumerate(raw):
            if isinstance(step, Mapping):
                self._step(at, step)
            else:
                self._add(at, "", "step_object", "a step must be an object")

    def _add(self, at: int, key: str, rule: str, message: str, severity: Literal["error", "warning"] = "error") -> None:
        path = f"flow_control.pre_analysis[{at}]{'.' if key else ''}{key}"
        self.problems.append(Problem(rule=rule, path=path, message=message, severity=severity))

    def _unique(self, at: int, key: str, name: object, seen: dict[str, int]) -> None:
        if not isinstance(name, str):
            return
        if name in seen:
            self._add(at, key, f"duplicate_{key}", f"{cut(name, 80)!r} is already the {key} of step {seen[name]}")
        else:
            seen[name] = at

    def _step(self, at: int, step: Mapping[Any, Any]) -> None:
        for key in ("step", "action", "command"):
            value = step.get(key)
            if not isinstance(value, str) or not value.strip():
                self._add(at, key, f"step_{key}", f"{key} is needed, as a text that is not empty")
        if isinstance(step.get("command"), str) and step["command"].strip():
            self._command(at, step["command"])
        self._output(at, step.get("output_to"))
        on_error = step.get("on_error")
        if on_error is not None and on_error not in [str(each) for each in OnError]:
            message = f"{cut(str(on_error), 80)!r} is none of {', '.join(OnError)}"
            self._add(at, "on_error", "on_error", message)
        if step.get("cwd") not in (None, "project", "session"):
            self._add(at, "cwd", "cwd", "cwd is project or session")
        self._timeout(at, step.get("timeout"))
        self._criteria(at, step.get("success_criteria"))

    def _command(self, at: int, command: str) -> None:
        if not is_balanced(command):
            self._add(at, "command", "unbalanced_wrapper", "`bash(` is opened and the command does not end with `)`")
            return
        if not is_wrapped(command):
            message = "the command is not written as bash(…); it is run by bash all the same"
            self._add(at, "command", "unwrapped_command", message, "warning")
        script = unwrap(command)
        if not script.strip():
            self._add(at, "command", "step_command", "there is nothing inside bash(…)")
        self._references(at, script)

    def _references(self, at: int, script: str) -> None:
        """Report references that only a later step produces, and those at a place where no value may go."""
        used = references(script, self.declared)
        for name in dict.fromkeys(each.first for each in used):
            if name not in self.properties and self.made_by[name] >= at:
                when = "this step itself" if self.made_by[name] == at else f"step {self.made_by[name]}, a later one,"
                self._add(at, "command", "produced_later", f"[{name}] is used and {when} produces it")
        if not used:
            return
        try:
            sites = track(script, self.declared)
        except Unsure as unsure:
            message = f"where the references stand is not certain: character {unsure.position + 1}: {unsure.why}"
            self._add(at, "command", "unsafe_reference", message)
            return
        for site in sites:
            if site.why:
                message = f"[{site.name}] cannot stand at character {site.start + 1}: {site.why}"
                self._add(at, "command", "unsafe_reference", message)

    def _output(self, at: int, name: object) -> None:
        if name is None:
            return
        if not isinstance(name, str) or not IDENTIFIER.fullmatch(name):
            self._add(at, "output_to", "output_to", "output_to must be a name of letters, digits and underscores")
        elif name in self.properties:
            self._add(at, "output_to", "shadows_property", f"{name!r} is a property of the task already")

    def _timeout(self, at: int, timeout: object) -> None:
        if timeout is None:
            return
        if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout <= MAX_TIMEOUT_S:
            self._add(at, "timeout", "timeout", f"timeout is a number of seconds, more than 0, up to {MAX_TIMEOUT_S:g}")

    def _criteria(self, at: int, criteria: object) -> None:
        if criteria is None:
            return
        is_list = isinstance(criteria, list)
        for position, text in enumerate(criteria if isinstance(criteria, list) else [criteria]):
            key = f"success_criteria[{position}]" if is_list else "success_criteria"
            if not isinstance(text, str):
                self._add(at, key, "success_criteria", "a success criterion is a text")
                continue
            try:
                parse(text)
            except Invalid as invalid:
                self._add(at, key, "success_criteria", invalid.message)
