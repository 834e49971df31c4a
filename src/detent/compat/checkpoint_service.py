"""Checkpoints behind an awaitable interface. Each method does its work in a thread, with the code that all else uses.

State is computed here, never handed in: a checkpoint is a position in the journal and the files as they are. What a
caller hands to `create` is therefore what it believes, and is held against what is so.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from detent.compat.checkpoint_record import (
    AgentState,
    ArtifactInfo,
    Checkpoint,
    CheckpointSummary,
    CheckpointType,
    GovernanceResults,
    OrchestratorState,
)
from detent.core.checkpoint.checkpoint import checkpoint_id
from detent.core.checkpoint.compare import CheckpointDiff
from detent.core.checkpoint.manifest import Manifest
from detent.core.path_text import to_text
from detent.core.session.decide_checkpoint import current
from detent.core.session.decide_phase import known_phase
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.documents.checkpoint import Position, agent_states, document, file_name, governance, phase_statuses, summary
from detent.documents.state.writing import current_phase
from detent.engine.projections.publish import UNREADABLE, encode
from detent.errors import Conflict, Corrupt, NotFound, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

__all__ = [
    "AgentState",
    "ArtifactInfo",
    "Checkpoint",
    "CheckpointService",
    "CheckpointSummary",
    "CheckpointType",
    "GovernanceResults",
    "OrchestratorState",
]
_decode = msgspec.json.Decoder(Checkpoint).decode


class CheckpointService:
    """The checkpoints of one project, for tasks of an event loop. Any number of them may use one."""

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
        """A checkpoint of the present of the session `state.run_id`.

        PRE: a new one is taken, while `phase` is in progress or the last that was. POST: a phase cannot end without
        one, so it is there; given is that of the phase's last attempt, if its files are still those of the present.

        Whatever is handed in must be so: run, current and completed phases, status, tokens and tools of agents that the
        journal knows, verdicts of gates, and path, hash and size of artifacts, which must be among the files that are
        taken. Otherwise `Refused` names every difference and nothing is taken. What an agent used in an attempt that
        has not ended is not in the journal yet; it is kept as the note of the checkpoint.
        """
        given = _Given(CheckpointType(type), state, agent_states, artifacts, governance)
        return await asyncio.to_thread(self._create, phase, given)

    async def load(self, checkpoint_id: str) -> Checkpoint:
        """The checkpoint from its file.

        `Corrupt` if that is not what the journal says, or if the content of any file of the checkpoint is missing or
        does not have its SHA-256; the message names which.
        """
        return await asyncio.to_thread(self._load, checkpoint_id)

    async def rollback(self, checkpoint_id: str) -> None:
        """Go back to the checkpoint; see `SessionCheckpoints.rollback`."""
        await asyncio.to_thread(self._rollback, checkpoint_id)

    async def list_for_run(self, run_id: str) -> list[CheckpointSummary]:
        """Every checkpoint of the session, oldest first. No file content is read."""
        return await asyncio.to_thread(self._list, run_id)

    async def compare(self, checkpoint_a: str, checkpoint_b: str) -> CheckpointDiff:
        """What separates `b` from `a`. They may be of different sessions; `same_run` tells."""
        return await asyncio.to_thread(self._compare, checkpoint_a, checkpoint_b)

    def _create(self, phase: str, given: "_Given") -> Checkpoint:
        handle = self._project.session(given.state.run_id)
        session = handle.state
        key = known_phase(session, phase)
        post = _last_post(handle, key) if given.type is CheckpointType.POST else None
        owner = checkpoint_id(session.id, self._project.clock(), "belief")
        captured = self._project.checkpoints.capture(owner, session, store=False)
        problems = [*_differences(given, session, key), *_file_differences(given, captured.files)]
        if post is not None and self._project.checkpoints.files(post.event.tree.manifest) != captured.files:
            problems.append(f"files have changed since {post.event.name} was taken")
        if post is None and key not in (current(session), *session.with_status(Status.IN_PROGRESS)):
            problems.append(f"the present belongs to {current(session)}, not to {key}")
        if problems:
            raise Refused(f"{key} of {session.id} does not stand as the caller says: {'; '.join(problems)}")
        if post is not None:
            return self._load(post.event.id)
        taken = handle.checkpoints.take(_note(given, session), phase=key)
        gone = list(_file_differences(given, self._project.checkpoints.files(taken.tree.manifest)))
        if gone or taken.phase != key:
            raise Conflict(
                f"{taken.name} was taken, but the project changed meanwhile: {'; '.join(gone) or taken.phase}"
            )
        return self._load(taken.id)

    def _load(self, name: str) -> Checkpoint:
        session, position = self._find(name)
        checkpoints = self._project.checkpoints
        files = checkpoints.files(position.event.tree.manifest)
        expected = document(checkpoints.past(session, position), position, files)
        path = file_name(session, position.event.name)
        found = self._project.store.get(path)
        if found is None:
            self._project.touched(session)
            self._project.flush()
            found = self._project.store.get(path)
        checkpoint = _decoded(path, found, expected)
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
        """The session that has the checkpoint, and where it is; the active one is looked at first."""
        active = self._project.active()
        sessions = sorted(self._project.store.sessions(), key=lambda session: session != active)
        for session in sessions:
            for position in self._project.checkpoints.positions(session):
                if position.event.id == name:
                    return session, position
        raise NotFound(f"no session has a checkpoint {name[:80]!r}", way_out="detent checkpoint list")


class _Given(msgspec.Struct, frozen=True):
    """What the caller of `create` believes."""

    type: CheckpointType
    state: OrchestratorState
    agents: Mapping[str, AgentState]
    artifacts: Mapping[str, ArtifactInfo]
    governance: GovernanceResults


def _last_post(handle: "SessionHandle", key: str) -> Position:
    status = handle.state.phases[key].status
    if status not in (Status.COMPLETED, Status.FAILED):
        raise Refused(f"{key} is {status}, and a POST is of a phase that has ended", way_out=f"finish or fail {key}")
    for position in reversed(handle.checkpoints.all()):
        if position.event.phase == key and position.event.kind is CheckpointType.POST:
            return position
    raise NotFound(f"no checkpoint was taken when {key} ended", way_out='set capture = "tree" under [checkpoint]')


def _differences(given: _Given, session: Session, key: str) -> Iterator[str]:
    state = given.state
    if state.current_phase != current_phase(session):
        yield f"current_phase is {current_phase(session)}, not {state.current_phase}"
    completed = session.with_status(Status.COMPLETED)
    told = {phase for phase, status in phase_statuses(session, key).items() if status is Status.COMPLETED}
    if set(state.completed_phases) not in (set(completed), told):
        yield f"completed_phases is [{', '.join(completed)}], not [{', '.join(state.completed_phases)}]"
    intake = {"task": session.task, "workflow": session.workflow.name, "folder": session.folder}
    for name, value in state.intake_summary.items():
        if name in intake and intake[name] != value:
            yield f"intake_summary.{name} is {intake[name]!r}, not {value!r}"
    yield from _agent_differences(given, session)
    so = governance(session, key)
    if given.governance.passed != so["passed"]:
        yield f"governance passed is {so['passed']}, not {given.governance.passed}"
    for kind in ("quality_gates", "compliance_checks"):
        verdicts = {one["gate"]: one["verdict"] for one in so[kind]}
        for result in getattr(given.governance, kind):
            if verdicts.get(result.gate) != result.verdict:
                yield f"gate {result.gate} is {verdicts.get(result.gate, 'unknown')}, not {result.verdict}"


def _agent_differences(given: _Given, session: Session) -> Iterator[str]:
    known = agent_states(session)
    for agent, state in given.agents.items():
        so = known.get(agent)
        if so is None:
            yield f"no agent {agent[:80]} was begun; there are {', '.join(known) or 'none'}"
        elif so["status"] != state.status:
            yield f"agent {agent} is {so['status']}, not {state.status}"
        elif so["status"] != "running" and _told(state) != _recorded(so):
            yield f"agent {agent} used {_words(*_recorded(so))}, not {_words(*_told(state))}"


def _told(state: AgentState) -> tuple[int, int, int]:
    return state.token_usage.input, state.token_usage.output, len(state.tool_invocations)


def _recorded(state: Mapping[str, Any]) -> tuple[int, int, int]:
    return state["token_usage"]["input"], state["token_usage"]["output"], len(state["tool_invocations"])


def _words(read: int, written: int, tools: int) -> str:
    return f"{read} input and {written} output tokens and {tools} tools"


def _file_differences(given: _Given, files: Manifest) -> Iterator[str]:
    by_text = {to_text(path): entry for path, entry in files.items()} if given.artifacts else {}
    for name, info in given.artifacts.items():
        entry = by_text.get(info.path)
        if entry is None:
            yield f"artifact {name[:200]}: {info.path[:200]} is not among the files that are taken"
        elif entry.digest != info.hash:
            yield f"artifact {name[:200]}: {info.path[:200]} has SHA-256 {entry.digest}, not {info.hash[:64]}"
        elif entry.size != info.size_bytes:
            yield f"artifact {name[:200]}: {info.path[:200]} has {entry.size} bytes, not {info.size_bytes}"


def _note(given: _Given, session: Session) -> str:
    """What agents at work have used so far, which the journal will only know when they end."""
    known = agent_states(session)
    return "; ".join(
        f"{agent}: {_words(*_told(state))}"
        + (
            f" ({', '.join(dict.fromkeys(tool.tool for tool in state.tool_invocations))})"
            if state.tool_invocations
            else ""
        )
        for agent, state in given.agents.items()
        if _told(state) != _recorded(known[agent])
    )


def _decoded(path: str, found: bytes | None, expected: dict[str, Any]) -> Checkpoint:
    """The document, once it is seen to be what the journal says."""
    wanted = encode(expected)
    if found == wanted:
        return _decode(found)
    if found is None:
        raise Corrupt(f"{path} is missing and cannot be written", way_out="detent doctor --fix")
    try:
        there = msgspec.json.decode(found, type=dict[str, Any])
        _decode(found)
    except UNREADABLE as error:
        raise Corrupt(f"{path} is no checkpoint: {error}", way_out="detent doctor --fix rebuilds it") from error
    so = msgspec.json.decode(wanted)
    for name, info in so["artifacts"].items():
        if there["artifacts"].get(name) != info:
            raise Corrupt(
                f"{path} does not say of artifact {name} what the journal does",
                way_out="detent doctor --fix rebuilds it",
            )
    odd = [key for key in dict.fromkeys((*so, *there)) if so.get(key) != there.get(key)]
    raise Corrupt(
        f"{path} was changed: {', '.join(odd) or 'its form'} is not what the journal says",
        way_out="detent doctor --fix rebuilds it",
    )
