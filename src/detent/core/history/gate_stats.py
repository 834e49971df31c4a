"""Quality figures of gates, from the journals of many sessions.

A passage is the work on a phase from its begin to its finish, over all attempts in between. A try is a run of the
gate's check that counts, or a vote. Every figure of a gate counts passages, unless it says something else.
"""

from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from statistics import median
from typing import NamedTuple, assert_never

import msgspec

from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Receipt, Result, Verdict
from detent.core.gate.judge import judge_recorded
from detent.core.history.replay import after, relevant
from detent.core.session import events
from detent.core.session.events import Commit
from detent.core.session.session import Session
from detent.core.session.status import Status

#: The events that the figures are made of.
_Counted = (
    events.PhaseEvent | events.GateEvent | events.LossAccepted | events.EscalationRaised | events.RolledBack
) | (events.SessionCompleted | events.SessionCancelled)
#: Maximum number of weeks in the trend of a gate; the last ones are kept.
MAX_WEEKS = 104


class Week(msgspec.Struct, frozen=True, kw_only=True):
    """The passages of a gate that ended in a week; `begins` is its Monday."""

    begins: date
    tried: int
    first_try: int


class GateStats(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one gate of a phase."""

    phase: str
    gate: str
    kind: str
    #: Sessions in which the phase was begun.
    sessions: int
    #: Passages; those in which the gate opened or a try failed; those in which it opened.
    passages: int
    tried: int
    opened: int
    #: Opened without a failed try, and not by hand.
    first_try: int
    #: Failed tries of all passages.
    retries: int
    #: Opened by hand; opened after a person accepted the loss of tests; stopped until a person decided.
    by_hand: int
    accepted: int
    escalated: int
    #: Finished with the gate open, and begun again or rolled back later.
    escapes: int
    #: Runs of the check, and the median of their seconds.
    checks: int
    check_s: float | None = None
    #: Medians of seconds: from the begin to the opening, and from the first failed try to the opening.
    open_s: float | None = None
    stuck_s: float | None = None
    #: Inputs that the same command was run on more than once, and those of them with different verdicts.
    repeated: int = 0
    flaky: int = 0
    weeks: tuple[Week, ...] = ()

    @property
    def first_try_rate(self) -> float | None:
        return self.first_try / self.tried if self.tried else None


class _Key(NamedTuple):
    phase: str
    gate: str
    kind: str


class _Passage:
    """One passage of a gate."""

    def __init__(self, key: _Key, gate: Gate, begun: datetime) -> None:
        self.key, self.gate, self.begun = key, gate, begun
        self.opened: datetime | None = None
        self.ended: datetime | None = None
        self.failed_first: datetime | None = None
        self.failed = 0
        self.is_by_hand = self.is_accepted = self.is_escalated = False
        #: The commit or rollback that showed that the gate had let something through.
        self.escaped_by: str | None = None

    def judged(self, at: datetime, *, is_open: bool, is_failed: bool) -> None:
        if is_open:
            self.opened = self.opened or at
        elif is_failed:
            self.failed += 1
            self.failed_first = self.failed_first or at
            self.opened = None

    @property
    def is_tried(self) -> bool:
        return self.opened is not None or self.failed > 0

    @property
    def is_first_try(self) -> bool:
        return self.opened is not None and not self.failed and not self.is_by_hand

    @property
    def stuck_s(self) -> float | None:
        if self.failed_first is None or self.opened is None:
            return None
        return (self.opened - self.failed_first).total_seconds()


class _Inputs:
    """The runs of one command on the same input files."""

    def __init__(self) -> None:
        self.results: set[Result] = set()
        self.keys: set[_Key] = set()
        self.runs = 0


class GateHistory:
    """Collects the figures of all gates, one session after another."""

    def __init__(self) -> None:
        self._passages: dict[_Key, list[_Passage]] = {}
        self._sessions: dict[_Key, int] = {}
        self._durations: dict[_Key, list[float]] = {}
        self._inputs: dict[tuple[str, str, str, str], _Inputs] = {}

    def add(self, commits: Iterable[Commit]) -> None:
        """Add a session, by all of its commits."""
        walk = _Walk(self)
        for commit in commits:
            walk.commit(commit)
        for key in {passage.key for passage in walk.passages}:
            self._sessions[key] = self._sessions.get(key, 0) + 1
        for passage in walk.passages:
            self._passages.setdefault(passage.key, []).append(passage)

    def ran(self, key: _Key, receipt: Receipt) -> None:
        """Count a run of a check."""
        self._durations.setdefault(key, []).append(receipt.duration_s)
        is_verdict = receipt.result in (Result.PASSED, Result.FAILED)
        # The baseline and the protected files of its session decide such a run too, not only its inputs.
        if receipt.inputs is None or not is_verdict or receipt.protected is not None or receipt.lost_count:
            return
        program = receipt.program.digest if receipt.program is not None else ""
        same = self._inputs.setdefault((key.kind, receipt.command, program, receipt.inputs), _Inputs())
        same.runs += 1
        same.results.add(receipt.result)
        same.keys.add(key)

    def stats(self) -> tuple[GateStats, ...]:
        """The figures, by phase and gate."""
        return tuple(self._stats(key) for key in sorted(self._passages))

    def _stats(self, key: _Key) -> GateStats:
        passages = self._passages[key]
        durations = self._durations.get(key, [])
        repeated = [same for same in self._inputs.values() if key in same.keys and same.runs > 1]
        opened = [passage for passage in passages if passage.opened is not None]
        return GateStats(
            **key._asdict(),
            sessions=self._sessions[key],
            passages=len(passages),
            tried=sum(passage.is_tried for passage in passages),
            opened=len(opened),
            first_try=sum(passage.is_first_try for passage in passages),
            retries=sum(passage.failed for passage in passages),
            by_hand=sum(passage.is_by_hand for passage in opened),
            accepted=sum(passage.is_accepted for passage in opened),
            escalated=sum(passage.is_escalated for passage in passages),
            escapes=sum(passage.escaped_by is not None for passage in passages),
            checks=len(durations),
            check_s=_median(durations),
            open_s=_median(_seconds(opened)),
            stuck_s=_median(stuck for passage in opened if (stuck := passage.stuck_s) is not None),
            repeated=len(repeated),
            flaky=sum(len(same.results) > 1 for same in repeated),
            weeks=_weeks(passages),
        )


class _Walk:
    """One pass over the commits of a session."""

    def __init__(self, history: GateHistory) -> None:
        self._history = history
        self._session: Session | None = None
        self.passages: list[_Passage] = []
        #: Phase in progress, or failed, to its passages by gate; and the passages of the last finish of a phase.
        self._live: dict[str, dict[str, _Passage]] = {}
        self._finished: dict[str, list[_Passage]] = {}

    def commit(self, commit: Commit) -> None:
        for recorded in commit.events:
            event = relevant(recorded)
            if event is None:
                continue
            before = self._session
            session = self._session = after(before, event, commit)
            if before is not None and session.gates_apply and isinstance(event, _Counted):
                self._event(before, session, event, commit)

    def _event(self, before: Session, session: Session, event: _Counted, commit: Commit) -> None:
        match event:
            case events.PhaseBegun() | events.PhaseRedone():
                if before.phases[event.phase].status is Status.COMPLETED:
                    self._escape(event.phase, f"commit {commit.version}")
                if event.phase not in self._live:
                    self._begin(session, event.phase, commit.at)
            case events.PhaseFinished():
                self._finish(event.phase, commit.at)
            case events.PhaseReset() | events.PhaseSkipped():
                if before.phases[event.phase].status is Status.COMPLETED:
                    self._escape(event.phase, f"commit {commit.version}")
                self._end((event.phase,), commit.at)
            case events.RolledBack():
                self._roll_back(before, session, event, commit.at)
            case events.SessionCompleted() | events.SessionCancelled():
                self._end(tuple(self._live), commit.at)
            case events.EscalationRaised():
                for passage in self._of(event.phase, event.gate or ""):
                    passage.is_escalated = True
            case events.PhaseFailed():
                # The passage goes on with the next attempt.
                return
            case events.LossAccepted() | events.GateApproved() | events.VoteCast() | events.QuestionAnswered():
                self._decided(session, event, commit.at)
            case events.GateChecked():
                self._checked(session, event, commit.at)
            case _:
                assert_never(event)

    def _of(self, phase: str, gate: str) -> Iterator[_Passage]:
        passage = self._live.get(phase, {}).get(gate)
        if passage is not None:
            yield passage

    def _begin(self, session: Session, phase: str, at: datetime) -> None:
        gates = session.workflow.by_key[phase].gates
        begun = [_Passage(_Key(phase, gate_name(gate), gate.kind), gate, at) for gate in gates]
        self._live[phase] = {passage.key.gate: passage for passage in begun}
        self.passages += begun

    def _finish(self, phase: str, at: datetime) -> None:
        finished = list(self._live.get(phase, {}).values())
        for passage in finished:
            # A gate without evidence of its own, such as one that looks at files, is seen to be open at the finish.
            passage.opened = passage.opened or at
        self._finished[phase] = finished
        self._end((phase,), at)

    def _end(self, phases: Iterable[str], at: datetime) -> None:
        for phase in phases:
            for passage in self._live.pop(phase, {}).values():
                passage.ended = at

    def _escape(self, phase: str, shown_by: str) -> None:
        for passage in self._finished.pop(phase, []):
            passage.escaped_by = shown_by

    def _roll_back(self, before: Session, session: Session, event: events.RolledBack, at: datetime) -> None:
        if event.undoes is not None:
            for passage in self.passages:
                if passage.escaped_by == event.undoes:
                    passage.escaped_by = None
                    self._finished.setdefault(passage.key.phase, []).append(passage)
        for phase in event.phases:
            was, now = before.phases[phase].status, session.phases[phase].status
            if was is Status.COMPLETED and now is not Status.COMPLETED:
                self._escape(phase, event.id)
            self._end((phase,), at)
            if now is Status.IN_PROGRESS:
                self._begin(session, phase, at)

    def _decided(
        self,
        session: Session,
        event: events.LossAccepted | events.GateApproved | events.VoteCast | events.QuestionAnswered,
        at: datetime,
    ) -> None:
        for passage in self._of(event.phase, event.gate):
            is_against = isinstance(event, events.VoteCast) and not event.approve
            passage.judged(at, is_open=self._is_open(session, passage), is_failed=is_against)
            passage.is_by_hand |= isinstance(event, events.GateApproved)
            passage.is_accepted |= isinstance(event, events.LossAccepted)

    def _checked(self, session: Session, event: events.GateChecked, at: datetime) -> None:
        for passage in self._of(event.phase, event.gate):
            if event.receipt.aside is not None:
                continue
            self._history.ran(passage.key, event.receipt)
            is_open = self._is_open(session, passage)
            passage.judged(at, is_open=is_open, is_failed=not is_open)

    def _is_open(self, session: Session, passage: _Passage) -> bool:
        phase, name = passage.key.phase, passage.key.gate
        # A person may have set another command since the begin.
        gate = session.workflow.by_key[phase].gate(name) or passage.gate
        return judge_recorded(session, phase, gate).verdict is Verdict.PASS


def _seconds(opened: Iterable[_Passage]) -> Iterator[float]:
    return ((passage.opened - passage.begun).total_seconds() for passage in opened if passage.opened is not None)


def _median(values: Iterable[float]) -> float | None:
    numbers = list(values)
    return round(median(numbers), 3) if numbers else None


def _weeks(passages: Iterable[_Passage]) -> tuple[Week, ...]:
    tried: dict[date, list[bool]] = {}
    for passage in passages:
        at = passage.opened or passage.ended
        if at is not None and passage.is_tried:
            tried.setdefault(_monday(at), []).append(passage.is_first_try)
    weeks = (Week(begins=day, tried=len(tries), first_try=sum(tries)) for day, tries in sorted(tried.items()))
    return tuple(weeks)[-MAX_WEEKS:]


def _monday(at: datetime) -> date:
    return at.date() - timedelta(days=at.weekday())
