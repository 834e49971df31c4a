"""The scope: looks up the values of references, and renders them as text.

A missing value is an error that names the variable. Only a skipped step has an empty output.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any

import msgspec

from detent.core.flow.reference import CONTEXT_FIELDS, META_FIELDS, TOP_FIELDS, Reference, find, task_properties
from detent.core.lazy import lazy
from detent.errors import Refused

_LISTS = ("requirements", "focus_paths", "acceptance", "depends_on")
_INHERITED = ("from", "context")


class SessionFacts(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    dir: str
    phase: str | None = None


class Missing(msgspec.Struct, frozen=True, kw_only=True):
    """A name that is declared and has no value."""

    name: str
    why: str

    def refusal(self) -> Refused:
        return Refused(f"[{self.name}] has no value: {self.why}")


class Scope(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The task's document, the outputs of its steps so far, and the session.

    `files` has the path of the file with the whole output, by its name: the value of `[name.file]`.
    """

    task: Mapping[str, Any]
    session: SessionFacts
    outputs: Mapping[str, str] = {}
    dependency_summaries: Mapping[str, str] = {}
    files: Mapping[str, str] = {}

    @lazy
    def produced(self) -> dict[str, str]:
        """The outputs that the task's steps declare, with the step that makes each."""
        flow = self.task.get("flow_control")
        steps = flow.get("pre_analysis") if isinstance(flow, Mapping) else None
        steps_by_output = dict.fromkeys(self.outputs, "")
        for step in steps if isinstance(steps, list) else []:
            name = step.get("output_to") if isinstance(step, Mapping) else None
            if isinstance(name, str):
                steps_by_output[name] = str(step.get("step"))
        return steps_by_output

    @lazy
    def declared(self) -> frozenset[str]:
        return task_properties(self.task) | frozenset(self.produced)

    def lookup(self, reference: Reference) -> Any:
        """The value, or `Missing`: an output of a step, else a field of the task, else one of the session."""
        first, *rest = reference.path
        if first in self.produced:
            return self._output(reference, first, rest)
        if first == "dependency_summaries":
            return self._summaries(reference, rest)
        context, meta = self._part("context"), self._part("meta")
        if first in context or first in CONTEXT_FIELDS:
            value = context.get(first)
            if value is None:
                return self._absent(reference, first, rest)
        elif first in TOP_FIELDS:
            value = self.task.get(first)
        elif first in meta or first in META_FIELDS:
            value = meta.get(first)
        elif first in ("context", "meta"):
            value = self._part(first)
        else:
            value = msgspec.to_builtins(self.session)
        return _walk(reference, value, rest)

    def _part(self, name: str) -> Mapping[str, Any]:
        part = self.task.get(name)
        return part if isinstance(part, Mapping) else {}

    def _output(self, reference: Reference, first: str, rest: list[str]) -> str | Missing:
        if first not in self.outputs:
            step = self.produced[first]
            return Missing(name=reference.name, why=f"step {step!r}, which puts it out, has not run")
        if not rest:
            return self.outputs[first]
        return self._file(reference, first, rest)

    def _file(self, reference: Reference, first: str, rest: list[str]) -> str | Missing:
        if rest != ["file"]:
            return Missing(name=reference.name, why=f"[{first}] is text; it has no {'.'.join(rest)!r}, only 'file'")
        if first not in self.files:
            return Missing(name=reference.name, why=f"[{first}] was not put in a file")
        return self.files[first]

    def _summaries(self, reference: Reference, rest: list[str]) -> str | Missing:
        if rest:
            return self._file(reference, reference.first, rest)
        return "\n\n".join(
            f"## Summary of {task}\n\n{text.strip()}" for task, text in self.dependency_summaries.items()
        )

    def _absent(self, reference: Reference, first: str, rest: list[str]) -> Any:
        """The value of an optional field that is left out; a key that is not declared is `Missing`."""
        if not rest:
            return [] if first in _LISTS else None
        if first == "inherited" and len(rest) == 1 and rest[0] in _INHERITED:
            return [] if rest[0] == "context" else None
        return Missing(name=reference.name, why=f"the task has no {first}")


def _walk(reference: Reference, value: Any, rest: list[str]) -> Any:
    at = reference.first
    for key in rest:
        if isinstance(value, Mapping):
            if key not in value:
                return Missing(name=reference.name, why=f"{at} has no {key!r}")
            value = value[key]
        elif isinstance(value, list):
            if not key.isdigit() or int(key) >= len(value):
                return Missing(name=reference.name, why=f"{at} is a list of {len(value)} and has no {key!r}")
            value = value[int(key)]
        else:
            return Missing(name=reference.name, why=f"{at} is no object or list, so it has no {key!r}")
        at = f"{at}.{key}"
    return value


def plain(value: Any) -> str:
    """A value as text: null is empty, an object or a nested list is compact JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def joined_text(value: Any, separator: str | None) -> str:
    """A list joined by `separator`, or as shell words if that is None; any other value as text."""
    if not isinstance(value, list):
        return plain(value)
    items = [plain(item) for item in value]
    return shlex.join(items) if separator is None else separator.join(items)


def is_in_file_list(text: str, reference: Reference) -> bool:
    """True inside `@{…}`, where an agent's command line lists files."""
    opened = text.rfind("@{", 0, reference.start)
    return opened >= 0 and "}" not in text[opened : reference.start] and "}" in text[reference.end :]


def render_text(text: str, scope: Scope) -> str:
    """Prose with its references replaced. A value is not searched for references."""
    made: list[str] = []
    at = 0
    for match in find(text, scope.declared):
        reference = match.reference
        if match.escaped:
            made.append(text[at : reference.start - 1])
            at = reference.start
            continue
        value = scope.lookup(reference)
        if isinstance(value, Missing):
            raise value.refusal()
        made += text[at : reference.start], joined_text(value, "," if is_in_file_list(text, reference) else ", ")
        at = reference.end
    return "".join([*made, text[at:]])
