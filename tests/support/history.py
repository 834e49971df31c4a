"""Journals of sessions made of events, with the time in minutes after noon: histories for statistics and dry runs."""

from datetime import datetime, timedelta
from typing import Any, Self

import msgspec

from detent.core.actor import Actor, ActorKind, Assurance, Channel, Proof
from detent.core.checkpoint.checkpoint import CheckpointKind, Taken, Tree
from detent.core.gate import Gate
from detent.core.gate.evidence import Receipt, Result
from detent.core.session import events
from detent.core.session.events import Commit, Event, Options
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.phase_state import Report, Tokens, ToolUse, Worker
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from tests.support.values import NOON

AGENT = Actor(name="coder", kind=ActorKind.AGENT, channel=Channel.TERMINAL)


def person(name: str = "ada", assurance: Assurance = Assurance.ATTENDED) -> Actor:
    proof = Proof(assurance=assurance, method="tty", identity=name, statement="a terminal")
    return Actor(name=name, kind=ActorKind.PERSON, channel=Channel.TERMINAL, proof=proof)


def gated(**gates: tuple[Gate, ...]) -> Workflow:
    """Phases in a row, each with its gates."""
    keys = list(gates)
    phases = tuple(
        Phase(key=key, title=key.title(), needs=tuple(keys[index - 1 : index]) if index else (), gates=gates[key])
        for index, key in enumerate(keys)
    )
    return Workflow(name="trial", phases=phases)


def receipt(passed: bool = True, *, command: str = "pytest -q", inputs: str | None = "i1", **more: Any) -> Receipt:
    result = Result.PASSED if passed else Result.FAILED
    error = None if passed else "1 failed"
    return Receipt(
        result=result,
        command=command,
        exit_code=0 if passed else 1,
        error=error,
        signature=error,
        inputs=inputs,
        **more,
    )


class History:
    """A journal under construction. `minute` is the time of the next commit."""

    def __init__(
        self, graph: Workflow, *, session: str = "WFS-trial", options: Options | None = None, start: datetime = NOON
    ) -> None:
        self.commits: list[Commit] = []
        self.minute = 0.0
        self._start = start
        self._session: Session | None = None
        chosen = options or Options()
        self.add(events.SessionStarted(session=session, task="try it", workflow=graph, folder="try-it", options=chosen))

    @property
    def session(self) -> Session:
        assert self._session is not None
        return self._session

    def at(self, minute: float) -> Self:
        self.minute = minute
        return self

    def add(self, *added: Event, by: Actor = AGENT) -> Self:
        at = self._start + timedelta(minutes=self.minute)
        draft = Commit(version=len(self.commits) + 1, at=at, actor=by, events=added, state="")
        self._session = evolve(self._session, draft)
        self.commits.append(msgspec.structs.replace(draft, state=fingerprint(self._session)))
        return self

    def _attempt(self, phase: str) -> int:
        return self.session.phases[phase].attempt

    def begin(self, phase: str, tree: str | None = None) -> Self:
        attempt = self._attempt(phase) + 1
        begun = events.PhaseBegun(phase=phase, attempt=attempt, agent="coder")
        return self.add(begun, *self._checkpoint(phase, CheckpointKind.PRE, attempt, tree))

    def redo(self, phase: str) -> Self:
        later = [
            key
            for key in self.session.workflow.descendants(phase)
            if self.session.phases[key].status is not Status.PENDING
        ]
        again = events.PhaseRedone(phase=phase, attempt=self._attempt(phase) + 1, agent="coder", reason="again")
        return self.add(*(events.PhaseReset(phase=key, reason="earlier") for key in later), again)

    def fail(self, phase: str) -> Self:
        return self.add(events.PhaseFailed(phase=phase, attempt=self._attempt(phase), error="it broke"))

    def check(self, phase: str, gate: str, checked: Receipt | bool) -> Self:
        checked = receipt(checked) if isinstance(checked, bool) else checked
        return self.add(events.GateChecked(phase=phase, gate=gate, receipt=checked))

    def vote(self, phase: str, gate: str, *, by: Actor | None = None, approve: bool = True) -> Self:
        voter = by or person()
        vote = events.VoteCast(phase=phase, gate=gate, approver=voter.identity, approve=approve, reason="seen")
        return self.add(vote, by=voter)

    def approve(self, phase: str, gate: str, by: Actor | None = None) -> Self:
        return self.add(events.GateApproved(phase=phase, gate=gate, reason="trust me"), by=by or person())

    def turn(self, phase: str, agent_id: str, tokens: Tokens = Tokens(), tools: tuple[ToolUse, ...] = ()) -> Self:
        self.add(events.AgentLaunched(phase=phase, agent="coder", agent_id=agent_id))
        self.minute += 1
        report = Report(summary="done", tokens=tokens, tools=tools, worker=Worker(agent="coder", model="m-1"))
        return self.add(events.AgentEnded(phase=phase, agent_id=agent_id, succeeded=True, report=report))

    def finish(self, phase: str, tree: str | None = None, *, tokens: Tokens = Tokens()) -> Self:
        attempt = self._attempt(phase)
        done = events.PhaseFinished(phase=phase, attempt=attempt, summary="done", tokens=tokens)
        return self.add(done, *self._checkpoint(phase, CheckpointKind.POST, attempt, tree))

    def complete(self) -> Self:
        return self.add(events.SessionCompleted())

    def _checkpoint(self, phase: str, kind: CheckpointKind, attempt: int, tree: str | None) -> tuple[Event, ...]:
        if tree is None:
            return ()
        taken = Taken.STARTED if kind is CheckpointKind.PRE else Taken.SUCCESS
        name = f"{kind}_{phase}_v{attempt}"
        return (
            events.CheckpointTaken(
                id=f"{name}-{len(self.commits)}",
                name=name,
                phase=phase,
                kind=kind,
                attempt=attempt,
                taken=taken,
                tree=Tree(manifest=tree, files=1, bytes=1),
            ),
        )
