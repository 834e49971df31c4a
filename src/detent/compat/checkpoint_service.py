"""The awaitable checkpoint interface of the seed documents. Each method runs the engine's code in a thread.

A checkpoint is a position in the journal and the present files, so its state is computed and never taken from the
caller. `create` compares the values that it gets with the computed ones.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from detent.core.checkpoint.checkpoint import CheckpointKind, checkpoint_id
from detent.core.checkpoint.compare import CheckpointDiff
from detent.core.checkpoint.manifest import Manifest
from detent.core.path_text import to_text
from detent.core.session.decide_checkpoint import current
from detent.core.session.decide_phase import known_phase
from detent.core.session.phase_state import ToolUse
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import Position, agent_states, document, file_name, governance, phase_statuses, summary
from detent.documents.state.writing import current_phase
from detent.engine.projections.publish import UNREADABLE, encode
from detent.errors import Conflict, Corrupt, NotFound, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

CheckpointType = CheckpointKind
ToolInvocation = ToolUse


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    pass


class OrchestratorState(_Record, frozen=True, kw_only=True):
    """The state of the session."""

    run_id: str
    current_phase: str | None = None
    completed_phases: tuple[str, ...] = ()
    intake_summary: dict[str, Any] = {}
    phase_status: dict[str, str] = {}
    #: Totals, where a long session lists only the phases around the checkpoint.
    all_phases: int | None = None
    all_completed: int | None = None


class TokenUsage(_Record, frozen=True, kw_only=True):
    input: int = 0
    output: int = 0


class AgentState(_Record, frozen=True, kw_only=True):
    """The work of an agent in a phase; its key is `agent@phase`."""

    #: pending, running, complete or failed.
    status: str
    token_usage: TokenUsage = TokenUsage()
    tool_invocations: tuple[ToolInvocation, ...] = ()
    summary: str = ""
    cost: float = 0.0
    tool_invocations_dropped: int = 0
    delegations: tuple[dict[str, Any], ...] = ()


class ArtifactInfo(_Record, frozen=True, kw_only=True):
    path: str
    #: SHA-256 of the content.
    hash: str
    size_bytes: int


class GateResult(_Record, frozen=True, kw_only=True):
    """The verdict on a gate of the phase, and its evidence."""

    gate: str
    #: PASS, FAIL, ERROR or PENDING.
    verdict: str
    kind: str = ""
    iterations: int = 0
    command: str | None = None
    exit_code: int | None = None
    coverage: float | None = None
    inputs: str | None = None
    error: str | None = None
    approved_by: str | None = None
    approval_reason: str | None = None
    votes: dict[str, dict[str, Any]] = {}


ComplianceResult = GateResult


class GovernanceResults(_Record, frozen=True, kw_only=True):
    quality_gates: tuple[GateResult, ...] = ()
    compliance_checks: tuple[ComplianceResult, ...] = ()
    passed: bool


class TreeInfo(_Record, frozen=True, kw_only=True):
    """The files of the checkpoint: digest of their manifest, number and size."""

    manifest: str
    files: int
    size_bytes: int
    left_out: int


class Checkpoint(_Record, frozen=True, kw_only=True):
    id: str
    phase: str
    type: CheckpointType
    #: The attempt of the phase; a rollback does not reset it.
    version: int
    created_at: datetime
    duration_ms: int
    orchestrator_state: OrchestratorState
    agent_states: dict[str, AgentState]
    #: Declared files by path.
    artifacts: dict[str, ArtifactInfo]
    governance_results: GovernanceResults
    parent_checkpoint_id: str | None
    metadata: dict[str, Any]
    tree: TreeInfo
    #: What `create` was given and the checkpoint does not hold, a sentence each. Not part of the file.
    not_stored: tuple[str, ...] = ()


class CheckpointSummary(_Record, frozen=True, kw_only=True):
    """A checkpoint as an entry of the index."""

    id: str
    name: str
    run_id: str
    phase: str
    type: CheckpointType
    version: int
    outcome: str
    created_at: datetime
    parent_checkpoint_id: str | None
    files: int
    size_bytes: int
    left_out: int
    note: str
    file: str


_decode = msgspec.json.Decoder(Checkpoint).decode


class CheckpointService:
    """The checkpoints of one project. Any number of tasks of an event loop may share it."""

    def __init__(self, project: "Project") -> None:
        self._project = project

    async def create(
        self,
        phase: str,
        type: CheckpointType,  # noqa: A002 - the name of the interface
        state: OrchestratorState,
        agent_states: Mapping[str, AgentState],
        artifacts: Mapping[str, ArtifactInfo],
        governance: GovernanceResults,
    ) -> Checkpoint:
        """A checkpoint of the present session `state.run_id`.

        PRE: takes a new checkpoint, while `phase` is in progress or was the last one in progress. POST: a phase cannot
        end without one, so this returns the POST of its last attempt if the files are still the same.

        The values must match the computed ones: run, current and completed phases, status, tokens and tools of agents
        in the journal, verdicts of gates, and path, hash and size of artifacts, which must be among the captured files.
        Otherwise `Refused` lists every difference and no checkpoint is taken. The usage of an agent whose attempt has
        not ended is not in the journal yet; it becomes the note of the checkpoint. Sub-agents are known by the
        delegations of their phase. What the checkpoint does not hold of the values is told in `not_stored`.
        """
        claim = _Claim(CheckpointType(type), state, agent_states, artifacts, governance)
        return await asyncio.to_thread(self._create, phase, claim)

    async def load(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint from its file.

        `Corrupt` if the file differs from the journal, or if the content of a file of the checkpoint is missing or does
        not have its SHA-256; the message names it.
        """
        return await asyncio.to_thread(self._load, checkpoint_id)

    async def rollback(self, checkpoint_id: str) -> None:
        """Roll back to the checkpoint; see `SessionCheckpoints.rollback`."""
        await asyncio.to_thread(self._rollback, checkpoint_id)

    async def list_for_run(self, run_id: str) -> list[CheckpointSummary]:
        """Every checkpoint of the session, oldest first. No file content is read."""
        return await asyncio.to_thread(self._list, run_id)

    async def compare(self, checkpoint_a: str, checkpoint_b: str) -> CheckpointDiff:
        """The difference from `a` to `b`. They may be of different sessions; then `same_run` is False."""
        return await asyncio.to_thread(self._compare, checkpoint_a, checkpoint_b)

    def _create(self, phase: str, claim: "_Claim") -> Checkpoint:
        handle = self._project.session(claim.state.run_id)
        session = handle.state
        key = known_phase(session, phase)
        post = _last_post(handle, key) if claim.type is CheckpointType.POST else None
        owner = checkpoint_id(session.id, self._project.clock(), "belief")
        captured = self._project.checkpoints.capture(owner, session, store=False)
        problems = [*_differences(claim, session, key), *_file_differences(claim, captured.files)]
        if post is not None and self._project.checkpoints.files(post.event.tree.manifest) != captured.files:
            problems.append(f"files have changed since {post.event.name} was taken")
        if post is None and key not in (current(session), *session.with_status(Status.IN_PROGRESS)):
            problems.append(f"the present belongs to {current(session)}, not to {key}")
        if problems:
            raise Refused(f"{key} of {session.id} is not as the caller says: {'; '.join(problems)}")
        if post is not None:
            return _with_rest(claim, self._load(post.event.id))
        taken = handle.checkpoints.take(_note(claim, session), phase=key)
        gone = list(_file_differences(claim, self._project.checkpoints.files(taken.tree.manifest)))
        if gone or taken.phase != key:
            raise Conflict(
                f"{taken.name} was taken, but the project changed meanwhile: {'; '.join(gone) or taken.phase}"
            )
        return _with_rest(claim, self._load(taken.id))

    def _load(self, name: str) -> Checkpoint:
        session, position = self._find(name)
        checkpoints = self._project.checkpoints
        files = checkpoints.files(position.event.tree.manifest)
        expected = document(checkpoints.past(session, position), position, files)
        path = file_name(session, position.event.name)
        data = self._project.store.get(path)
        if data is None:
            self._project.touched(session)
            self._project.flush()
            data = self._project.store.get(path)
        checkpoint = _decoded(path, data, expected)
        for inside, entry in files.items():
            try:
                checkpoints.objects.check(entry.digest)
            except Corrupt as error:
                raise Corrupt(
                    f"{to_text(inside)} of {position.event.name} cannot be restored: {error.message}",
                    way_out=error.way_out,
                ) from error
        return checkpoint

    def _rollback(self, name: str) -> None:
        session, position = self._find(name)
        self._project.session(session).checkpoints.rollback(position.event.id)
        self._project.flush()

    def _list(self, run_id: str) -> list[CheckpointSummary]:
        session = self._project.session(run_id).id
        lines = [summary(session, position) for position in self._project.checkpoints.positions(session)]
        return msgspec.convert(lines, list[CheckpointSummary])

    def _compare(self, a: str, b: str) -> CheckpointDiff:
        from detent.engine.checkpoints.comparison import Comparison  # noqa: PLC0415 - only comparing needs it

        (first, before), (second, after) = self._find(a), self._find(b)
        return Comparison(self._project, first, before.event.id, after.event.id, other=second).diff

    def _find(self, name: str) -> tuple[str, Position]:
        """The session that has the checkpoint, and its position; the active session is searched first."""
        active = self._project.active()
        sessions = sorted(self._project.store.sessions(), key=lambda session: session != active)
        for session in sessions:
            # A damaged session does not hide the checkpoints of the others.
            with suppress(Corrupt):
                for position in self._project.checkpoints.positions(session):
                    if position.event.id == name:
                        return session, position
        raise NotFound(f"no session has a checkpoint {name[:80]!r}", way_out="detent checkpoint list")


class _Claim(msgspec.Struct, frozen=True):
    """The values that the caller of `create` passed."""

    type: CheckpointType
    state: OrchestratorState
    agents: Mapping[str, AgentState]
    artifacts: Mapping[str, ArtifactInfo]
    governance: GovernanceResults


def _last_post(handle: "SessionHandle", key: str) -> Position:
    status = handle.state.phases[key].status
    if status not in (Status.COMPLETED, Status.FAILED):
        raise Refused(f"{key} is {status}, and only a phase that has ended has a POST", way_out=f"finish or fail {key}")
    for position in reversed(handle.checkpoints.all()):
        if position.event.phase == key and position.event.kind is CheckpointType.POST:
            return position
    raise NotFound(f"no checkpoint was taken when {key} ended", way_out='set capture = "tree" under [checkpoint]')


def _differences(claim: _Claim, session: Session, key: str) -> Iterator[str]:
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


def _agent_differences(claim: _Claim, session: Session) -> Iterator[str]:
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


def _with_rest(claim: _Claim, checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, with what it does not hold of the caller's values."""
    note = checkpoint.metadata.get("note", "")
    rest = []
    for agent, state in claim.agents.items():
        held = checkpoint.agent_states.get(agent)
        if held is None:
            rest.append(f"agent {agent}: it is kept as a delegation of its phase, without tokens, tools and summary")
            continue
        if (held.token_usage, held.tool_invocations) != (state.token_usage, state.tool_invocations):
            where = "its usage is in the note" if f"{agent}: " in note else "its usage is that of the journal"
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


def _file_differences(claim: _Claim, files: Manifest) -> Iterator[str]:
    by_text = {to_text(path): entry for path, entry in files.items()} if claim.artifacts else {}
    for name, info in claim.artifacts.items():
        entry = by_text.get(info.path)
        if entry is None:
            yield f"artifact {name[:200]}: {info.path[:200]} is not among the captured files"
        elif entry.digest != info.hash:
            yield f"artifact {name[:200]}: {info.path[:200]} has SHA-256 {entry.digest}, not {info.hash[:64]}"
        elif entry.size != info.size_bytes:
            yield f"artifact {name[:200]}: {info.path[:200]} has {entry.size} bytes, not {info.size_bytes}"


def _note(claim: _Claim, session: Session) -> str:
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


def _decoded(path: str, data: bytes | None, expected: dict[str, Any]) -> Checkpoint:
    """The document; `Corrupt` if it differs from the journal."""
    wanted = encode(expected)
    if data == wanted:
        return _decode(data)
    if data is None:
        raise Corrupt(f"{path} is missing and cannot be written", way_out="detent doctor --fix")
    way_out = "detent doctor --fix rebuilds it"
    try:
        present = msgspec.json.decode(data, type=dict[str, Any])
        _decode(data)
    except UNREADABLE as error:
        raise Corrupt(f"{path} is no checkpoint: {error}", way_out=way_out) from error
    computed = msgspec.json.decode(wanted)
    for name, info in computed["artifacts"].items():
        if present["artifacts"].get(name) != info:
            raise Corrupt(f"{path} differs from the journal in artifact {name}", way_out=way_out)
    keys = [key for key in dict.fromkeys((*computed, *present)) if computed.get(key) != present.get(key)]
    raise Corrupt(
        f"{path} was changed: it differs from the journal in {', '.join(keys) or 'its form'}", way_out=way_out
    )
