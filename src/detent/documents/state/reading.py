"""Reads a session from a state document of any writer.

Fields of the active workflow come before top-level ones, and the status map before the phase records. Legacy phase keys
are replaced by their present names.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from math import isfinite
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.session.commands import Import, Start
from detent.core.session.decide import decide_import
from detent.core.session.events import Commit, ImportedPhase, Options, PhasesImported, Supervised
from detent.core.session.evolve import evolve
from detent.core.session.session import Session
from detent.core.session.slug import session_id
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow, problems
from detent.core.workflow.phase_key import normalize_phase_key
from detent.core.workflow.roles import PHASE_AGENTS
from detent.documents.state.rules import version_of
from detent.documents.state.shape import Document, mapping, mapping_at, number, sequence
from detent.documents.state.stamp import parse_stamp
from detent.errors import Invalid

#: The keys that Detent writes itself, in the document and in its active workflow. Other keys are carried.
_OWN = frozenset(
    {"state_version", "current_phase", "active_agent", "active_workflow", "phases", "phase_artifacts", "history"}
    | {"workflow_history"}
)
_OWN_WORKFLOW = frozenset(
    {"type", "session_id", "description", "started_at", "phases", "current_phase", "current_phase_index"}
    | {"phase_status", "gate_mode", "artifact_prefix", "artifact_folder", "counter_used", "git_branch", "agents"}
    | {"activation", "journal"}
)
_TWO_DIGITS = re.compile("[0-9]{2}")
_STATUSES = ("pending", "in_progress", "completed", "failed")
#: The document does not name its author.
_READER = Actor(name="", kind=ActorKind.AGENT, channel=Channel.LIBRARY)


def read(doc: object) -> Session:
    """The session of the document, at its version; `Invalid` with all reasons."""
    command = imported(doc, source="the state document")
    at = command.imported.started_at or datetime.fromtimestamp(0, UTC)
    session = evolve(None, Commit(version=1, at=at, actor=_READER, events=decide_import(command), state=""))
    # The import is a commit of its own, so the document is one version earlier.
    return replace(session, base=command.start.base - session.version)


def plain_phase(key: str, needs: tuple[str, ...]) -> Phase:
    return Phase(key=key, title=key, agent=PHASE_AGENTS.get(key, ""), needs=needs)


def imported(
    doc: object,
    *,
    source: str,
    taken: tuple[str, ...] = (),
    phase: Callable[[str, tuple[str, ...]], Phase] = plain_phase,
) -> Import:
    """The command that imports the document; `phase` makes the phase of a key."""
    _check_storable(doc, source)
    document, flow = mapping(doc), mapping(mapping(doc).get("active_workflow"))
    keys = [key for key in map(normalize_phase_key, sequence(flow.get("phases"))) if isinstance(key, str)]
    keys = list(dict.fromkeys(keys))
    if not keys:
        raise Invalid(f"{source} has no active workflow with phases, so there is nothing to import")
    workflow = _workflow(flow, [phase(key, tuple(keys[at - 1 : at])) for at, key in enumerate(keys)], source)
    phases = {key: _phase(document, flow, key) for key in keys}
    _check_order(keys, phases, source)
    task = _text(flow.get("description")) or _text(flow.get("artifact_folder")) or "imported work"
    name = session_id(_text(flow.get("artifact_folder")) or task, taken)
    return Import(
        start=Start(
            session=name,
            task=task,
            workflow=workflow,
            number=_whole(flow.get("counter_used")),
            folder=_text(flow.get("artifact_folder")) or name.removeprefix("WFS-"),
            branch=_text(mapping(flow.get("git_branch")).get("name")) or None,
            base=max(0, _whole(version_of(document)) or 0),
            options=Options(supervised=supervised(document)),
        ),
        imported=PhasesImported(
            source=source,
            started_at=parse_stamp(flow.get("started_at")),
            phases=phases,
            carried=_carried(document, flow),
        ),
    )


def _check_storable(doc: object, source: str) -> None:
    try:
        msgspec.json.encode(doc)
    except (TypeError, ValueError, RecursionError) as error:
        raise Invalid(f"{source} has a value that JSON cannot hold: {error}") from error


def _workflow(flow: Document, phases: list[Phase], source: str) -> Workflow:
    workflow = Workflow(
        name=_text(flow.get("type")) or "imported",
        prefix=_text(flow.get("artifact_prefix")) or None,
        phases=tuple(phases),
    )
    wrong = problems(workflow)
    if wrong:
        raise Invalid(f"the phases of {source} make no workflow", wrong)
    return workflow


def _phase(document: Document, flow: Document, key: str) -> ImportedPhase:
    record = mapping(_lookup(mapping(document.get("phases")), key))
    status = _status(document, flow, record, key)
    started = parse_stamp(record.get("started"))
    retries = _whole(mapping(record.get("timing")).get("retries")) or 0
    return ImportedPhase(
        status=str(status),
        started=started,
        completed=parse_stamp(record.get("completed")),
        gate_passed=parse_stamp(record.get("gate_passed")),
        attempt=0 if status is Status.PENDING and started is None else 1 + max(0, retries),
        summary=_text(record.get("summary"))[:150] or None,
        artifacts=_artifacts(document, record, key),
    )


def _artifacts(document: Document, record: Document, key: str) -> tuple[str, ...]:
    """The artifacts in the phase's record; older documents have them in a map of their own."""
    older = mapping(document.get("phase_artifacts"))
    listed = sequence(record.get("artifacts")) or sequence(_lookup(older, key))
    return tuple(path for path in listed if isinstance(path, str))


def _status(document: Document, flow: Document, record: Document, key: str) -> Status:
    current = normalize_phase_key(flow.get("current_phase") or document.get("current_phase"))
    words = (_lookup(mapping(flow.get("phase_status")), key), record.get("status"))
    status = next((Status(word) for word in words if word in _STATUSES), Status.PENDING)
    # The current phase is in progress even if the writer left it pending.
    return Status.IN_PROGRESS if key == current and status is Status.PENDING else status


def _lookup(entries: Document, key: str) -> object:
    """The value of the key, else of a legacy name of it."""
    if key in entries:
        return entries[key]
    return next((value for name, value in entries.items() if normalize_phase_key(name) == key), None)


def _check_order(keys: list[str], phases: dict[str, ImportedPhase], source: str) -> None:
    wrong = [
        f"{key} is {phases[key].status} although {previous} before it is {phases[previous].status}"
        for previous, key in pairwise(keys)
        if phases[key].status != "pending" and phases[previous].status != "completed"
    ]
    if wrong:
        raise Invalid(f"{source} contradicts itself", wrong, way_out="correct the statuses and import it again")


def _carried(document: Document, flow: Document) -> dict[str, dict[str, Any]]:
    return {
        "document": {key: value for key, value in document.items() if key not in _OWN},
        "active_workflow": {key: value for key, value in flow.items() if key not in _OWN_WORKFLOW},
    }


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    parsed = number(value)
    return int(parsed) if parsed is not None and isfinite(parsed) else None


def supervised(doc: object) -> Supervised | None:
    """The supervision that the document asks for; None unless it is enabled by a literal true.

    Entries that are no two digits are dropped; none left stand for all phases.
    """
    mode = mapping_at(doc, "supervised_mode")
    if mode.get("enabled") is not True:
        return None
    phases = (entry for entry in sequence(mode.get("review_phases")) if isinstance(entry, str))
    return Supervised(phases=tuple(phase for phase in phases if _TWO_DIGITS.fullmatch(phase)))
