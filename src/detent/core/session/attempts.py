"""The attempts of a session, one by one, as its journal tells them: the state only knows the last of each phase."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Receipt, Result
from detent.core.session.events import (
    AgentLaunched,
    Commit,
    Event,
    GateChecked,
    PhaseBegun,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhasesImported,
    PhaseSkipped,
    RolledBack,
    SessionCancelled,
    SessionCompleted,
)
from detent.core.session.phase_state import Tokens


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """A run for a gate that did not pass."""

    gate: str
    receipt: Receipt
    at: datetime


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Without an end it is still going on."""

    phase: str
    attempt: int
    begun: datetime
    ended: datetime | None = None
    #: completed, failed, or in a word why it ended otherwise.
    how: str = ""
    error: str = ""
    agents: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    closed: tuple[Check, ...] = ()

    def minutes(self, until: datetime) -> float:
        return ((self.ended or until) - self.begun).total_seconds() / 60


def attempts(commits: Iterable[Commit]) -> list[Tried]:
    """In the order in which they began."""
    told = _Told()
    for commit in commits:
        for event in commit.events:
            told.add(event, commit.at)
    return told.attempts


class _Told:
    def __init__(self) -> None:
        self.attempts: list[Tried] = []
        #: Where the live attempt of a phase stands among them.
        self._live: dict[str, int] = {}

    def add(self, event: Event, at: datetime) -> None:
        match event:
            case PhaseBegun() | PhaseRedone():
                self._end(event.phase, at, how="redone")
                self._begin(event.phase, event.attempt, at, event.agent)
            case PhaseFinished():
                self._end(event.phase, at, how="completed", tokens=event.tokens)
            case PhaseFailed():
                self._end(event.phase, at, how="failed", error=event.error, tokens=event.tokens)
            case PhaseSkipped():
                self._end(event.phase, at, how="skipped")
            case PhaseReset():
                self._end(event.phase, at, how="reset")
            case RolledBack():
                for phase in event.phases:
                    self._end(phase, at, how="rolled back")
            case SessionCompleted() | SessionCancelled():
                for phase in tuple(self._live):
                    self._end(phase, at, how="left")
            case AgentLaunched() if event.phase in self._live:
                tried = self.attempts[self._live[event.phase]]
                agents = tuple(dict.fromkeys((*tried.agents, event.agent)))
                self._change(event.phase, agents=agents)
            case GateChecked() if event.receipt.result is not Result.PASSED and event.phase in self._live:
                closed = self.attempts[self._live[event.phase]].closed
                check = Check(gate=event.gate, receipt=event.receipt, at=at)
                self._change(event.phase, closed=(*closed, check))
            case PhasesImported():
                self._import(event)
            case _:
                return

    def _begin(self, phase: str, attempt: int, at: datetime, agent: str) -> None:
        self._live[phase] = len(self.attempts)
        agents = (agent,) if agent else ()
        self.attempts.append(Tried(phase=phase, attempt=attempt, begun=at, agents=agents))

    def _change(self, phase: str, **changes: object) -> None:
        at = self._live[phase]
        self.attempts[at] = msgspec.structs.replace(self.attempts[at], **changes)

    def _end(self, phase: str, at: datetime, **changes: object) -> None:
        if phase in self._live:
            self._change(phase, ended=at, **changes)
            del self._live[phase]

    def _import(self, event: PhasesImported) -> None:
        for phase, found in event.phases.items():
            if found.started is not None:
                self._end(phase, found.started, how="imported")
                self._begin(phase, max(found.attempt, 1), found.started, "")
                if found.completed is not None:
                    self._end(phase, found.completed, how=found.status)
