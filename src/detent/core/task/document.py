"""The task document as plain data with six keys: creates and checks it. Unknown keys are kept and allowed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from detent.core.limits import check_text
from detent.core.problem import Problem
from detent.core.task.assignment import AGENTS, agent_for
from detent.core.task.form import focus_problem, target_problem
from detent.core.task.id import id_problem, is_too_deep, parse_id, read_id
from detent.core.task.row import REASON_KEYS, TaskStatus, TaskType
from detent.errors import Invalid

KEYS = ("id", "title", "status", "meta", "context", "flow_control")
MAX_TITLE = 1_000
_STEP_KEYS = ("step", "action", "command")


def new_document(  # noqa: PLR0913 - one per key of the document
    id: str,  # noqa: A002 - the key's name
    title: str,
    *,
    type: str = "feature",  # noqa: A002 - the key's name
    agent: str | None = None,
    requirements: Sequence[str] = (),
    focus_paths: Sequence[str] = (),
    acceptance: Sequence[str] = (),
    depends_on: Sequence[str] = (),
    inherited: Sequence[str] = (),
    shared_context: Mapping[str, Any] | None = None,
    description: str = "",
    target_files: Sequence[str] = (),
) -> dict[str, Any]:
    """The document of a pending task. The id gives the parent, and title and type the default agent."""
    own = parse_id(id)
    parent = str(own.parent) if own.parent else None
    title = check_text("a task title", " ".join(title.split()), MAX_TITLE)
    if type not in list(TaskType):
        raise Invalid(f"type {_shown(type)} is none of {', '.join(TaskType)}")
    return {
        "id": str(own),
        "title": title,
        "status": TaskStatus.PENDING.value,
        "meta": {"type": str(type), "agent": agent_for(explicit=agent, title=title, type=type)},
        "context": {
            "requirements": list(requirements),
            "focus_paths": list(focus_paths),
            "acceptance": list(acceptance),
            "parent": parent,
            "depends_on": [str(parse_id(other)) for other in depends_on],
            "inherited": {"from": parent, "context": list(inherited)} if parent else None,
            "shared_context": dict(shared_context or {}),
        },
        "flow_control": {
            "pre_analysis": [],
            "implementation_approach": {"task_description": description, "modification_points": [], "logic_flow": []},
            "target_files": list(target_files),
        },
    }


def document_problems(document: object, *, stem: str | None = None) -> list[Problem]:
    """Every problem of one document; `stem` is the name of its file without `.json`, if it has one."""
    if not isinstance(document, dict):
        return [_problem("required-keys", "", "a task must be a JSON object")]
    context, flow = document.get("context", {}), document.get("flow_control", {"pre_analysis": []})
    own = str(document.get("id"))
    return [
        *(_problem("required-keys", key, f"{key} is missing") for key in KEYS if key not in document),
        *_head_problems(document, stem),
        *_meta_problems(document),
        *_bookkeeping_problems(document),
        *(_context_problems(context, own) if isinstance(context, dict) else [_no_object("context")]),
        *(_flow_problems(flow) if isinstance(flow, dict) else [_no_object("flow_control")]),
    ]


def _head_problems(document: dict[str, Any], stem: str | None) -> Iterator[Problem]:
    own, title, status = document.get("id", ""), document.get("title", "-"), document.get("status", "pending")
    if "id" in document:
        yield from _id_problems(own, stem)
    if not isinstance(title, str) or not title.strip():
        yield _problem("title", "title", "title must be a text that is not empty")
    elif title.splitlines() != [title]:
        yield _problem("title", "title", "title must be one line")
    if status not in list(TaskStatus):
        yield _problem("status", "status", f"status {_shown(status)} is none of {', '.join(TaskStatus)}")


def _id_problems(own: object, stem: str | None) -> Iterator[Problem]:
    if not isinstance(own, str):
        yield _problem("id-form", "id", f"id {_shown(own)} must be a text")
        return
    if read_id(own) is None:
        yield _problem("depth" if is_too_deep(own) else "id-form", "id", f"id {_shown(own)}: {id_problem(own)}")
    elif own != own.upper():
        yield _problem("id-form", "id", f"id {_shown(own)} must be upper case: {own.upper()}")
    if stem is not None and own != stem:
        yield _problem("file-name", "id", f"id {_shown(own)} is in a file named {_shown(stem)}")


def _meta_problems(document: dict[str, Any]) -> Iterator[Problem]:
    meta = document.get("meta", {})
    if not isinstance(meta, dict):
        yield _no_object("meta")
        return
    kind, agent = meta.get("type", "feature"), meta.get("agent", "code-developer")
    if kind not in list(TaskType):
        yield _problem("type", "meta.type", f"type {_shown(kind)} is none of {', '.join(TaskType)}")
    if not isinstance(agent, str) or not agent.strip():
        yield _problem("agent", "meta.agent", "agent must be the name of an agent")
    elif agent not in AGENTS:
        known = ", ".join(AGENTS)
        message = f"agent {_shown(agent)} is none of {known}"
        yield _problem("agent", "meta.agent", message, severity="warning")


def _bookkeeping_problems(document: dict[str, Any]) -> Iterator[Problem]:
    version, execution = document.get("version", 1), document.get("execution", {})
    if not _is_count(version, least=1):
        yield _problem("bookkeeping", "version", f"version {_shown(version)} must be a number from 1")
    if not isinstance(execution, dict):
        yield _problem("bookkeeping", "execution", "execution must be an object")
        return
    if not _is_count(execution.get("attempts", 0), least=0):
        yield _problem("bookkeeping", "execution.attempts", "attempts must be a number from 0")
    for key in REASON_KEYS.values():
        if not isinstance(execution.get(key, ""), str | None):
            yield _problem("bookkeeping", f"execution.{key}", f"{key} must be a text")


def _context_problems(context: dict[str, Any], own: str) -> Iterator[Problem]:
    for key in ("requirements", "acceptance"):
        yield from _list_problems(context, key, f"context.{key}", rule="lists")
    yield from _list_problems(context, "focus_paths", "context.focus_paths", rule="focus-paths")
    for at, path in _texts(context, "focus_paths"):
        if problem := focus_problem(path):
            yield _problem("focus-paths", f"context.focus_paths[{at}]", f"{_shown(path)} {problem}")
    yield from _parent_problems(context, own)
    yield from _list_problems(context, "depends_on", "context.depends_on", rule="depends-on")
    yield from _dependency_problems(context, own)
    yield from _inherited_problems(context, own)
    if not isinstance(context.get("shared_context", {}), dict | None):
        yield _problem("inherited", "context.shared_context", "shared_context must be an object")


def _parent_problems(context: dict[str, Any], own: str) -> Iterator[Problem]:
    id_, parent = read_id(own), context.get("parent")
    if id_ is None:
        return
    if id_.parent is None and parent is not None:
        yield _problem("parent", "context.parent", f"{own} is a main task and has no parent")
    elif id_.parent is not None and read_id(parent) != id_.parent:
        message = f"parent {_shown(parent)} of {own} must be {id_.parent}"
        yield _problem("parent", "context.parent", message)


def _dependency_problems(context: dict[str, Any], own: str) -> Iterator[Problem]:
    own_id, seen = read_id(own), set()
    for at, text in _texts(context, "depends_on"):
        path, other = f"context.depends_on[{at}]", read_id(text)
        if other is None:
            yield _problem("depends-on", path, f"{_shown(text)}: {id_problem(text)}")
            continue
        if other in seen:
            yield _problem("depends-on", path, f"{other} is named twice", severity="warning")
        seen.add(other)
        if own_id is not None and (reason := kinship(str(own_id), str(other))):
            yield _problem("depends-on", path, reason)


def kinship(own: str, other: str) -> str | None:
    """The reason why a task cannot depend on itself, its parent or its parts; None for any other task."""
    if own == other:
        return f"{own} depends on itself"
    if own.startswith(f"{other}."):
        return f"{own} depends on {other}, its own parent"
    return f"{own} depends on {other}, its own subtask" if other.startswith(f"{own}.") else None


def _inherited_problems(context: dict[str, Any], own: str) -> Iterator[Problem]:
    inherited, id_ = context.get("inherited"), read_id(own)
    if inherited is None:
        return
    if not isinstance(inherited, dict):
        yield _problem("inherited", "context.inherited", "inherited must be an object")
        return
    source = inherited.get("from")
    if id_ is not None and (read_id(source) if source is not None else None) != id_.parent:
        message = f"inherited.from {_shown(source)} of {own} must be {id_.parent or 'null'}"
        yield _problem("inherited", "context.inherited.from", message)
    yield from _list_problems(inherited, "context", "context.inherited.context", rule="inherited")


def _flow_problems(flow: dict[str, Any]) -> Iterator[Problem]:
    steps = flow.get("pre_analysis")
    if not isinstance(steps, list):
        yield _problem("pre-analysis", "flow_control.pre_analysis", "pre_analysis must be a list of steps")
    for at, step in enumerate(steps if isinstance(steps, list) else ()):
        path = f"flow_control.pre_analysis[{at}]"
        if not isinstance(step, dict):
            yield _problem("pre-analysis", path, "a step must be an object")
            continue
        for key in _STEP_KEYS:
            if not isinstance(step.get(key), str):
                yield _problem("pre-analysis", f"{path}.{key}", f"a step needs {key}, a text")
    approach = flow.get("implementation_approach", {})
    if not isinstance(approach, dict | str | None):
        message = "implementation_approach must be an object"
        yield _problem("approach", "flow_control.implementation_approach", message)
    elif isinstance(approach, dict):
        for key in ("modification_points", "logic_flow"):
            yield from _list_problems(approach, key, f"flow_control.implementation_approach.{key}", rule="approach")
    yield from _list_problems(flow, "target_files", "flow_control.target_files", rule="target-files")
    for at, target in _texts(flow, "target_files"):
        if problem := target_problem(target):
            path = f"flow_control.target_files[{at}]"
            yield _problem("target-files", path, f"{_shown(target)} {problem}")


def _list_problems(owner: dict[str, Any], key: str, path: str, *, rule: str) -> Iterator[Problem]:
    texts = owner.get(key, [])
    if not isinstance(texts, list):
        yield _problem(rule, path, f"{key} must be a list of texts")
        return
    for at, text in enumerate(texts):
        if not isinstance(text, str):
            yield _problem(rule, f"{path}[{at}]", f"{_shown(text)} must be a text")


def _texts(owner: dict[str, Any], key: str) -> list[tuple[int, str]]:
    """The texts of a list with their places; `_list_problems` reports anything else."""
    texts = owner.get(key)
    return [(at, text) for at, text in enumerate(texts) if isinstance(text, str)] if isinstance(texts, list) else []


def _is_count(value: object, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _no_object(key: str) -> Problem:
    return _problem("required-keys", key, f"{key} must be an object")


def _problem(rule: str, path: str, message: str, severity: Literal["error", "warning"] = "error") -> Problem:
    return Problem(rule=rule, path=path, message=message, severity=severity)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
