"""The awaitable checkpoint interface of the seed documents. Each method runs the engine's code in a thread.

A checkpoint is a position in the journal and the present files, so its state is computed and never taken from the
caller. `create` compares the values that it gets with the computed ones.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from detent.compat.checkpoint_claim import Claim, differences, file_differences, note, with_rest
from detent.compat.checkpoint_values import (
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
from detent.core.path_text import to_text
from detent.core.session.decide_checkpoint import current
from detent.core.session.decide_phase import known_phase
from detent.core.session.status import Status
from detent.documents.checkpoint import Position, document, file_name, summary
from detent.engine.projections.publish import UNREADABLE, encode
from detent.errors import Conflict, Corrupt, NotFound, Refused

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

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
        claim = Claim(CheckpointType(type), state, agent_states, artifacts, governance)
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

    def _create(self, phase: str, claim: Claim) -> Checkpoint:
        handle = self._project.session(claim.state.run_id)
        session = handle.state
        key = known_phase(session, phase)
        post = _last_post(handle, key) if claim.type is CheckpointType.POST else None
        owner = checkpoint_id(session.id, self._project.clock(), "belief")
        captured = self._project.checkpoints.capture(owner, session, store=False)
        problems = [*differences(claim, session, key), *file_differences(claim, captured.files)]
        if post is not None and self._project.checkpoints.files(post.event.tree.manifest) != captured.files:
            problems.append(f"files have changed since {post.event.name} was taken")
        if post is None and key not in (current(session), *session.in_progress):
            problems.append(f"the present belongs to {current(session)}, not to {key}")
        if problems:
            raise Refused(f"{key} of {session.id} is not as the caller says: {'; '.join(problems)}")
        if post is not None:
            return with_rest(claim, self._load(post.event.id))
        taken = handle.checkpoints.take(note(claim, session), phase=key)
        gone = list(file_differences(claim, self._project.checkpoints.files(taken.tree.manifest)))
        if gone or taken.phase != key:
            raise Conflict(
                f"{taken.name} was taken, but the project changed meanwhile: {'; '.join(gone) or taken.phase}"
            )
        return with_rest(claim, self._load(taken.id))

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


def _last_post(handle: "SessionHandle", key: str) -> Position:
    status = handle.state.phases[key].status
    if status not in (Status.COMPLETED, Status.FAILED):
        raise Refused(f"{key} is {status}, and only a phase that has ended has a POST", way_out=f"finish or fail {key}")
    for position in reversed(handle.checkpoints.all()):
        if position.event.phase == key and position.event.kind is CheckpointType.POST:
            return position
    raise NotFound(f"no checkpoint was taken when {key} ended", way_out='set capture = "tree" under [checkpoint]')


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
