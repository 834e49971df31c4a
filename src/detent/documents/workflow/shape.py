"""The workflow document `workflow.json`: its phases with their agents, statuses, deliverables and context.

All functions take a document and return a new one. The status of the workflow is computed from its phases at each
change, so the two cannot disagree. The document has no times, percentages or counters.
"""

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal

import msgspec

from detent.core.session.session import Session, SessionStatus
from detent.core.session.status import Status
from detent.errors import Corrupt, Invalid, NotFound, Refused

Document = dict[str, Any]

STATUSES = ("pending", "active", "completed", "failed")
ID = re.compile(r"wf_\d{8}_\d{6}")

#: Legal transitions. All others are refused.
_TRANSITIONS = {("pending", "active"), ("active", "completed"), ("active", "failed"), ("failed", "active")}
#: Also legal with `force`: a phase is redone, or ended without a start.
_FORCED = {("completed", "active"), ("pending", "completed"), ("pending", "failed")}


def workflow_id(at: datetime) -> str:
    return f"wf_{at:%Y%m%d_%H%M%S}"


def new(id_: str, task: str, phases: Iterable[Any]) -> Document:
    """A new document. `phases` are pairs of title and agent, or objects with these two fields."""
    listed = list(phases)
    problems = [] if isinstance(task, str) and task.strip() else ["the task is empty"]
    if not listed:
        problems.append("it has no phases")
    pairs = [_pair(phase) for phase in listed]
    problems += [
        f"phase_{index} needs a title and an agent, and is {phase!r:.100}"
        for index, (phase, pair) in enumerate(zip(listed, pairs, strict=True))
        if pair is None
    ]
    if problems:
        raise Invalid("the workflow cannot be created", problems)
    return {
        "id": id_,
        "task": task,
        "status": "pending",
        "current_phase": None,
        "phases": [phase_entry(index, *pair) for index, pair in enumerate(pairs) if pair],
    }


def phase_entry(index: int, title: str, agent: str) -> Document:
    return {
        "id": f"phase_{index}",
        "title": title,
        "agent": agent,
        "status": "pending",
        "deliverables": [],
        "context_for_next": "",
    }


def with_phase_status(
    workflow: Document,
    phase_id: str,
    status: str,
    *,
    deliverables: Sequence[str] | None = None,
    context_for_next: str | None = None,
    advance: bool = True,
    force: bool = False,
) -> Document:
    """The document with another status of one phase. None keeps a field as it is."""
    workflow = copy.deepcopy(workflow)
    phase = _phase(workflow, phase_id)
    _check_fields(status, deliverables, context_for_next)
    before = phase["status"]
    if before != status:
        _check_transition(phase_id, before, status, force=force)
    phase["status"] = status
    if deliverables is not None:
        phase["deliverables"] = list(deliverables)
    if context_for_next is not None:
        phase["context_for_next"] = context_for_next
    if before != status:
        _move(workflow, phase_id, status, advance=advance)
    workflow["status"] = status_of(workflow["phases"])
    return workflow


def status_of(phases: Sequence[Mapping[str, Any]]) -> str:
    statuses = {phase["status"] for phase in phases}
    if "failed" in statuses:
        return "failed"
    return statuses.pop() if statuses in ({"pending"}, {"completed"}) else "active"


def check(workflow: object) -> Document:
    """The document that was read; `Corrupt` if it is not valid."""
    try:
        msgspec.convert(workflow, _Workflow)
    except msgspec.ValidationError as error:
        raise Corrupt(f"the workflow document is not valid: {error}") from error
    assert isinstance(workflow, dict)
    ids = [phase["id"] for phase in workflow["phases"]]
    if ids != [f"phase_{index}" for index in range(len(ids))]:
        raise Corrupt(f"the workflow document has the phases {', '.join(ids)}, which are not numbered from phase_0")
    if workflow["current_phase"] not in (None, *ids):
        raise Corrupt(f"the workflow document is at {workflow['current_phase']}, which is none of its phases")
    return workflow


class _Phase(msgspec.Struct):
    id: str
    title: str
    agent: str
    status: Literal["pending", "active", "completed", "failed"]
    deliverables: list[str]
    context_for_next: str


class _Workflow(msgspec.Struct):
    id: str
    task: str
    status: Literal["pending", "active", "completed", "failed"]
    current_phase: str | None
    phases: list[_Phase]


def _pair(phase: Any) -> tuple[str, str] | None:
    match phase:
        case {"title": str(title), "agent": str(agent)} | [str(title), str(agent)] if title.strip() and agent.strip():
            return title, agent
    return None


def _phase(workflow: Document, phase_id: str) -> Document:
    for phase in workflow["phases"]:
        if phase["id"] == phase_id:
            return phase  # type: ignore[no-any-return]
    known = ", ".join(phase["id"] for phase in workflow["phases"])
    raise NotFound(f"workflow {workflow['id']} has no phase {phase_id!r}; its phases are {known}")


def _check_fields(status: object, deliverables: object, context: object) -> None:
    problems = []
    if status not in STATUSES:
        problems.append(f"status {status!r:.100} is none of {', '.join(STATUSES)}")
    is_list = isinstance(deliverables, list | tuple) and all(isinstance(each, str) for each in deliverables)
    if deliverables is not None and not is_list:
        problems.append(f"deliverables must be a list of texts, not {deliverables!r:.100}")
    if context is not None and not isinstance(context, str):
        problems.append(f"the context for the next phase must be a text, not {context!r:.100}")
    if problems:
        raise Invalid("the phase cannot be updated", problems)


def _check_transition(phase_id: str, before: str, after: str, *, force: bool) -> None:
    if (before, after) in _TRANSITIONS or (force and (before, after) in _FORCED):
        return
    allowed = [to for origin, to in sorted(_TRANSITIONS) if origin == before]
    forced = (before, after) in _FORCED
    raise Refused(
        f"phase {phase_id} is {before} and can become {' or '.join(allowed) or 'nothing else'}, not {after}",
        way_out="use force" if forced else None,
    )


def _move(workflow: Document, phase_id: str, status: str, *, advance: bool) -> None:
    """Set the current phase after `phase_id` changed to `status`."""
    phases = workflow["phases"]
    current = next((phase for phase in phases if phase["id"] == workflow["current_phase"]), None)
    if all(phase["status"] == "completed" for phase in phases):
        workflow["current_phase"] = None
    elif status != "completed":
        # A phase that starts or fails does not replace a current phase that is not completed.
        if current is None or current["status"] == "completed":
            workflow["current_phase"] = phase_id
    elif current is None or current["id"] == phase_id:
        workflow["current_phase"] = _next(phases, advance=advance) or phase_id


def _next(phases: list[Document], *, advance: bool) -> str | None:
    """The phase after a completed one: a failed one, else an active one, else the next pending one."""
    for wanted in ("failed", "active"):
        for phase in phases:
            if phase["status"] == wanted:
                return str(phase["id"])
    if advance:
        for phase in phases:
            if phase["status"] == "pending":
                phase["status"] = "active"
                return str(phase["id"])
    return None


# The workflow document of a session

_SESSION_STATUS = {
    Status.PENDING: "pending",
    Status.IN_PROGRESS: "active",
    Status.COMPLETED: "completed",
    Status.FAILED: "failed",
}


def from_session(session: Session) -> dict[str, Any]:
    """The workflow document of a session, without skipped phases. A cancelled session is a failed workflow."""
    phases = [_session_phase(session, index, key) for index, key in enumerate(session.active_order)]
    return {
        "id": workflow_id(session.started_at + timedelta(seconds=session.id_later_s)),
        "task": session.task,
        "status": _session_status(session, phases),
        "current_phase": _current_phase(session, phases),
        "phases": phases,
    }


def _session_phase(session: Session, index: int, key: str) -> dict[str, Any]:
    state = session.phases[key]
    return {
        "id": f"phase_{index}",
        "title": session.workflow.by_key[key].title or key,
        "agent": state.agent,
        "status": _SESSION_STATUS[state.status],
        "deliverables": list(state.deliverables),
        "context_for_next": state.context,
    }


def _session_status(session: Session, phases: list[dict[str, Any]]) -> str:
    match session.status:
        case SessionStatus.COMPLETED:
            return "completed"
        case SessionStatus.CANCELLED:
            return "failed"
        case SessionStatus.ACTIVE:
            return status_of(phases) if phases else "active"


def _current_phase(session: Session, phases: list[dict[str, Any]]) -> str | None:
    """The first active phase, else the first failed one; None between two phases."""
    if session.has_ended:
        return None
    for wanted in ("active", "failed"):
        for phase in phases:
            if phase["status"] == wanted:
                return str(phase["id"])
    return None


# Views of the document. Neither is read back.


def generate_markdown(workflow: Document) -> str:
    current = [phase["title"] for phase in workflow["phases"] if phase["id"] == workflow["current_phase"]]
    lines = [
        f"# Workflow Status: {_flat(workflow['task'])}",
        "",
        f"Status: {workflow['status']} | Current Phase: {_flat(current[0]) if current else 'none'}",
        "",
        "## Phases",
        "",
        *(_line(index, phase) for index, phase in enumerate(workflow["phases"])),
    ]
    return "\n".join(lines) + "\n"


def todos(workflow: Document) -> list[dict[str, str]]:
    """The todo list of an agent's client: one entry a phase. A failed phase is pending."""
    return [
        {
            "content": phase["title"],
            "status": {"active": "in_progress", "completed": "completed"}.get(phase["status"], "pending"),
            "activeForm": f"Working on {phase['title']}",
        }
        for phase in workflow["phases"]
    ]


def _line(index: int, phase: Document) -> str:
    mark = "x" if phase["status"] == "completed" else " "
    failed = " (failed)" if phase["status"] == "failed" else ""
    delivered = ", ".join(_flat(each) for each in phase["deliverables"])
    return f"- [{mark}] Phase {index}: {_flat(phase['title'])}{failed}{f' → {delivered}' if delivered else ''}"


def _flat(text: str) -> str:
    """The text on one line, so that it cannot end its heading or list entry."""
    return " ".join(line.strip() for line in text.splitlines() if line.strip())
