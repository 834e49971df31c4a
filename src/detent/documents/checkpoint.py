"""The checkpoint documents: `checkpoints/index.json`, and one file for each checkpoint of a run.

Both are projections of the journal and the manifests. Only the end of the index is read back.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec

from detent.config.place import CHECKPOINTS
from detent.core.actor import Actor, spoken_as
from detent.core.checkpoint.checkpoint import Taken
from detent.core.checkpoint.manifest import Entry
from detent.core.gate import Gate
from detent.core.gate.evidence import Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.path_text import to_text
from detent.core.session.events import CheckpointTaken, RolledBack
from detent.core.session.phase_state import PhaseState
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.state.writing import current_phase, stamp

INDEX = f"{CHECKPOINTS}/index.json"
#: Maximum number of agents in one document. Earlier ones are in earlier documents.
MAX_AGENT_STATES = 20
#: Maximum number of phases in one document, with their artifacts.
MAX_STATUSES = 100

_NOTHING = msgspec.Raw()
_AGENT_STATUS = {
    Status.PENDING: "pending",
    Status.IN_PROGRESS: "running",
    Status.COMPLETED: "complete",
    Status.FAILED: "failed",
    Status.SKIPPED: "pending",
}


class Position(NamedTuple):
    """A checkpoint with its journal position."""

    event: CheckpointTaken
    version: int
    at: datetime
    actor: Actor
    #: The rollback of the same commit, if any.
    rollback: RolledBack | None = None


def file_name(session: str, name: str) -> str:
    return f"{CHECKPOINTS}/run-{session}/{name}.json"


def summary(session: str, position: Position) -> dict[str, Any]:
    """The entry of the checkpoint in the index."""
    event = position.event
    return {
        "id": event.id,
        "name": event.name,
        "run_id": session,
        "phase": event.phase,
        "type": event.kind.value,
        "version": event.attempt,
        "outcome": event.taken.value,
        "created_at": stamp(position.at),
        "parent_checkpoint_id": event.parent,
        "files": event.tree.files,
        "size_bytes": event.tree.bytes,
        "left_out": event.tree.left_out,
        "note": event.note,
        "file": f"run-{session}/{event.name}.json",
    }


class EncodedAgents:
    """Encodes the agents of a session for many checkpoints, with a cache: few phases change between two of them."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[PhaseState, msgspec.Raw]] = {}

    def __call__(self, session: Session) -> dict[str, msgspec.Raw]:
        agents = {}
        for key, state in _latest(session):
            before, encoded = self._known.get(key, (None, _NOTHING))
            if before is not state:
                encoded = msgspec.Raw(msgspec.json.encode(_agent_state(state)))
                self._known[key] = state, encoded
            agents[f"{state.agent or 'agent'}@{key}"] = encoded
        return agents


def document(
    session: Session,
    position: Position,
    files: Mapping[str, Entry],
    agents: Callable[[Session], Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """The document of the checkpoint; `session` is the one after its commit, `files` those of its manifest."""
    event = position.event
    state = session.phases[event.phase]
    statuses = phase_statuses(session, event.phase)
    return {
        "id": event.id,
        "phase": event.phase,
        "type": event.kind.value,
        "version": event.attempt,
        "created_at": stamp(position.at),
        "duration_ms": _duration_ms(state, event, position.at),
        "orchestrator_state": {
            "run_id": session.id,
            "current_phase": current_phase(session),
            "completed_phases": [key for key, status in statuses.items() if status is Status.COMPLETED],
            "intake_summary": {
                "task": session.task,
                "workflow": session.workflow.name,
                "folder": session.folder,
                "started_at": stamp(session.started_at),
            },
            "phase_status": statuses,
            **_left_out(session, statuses),
        },
        "agent_states": (agents or agent_states)(session),
        "artifacts": _artifacts(session, statuses, files),
        "governance_results": governance(session, event.phase),
        "parent_checkpoint_id": event.parent,
        "metadata": _metadata(session, state, position),
        "tree": {
            "manifest": event.tree.manifest,
            "files": event.tree.files,
            "size_bytes": event.tree.bytes,
            "left_out": event.tree.left_out,
        },
    }


def phase_statuses(session: Session, phase: str) -> dict[str, Status]:
    """The status of each phase; in a long session only of those near `phase`, to bound the size of all documents."""
    total = len(session.phases)
    first = max(0, min(session.workflow.rank[phase] - MAX_STATUSES // 2, total - MAX_STATUSES))
    return session.phases.statuses(first, min(total, first + MAX_STATUSES))


def _left_out(session: Session, statuses: Mapping[str, Status]) -> dict[str, int]:
    if len(statuses) == len(session.phases):
        return {}
    return {"all_phases": len(session.phases), "all_completed": session.phases.count(Status.COMPLETED)}


def agent_states(session: Session) -> dict[str, dict[str, Any]]:
    """`agent@phase` to the state of the agent, for the phases begun last."""
    return {f"{state.agent or 'agent'}@{key}": _agent_state(state) for key, state in _latest(session)}


def _latest(session: Session) -> list[tuple[str, PhaseState]]:
    """The phases begun last, in graph order."""
    phases = session.phases
    begun = ((key, state) for key in phases.latest() if (state := phases[key]).attempt)
    rank = session.workflow.rank
    return sorted(islice(begun, MAX_AGENT_STATES), key=lambda phase: rank[phase[0]])


def _agent_state(state: PhaseState) -> dict[str, Any]:
    return {
        "status": _AGENT_STATUS[state.status],
        "token_usage": {"input": state.tokens.input, "output": state.tokens.output},
        "cost": state.tokens.cost,
        "tool_invocations": [msgspec.to_builtins(tool) for tool in state.tools],
        "tool_invocations_dropped": state.tools_dropped,
        "delegations": [msgspec.to_builtins(delegation) for delegation in state.delegations],
        "summary": state.summary or state.error or "",
    }


def governance(session: Session, phase: str) -> dict[str, Any]:
    """The verdicts on the gates of the phase, with their evidence."""
    gates = session.gates(phase)
    quality = [_gate_result(session, phase, gate) for gate in gates if not gate.is_compliance]
    compliance = [_gate_result(session, phase, gate) for gate in gates if gate.is_compliance]
    passed = all(result["verdict"] == Verdict.PASS for result in (*quality, *compliance))
    return {"quality_gates": quality, "compliance_checks": compliance, "passed": passed}


def _gate_result(session: Session, phase: str, gate: Gate) -> dict[str, Any]:
    judgement = judge_recorded(session, phase, gate)
    at_gate = session.phases[phase].at_gate(judgement.gate)
    receipt = at_gate.receipt
    return {
        "gate": judgement.gate,
        "kind": judgement.kind,
        "verdict": str(judgement.verdict),
        "iterations": at_gate.iterations,
        "command": receipt.command if receipt else None,
        "exit_code": receipt.exit_code if receipt else None,
        "coverage": receipt.coverage if receipt else None,
        "inputs": receipt.inputs if receipt else None,
        "error": receipt.error if receipt else None,
        "tests": msgspec.to_builtins(receipt.tests) if receipt and receipt.tests else None,
        "lost_tests": dict(receipt.lost) if receipt else {},
        "ran_by": str(receipt.by) if receipt else None,
        "ran_as": (receipt.account or None) if receipt else None,
        "ran_on": (receipt.host or None) if receipt else None,
        "approved_by": at_gate.approved_by,
        "approval_reason": at_gate.approval_reason or None,
        "approval_assurance": str(at_gate.approval_assurance) if at_gate.approved_by is not None else None,
        "votes": {
            spoken_as(who, vote.stands_for): {
                "approve": vote.approve,
                "reason": vote.reason,
                "assurance": str(vote.assurance),
                "key": vote.key or None,
            }
            for who, vote in at_gate.votes.items()
        },
    }


def _artifacts(session: Session, phases: Iterable[str], files: Mapping[str, Entry]) -> dict[str, dict[str, Any]]:
    """The artifacts of these phases, with hash and size in the manifest."""
    if not files:
        return {}
    declared = dict.fromkeys(path for key in phases for path in session.phases[key].artifacts)
    return {
        to_text(path): {"path": to_text(path), "hash": files[path].digest, "size_bytes": files[path].size}
        for path in declared
        if path in files
    }


def _metadata(session: Session, state: PhaseState, position: Position) -> dict[str, Any]:
    event = position.event
    metadata: dict[str, Any] = {
        "name": event.name,
        "outcome": event.taken.value,
        "journal_version": position.version,
        "taken_by": position.actor.shown,
        "workflow": session.workflow.digest,
    }
    if event.note:
        metadata["note"] = event.note
    if event.taken is Taken.FAILED:
        metadata["error"] = state.error
    if event.taken is Taken.APPROVED:
        metadata["approvals"] = {
            name: {
                "by": [spoken_as(who, vote.stands_for) for who, vote in at_gate.votes.items() if vote.approve]
                or [at_gate.approved_by],
                "at": stamp(max((vote.at for vote in at_gate.votes.values()), default=None)),
            }
            for name, at_gate in state.gates.items()
            if at_gate.votes or at_gate.approved_by
        }
    if event.taken is Taken.ROLLBACK and position.rollback is not None:
        metadata["rollback_from"] = position.rollback.safety
        metadata["rolled_back_to"] = position.rollback.to
        metadata["replaced_checkpoint"] = position.rollback.source
    return metadata


def _duration_ms(state: PhaseState, event: CheckpointTaken, at: datetime) -> int:
    """The duration of the attempt so far; 0 for the PRE of its begin."""
    if state.begun is None or event.taken is Taken.ROLLBACK or event.attempt != state.attempt:
        return 0
    return round((at - state.begun).total_seconds() * 1000)
