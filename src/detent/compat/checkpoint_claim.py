"""Compares what a caller says about a session with its journal and its files."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from detent.compat.checkpoint_values import (
    AgentState,
    ArtifactInfo,
    Checkpoint,
    CheckpointType,
    GovernanceResults,
    OrchestratorState,
)
from detent.core.checkpoint.manifest import Manifest
from detent.core.path_text import to_text
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import agent_states, governance, phase_statuses
from detent.documents.state.writing import current_phase


class Claim(msgspec.Struct, frozen=True):
    """The values that the caller of `create` passed."""

    type: CheckpointType
    state: OrchestratorState
    agents: Mapping[str, AgentState]
    artifacts: Mapping[str, ArtifactInfo]
    governance: GovernanceResults


def differences(claim: Claim, session: Session, key: str) -> Iterator[str]:
    state = claim.state
    if state.current_phase != current_phase(session):
        yield f"current_phase is {current_phase(session)}, not {state.current_phase}"
    completed = session.with_status(Status.COMPLETED)
    listed = {phase for phase, status in phase_statuses(session, key).items() if status is Status.COMPLETED}
    if set(state.completed_phases) not in (set(completed), listed):
        yield f"completed_phases is [{', '.join(completed)}], not [{', '.join(state.completed_phases)}]"
    intake = {"task": session.task, "workflow": session.workflow.name, "folder": session.folder}
    for name, value in state.intake_summary.items():
        if name in intake and intake[name] != value:
            yield f"intake_summary.{name} is {intake[name]!r}, not {value!r}"
    yield from _agent_differences(claim, session)
    judged = governance(session, key)
    if claim.governance.passed != judged["passed"]:
        yield f"governance passed is {judged['passed']}, not {claim.governance.passed}"
    for kind in ("quality_gates", "compliance_checks"):
        verdicts = {gate["gate"]: gate["verdict"] for gate in judged[kind]}
        for result in getattr(claim.governance, kind):
            if verdicts.get(result.gate) != result.verdict:
                yield f"gate {result.gate} is {verdicts.get(result.gate, 'unknown')}, not {result.verdict}"


def _agent_differences(claim: Claim, session: Session) -> Iterator[str]:
    known = agent_states(session)
    for agent, state in claim.agents.items():
        actual = known.get(agent)
        if actual is None and (status := _delegated(session, agent)) is not None:
            if status != state.status:
                yield f"agent {agent[:80]} is {status}, not {state.status}"
        elif actual is None:
            yield f"no agent {agent[:80]} was started; there are {', '.join(known) or 'none'}"
        elif actual["status"] != state.status:
            yield f"agent {agent} is {actual['status']}, not {state.status}"
        elif actual["status"] != "running" and _claimed(state) != _recorded(actual):
            yield f"agent {agent} used {_words(*_recorded(actual))}, not {_words(*_claimed(state))}"


def _delegated(session: Session, agent: str) -> str | None:
    """The status of a sub-agent, by its name or `name@phase`; None if none was launched."""
    name, _, phase = agent.partition("@")
    keys = [phase] if phase in session.phases else [] if phase else list(session.phases)
    launched = [entry for key in keys for entry in session.phases[key].delegations if entry.agent == name]
    if not launched:
        return None
    last = max(launched, key=lambda entry: entry.launched_at)
    return "running" if last.ended_at is None else "complete" if last.succeeded else "failed"


def with_rest(claim: Claim, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, with what it does not hold of the caller's values."""
    kept = checkpoint.metadata.get("note", "")
    rest = []
    for agent, state in claim.agents.items():
        held = checkpoint.agent_states.get(agent)
        if held is None:
            rest.append(f"agent {agent}: it is kept as a delegation of its phase, without tokens, tools and summary")
            continue
        if (held.token_usage, held.tool_invocations) != (state.token_usage, state.tool_invocations):
            where = "its usage is in the note" if f"{agent}: " in kept else "its usage is that of the journal"
            rest.append(f"agent {agent}: {where}")
        if state.summary and state.summary != held.summary:
            rest.append(f"agent {agent}: its summary, which is recorded when its phase ends")
    paths = {info.path for info in checkpoint.artifacts.values()}
    for name, info in claim.artifacts.items():
        if info.path not in paths:
            rest.append(f"artifact {name}: {info.path} is among the files, but no phase declares it as an artifact")
        elif name not in checkpoint.artifacts:
            rest.append(f"artifact {name}: its name; it is listed as {info.path}")
    return msgspec.structs.replace(checkpoint, not_stored=tuple(rest))


def _claimed(state: AgentState) -> tuple[int, int, int]:
    return state.token_usage.input, state.token_usage.output, len(state.tool_invocations)


def _recorded(state: Mapping[str, Any]) -> tuple[int, int, int]:
    return state["token_usage"]["input"], state["token_usage"]["output"], len(state["tool_invocations"])


def _words(read: int, written: int, tools: int) -> str:
    return f"{read} input and {written} output tokens and {tools} tools"


def file_differences(claim: Claim, files: Manifest) -> Iterator[str]:
    by_text = {to_text(path): entry for path, entry in files.items()} if claim.artifacts else {}
    for name, info in claim.artifacts.items():
        entry = by_text.get(info.path)
        if entry is None:
            yield f"artifact {name[:200]}: {info.path[:200]} is not among the captured files"
        elif entry.digest != info.hash:
            yield f"artifact {name[:200]}: {info.path[:200]} has SHA-256 {entry.digest}, not {info.hash[:64]}"
        elif entry.size != info.size_bytes:
            yield f"artifact {name[:200]}: {info.path[:200]} has {entry.size} bytes, not {info.size_bytes}"


def note(claim: Claim, session: Session) -> str:
    """The usage of running agents, which enters the journal only when they end."""
    known = agent_states(session)
    return "; ".join(
        f"{agent}: {_words(*_claimed(state))}"
        + (
            f" ({', '.join(dict.fromkeys(tool.tool for tool in state.tool_invocations))})"
            if state.tool_invocations
            else ""
        )
        for agent, state in claim.agents.items()
        if agent in known and _claimed(state) != _recorded(known[agent])
    )
