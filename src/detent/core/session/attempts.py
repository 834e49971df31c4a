"""Collects the attempts of a session from its journal. The state of a session has only the last one of each phase."""

from collections.abc import Iterable
from datetime import datetime
from typing import assert_never

import msgspec
from msgspec.structs import replace

from detent.core.gate.evidence import Receipt
from detent.core.session import events
from detent.core.session.events import Commit, Event, PhasesImported
from detent.core.session.phase_state import Tokens

#: Events that neither begin nor end an attempt, and are no part of its record.
_OUTSIDE = (
    (events.TaskEvent | events.QuestionEvent | events.EscalationEvent | events.QuestionAnswered | events.VoteCast)
    | (events.GateApproved | events.PhaseReviewed | events.AgentEnded | events.CheckpointTaken | events.ComplexitySet)
    | (events.SessionStarted | events.SessionPaused | events.SessionResumed | events.SessionReopened)
    | (
        events.SessionArchived
        | events.RunOptionsSet
        | events.DocumentAdopted
        | events.RecordEvent
        | events.BaselineEvent
    )
)


class FailedCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A run for a gate that did not pass."""

    gate: str
    receipt: Receipt
    at: datetime


class AttemptRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt of a phase. It has no end while it is in progress."""

    phase: str
    attempt: int
    begun: datetime
    ended: datetime | None = None
    #: completed, failed, or a word for another end.
    how: str = ""
    error: str = ""
    agents: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    closed: tuple[FailedCheck, ...] = ()

    def minutes(self, until: datetime) -> float:
        return ((self.ended or until) - self.begun).total_seconds() / 60


def attempts(commits: Iterable[Commit]) -> list[AttemptRecord]:
    """The attempts in the order in which they began."""
    collected = _Attempts()
    for commit in commits:
        for event in commit.events:
            collected.add(event, commit.at)
    return collected.attempts


class _Attempts:
    def __init__(self) -> None:
        self.attempts: list[AttemptRecord] = []
        #: Phase in progress to the index of its attempt.
        self._live: dict[str, int] = {}

    def add(self, event: Event, at: datetime) -> None:
        if isinstance(event, _OUTSIDE):
            return
        match event:
            case events.PhaseBegun() | events.PhaseRedone():
                self._end(event.phase, at, how="redone")
                self._begin(event.phase, event.attempt, at, event.agent)
            case events.PhaseFinished():
                self._end(event.phase, at, how="completed", tokens=event.tokens)
            case events.PhaseFailed():
                self._end(event.phase, at, how="failed", error=event.error, tokens=event.tokens)
            case events.PhaseSkipped():
                self._end(event.phase, at, how="skipped")
            case events.PhaseReset():
                self._end(event.phase, at, how="reset")
            case events.RolledBack():
                for phase in event.phases:
                    self._end(phase, at, how="rolled back")
            case events.SessionCompleted() | events.SessionCancelled():
                for phase in tuple(self._live):
                    self._end(phase, at, how="left")
            case events.AgentLaunched():
                if event.phase in self._live:
                    agents = self.attempts[self._live[event.phase]].agents
                    self._change(event.phase, agents=tuple(dict.fromkeys((*agents, event.agent))))
            case events.GateChecked():
                if not event.receipt.is_pass and event.phase in self._live:
                    closed = self.attempts[self._live[event.phase]].closed
                    check = FailedCheck(gate=event.gate, receipt=event.receipt, at=at)
                    self._change(event.phase, closed=(*closed, check))
            case events.PhasesImported():
                self._import(event)
            case _:
                assert_never(event)

    def _begin(self, phase: str, attempt: int, at: datetime, agent: str) -> None:
        self._live[phase] = len(self.attempts)
        agents = (agent,) if agent else ()
        self.attempts.append(AttemptRecord(phase=phase, attempt=attempt, begun=at, agents=agents))

    def _change(self, phase: str, **changes: object) -> None:
        index = self._live[phase]
        self.attempts[index] = replace(self.attempts[index], **changes)

    def _end(self, phase: str, at: datetime, **changes: object) -> None:
        if phase in self._live:
            self._change(phase, ended=at, **changes)
            del self._live[phase]

    def _import(self, event: PhasesImported) -> None:
        for phase, state in event.phases.items():
            if state.started is not None:
                self._end(phase, state.started, how="imported")
                self._begin(phase, max(state.attempt, 1), state.started, "")
                if state.completed is not None:
                    self._end(phase, state.completed, how=state.status)
