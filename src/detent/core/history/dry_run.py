"""The dry run of a policy: a recorded session, judged and decided again under another one. Pure.

The journal says what ran, who voted and with which proof. It does not say what a check would have said that never ran:
that is UNKNOWN, and never counted as passed. Files count as the record implies: unchanged since a run that passed.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from detent.core.checkpoint.checkpoint import CheckpointKind
from detent.core.decision.subject import DecisionEvent, needed_assurance
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Facts, GateState, Verdict
from detent.core.gate.judge import judge
from detent.core.gate.kind import Opener, required_paths
from detent.core.gate.voted import Voted
from detent.core.history.replay import after, relevant
from detent.core.session import events
from detent.core.session.budget import budget_escalation
from detent.core.session.escalation import BUDGET_EXCEEDED
from detent.core.session.events import Commit, Event, Options, SessionStarted
from detent.core.session.session import Session
from detent.core.workflow.graph import Workflow

#: The person for whom nothing names another.
ANYONE = "a person"


class Outcome(StrEnum):
    """The outcome that the policy would have had."""

    PASSED = "passed"
    REFUSED = "refused"
    #: A person would have been asked.
    WAITS = "waits"
    #: The record does not have the evidence that the policy asks for.
    UNKNOWN = "unknown"


class Policy(NamedTuple):
    """A policy, as a session of it would have pinned it."""

    #: The phases of the recorded session, with the gates of the policy.
    workflow: Workflow
    options: Options
    #: Phases that the policy has and the session has not; and phases that it has no more.
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    #: Gates that were left out, each with the reason.
    left_out: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer of the policy that the record can be compared with."""

    commit: int
    at: datetime
    phase: str
    #: Empty for a decision about the phase as a whole.
    gate: str = ""
    outcome: Outcome
    #: Whether the record has the same outcome.
    is_same: bool = False
    reason: str = ""
    #: The people whom it would have waited for.
    waits_for: str = ""


class Trial(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded session under another policy."""

    session: str
    workflow: str
    started_at: datetime
    steps: tuple[Step, ...] = ()
    #: Finishes of phases that were judged.
    finishes: int = 0
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    #: The reason why the policy cannot be applied to the session; empty if it can.
    problem: str = ""

    @property
    def differing(self) -> tuple[Step, ...]:
        return tuple(step for step in self.steps if not step.is_same)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome: a session that would have been refused may also have waited."""
        outcomes = {step.outcome for step in self.steps}
        if self.problem or self.added:
            outcomes.add(Outcome.UNKNOWN)
        return next((worst for worst in _WORST_FIRST if worst in outcomes), Outcome.PASSED)


_WORST_FIRST = (Outcome.REFUSED, Outcome.WAITS, Outcome.UNKNOWN)


class GateTrial(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of one gate over all sessions."""

    phase: str
    #: Empty for decisions about the phase as a whole.
    gate: str
    passed: int = 0
    refused: int = 0
    waits: int = 0
    unknown: int = 0
    #: The people who would have been waited for.
    waits_for: tuple[str, ...] = ()


def by_gate(trials: Iterable[Trial]) -> tuple[GateTrial, ...]:
    """The outcomes by phase and gate."""
    counts: dict[tuple[str, str], dict[str, int]] = {}
    people: dict[tuple[str, str], dict[str, None]] = {}
    for trial in trials:
        for step in trial.steps:
            key = step.phase, step.gate
            own = counts.setdefault(key, {})
            own[step.outcome] = own.get(step.outcome, 0) + 1
            if step.waits_for:
                people.setdefault(key, {})[step.waits_for] = None
    return tuple(
        GateTrial(phase=phase, gate=gate, waits_for=tuple(people.get((phase, gate), ())), **own)
        for (phase, gate), own in sorted(counts.items())
    )


class TrialResult(NamedTuple):
    """All sessions under the policy; and those that could not be read, with the reason."""

    trials: tuple[Trial, ...]
    unreadable: dict[str, str]

    def count(self, outcome: Outcome) -> int:
        return sum(trial.outcome is outcome for trial in self.trials)

    @property
    def is_refused(self) -> bool:
        return self.count(Outcome.REFUSED) > 0


def try_session(commits: Iterable[Commit], policy: Policy) -> Trial:
    """The session of these commits under the policy."""
    walk = _Walk(policy)
    steps = [step for commit in commits for step in walk.commit(commit)]
    session = walk.pinned
    assert session is not None, "a journal has a first commit"
    return Trial(
        session=session.id,
        workflow=session.workflow.name,
        started_at=session.started_at,
        steps=tuple(steps),
        finishes=walk.finishes,
        added=policy.added,
        removed=policy.removed,
        left_out=policy.left_out,
    )


class _Walk:
    """One pass over the commits: the session as it was recorded (`pinned`), and as it is under the policy (`tried`)."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.pinned: Session | None = None
        self._tried: Session | None = None
        self.finishes = 0
        #: Phase to the command of each check that ran in its attempt, with the state of its gate.
        self._ran: dict[str, dict[str, GateState]] = {}
        #: Phase, attempt and gate that were said to open earlier.
        self._opened: set[tuple[str, int, str]] = set()

    def commit(self, commit: Commit) -> Iterator[Step]:
        for recorded in commit.events:
            event = relevant(recorded)
            if event is None:
                continue
            pinned, tried = self.pinned, self._tried
            if pinned is not None and tried is not None:
                yield from self._before(pinned, tried, event, commit)
            self.pinned = after(pinned, event, commit)
            for own in self._under_policy(tried, event):
                self._tried = after(self._tried, own, commit)
            if isinstance(event, events.GateChecked):
                yield from self._checked(event, commit)

    def _under_policy(self, tried: Session | None, event: Event) -> Iterator[Event]:
        """The event as the session under the policy has it."""
        if isinstance(event, SessionStarted):
            yield replace(event, workflow=self._policy.workflow, options=self._policy.options)
        elif isinstance(event, events.EscalationRaised) and (event.gate or event.kind == BUDGET_EXCEEDED):
            # The policy raises its own.
            return
        elif isinstance(event, events.GateCommandSet) and tried is not None:
            gates = {key: tried.workflow.by_key[key].gates for key in event.phases}
            phases = tuple(key for key, own in gates.items() if event.gate in map(gate_name, own))
            if phases:
                yield replace(event, phases=phases)
        else:
            yield event

    def _before(self, pinned: Session, tried: Session, event: Event, commit: Commit) -> Iterator[Step]:
        """The policy's answer to an event, with the session right before it."""
        yield from self._decision(pinned, tried, event, commit)
        if isinstance(event, events.PhaseBegun | events.PhaseRedone):
            self._ran.pop(event.phase, None)
        elif isinstance(event, events.PhaseFinished):
            self.finishes += 1
            yield from self._finish(pinned, tried, event, commit)
        elif isinstance(event, events.PhaseFailed):
            yield from self._budget(pinned, tried, event, commit)

    def _decision(self, pinned: Session, tried: Session, event: Event, commit: Commit) -> Iterator[Step]:
        """A decision whose proof is weaker than the policy asks for. Votes and approvals are left to the judge."""
        proof = commit.actor.proof
        is_judged = isinstance(event, events.VoteCast | events.GateApproved)
        if proof is None or is_judged or not isinstance(event, DecisionEvent):
            return
        needed = needed_assurance(tried, [event])
        if proof.assurance.reaches(needed):
            return
        phase = getattr(event, "phase", "") or ""
        reason = f"{_words(type(event).__name__)} by {commit.actor.identity} is {proof.assurance}, and must be {needed}"
        is_same = not proof.assurance.reaches(needed_assurance(pinned, [event]))
        yield _step(commit, phase, Outcome.REFUSED, reason=reason, is_same=is_same)

    def _checked(self, event: events.GateChecked, commit: Commit) -> Iterator[Step]:
        """A run that opens the gate under the policy only, or after which only the policy asks a person."""
        pinned, tried = self.pinned, self._tried
        assert pinned is not None
        assert tried is not None
        state = tried.phases[event.phase].gates[event.gate]
        if event.receipt.aside is None and event.receipt.command:
            self._ran.setdefault(event.phase, {})[event.receipt.command] = state
        old = pinned.workflow.by_key[event.phase].gate(event.gate)
        new = tried.workflow.by_key[event.phase].gate(event.gate) if tried.gates_apply else None
        if old is None or new == old or event.receipt.aside is not None:
            return
        if new is None:
            yield from self._opens_earlier(pinned, event, old, "the policy has no such gate", commit)
            return
        if new.runnable() not in (None, old.runnable()):
            return
        kind = new.exhausted(state, tried.baseline)
        if kind is not None:
            raised = events.EscalationRaised(kind=kind, phase=event.phase, gate=event.gate, detail=kind)
            self._tried = after(tried, raised, commit)
            known = pinned.phases[event.phase].gates[event.gate]
            is_same = old.exhausted(known, pinned.baseline) is not None
            reason = f"{kind} after run {state.iterations}"
            yield _step(
                commit,
                event.phase,
                Outcome.WAITS,
                gate=event.gate,
                reason=reason,
                waits_for=ANYONE,
                is_same=is_same,
            )
            return
        verdict, reason = _judged(tried, event.phase, new)
        if verdict is Verdict.PASS and new.contradiction(event.receipt) is None:
            yield from self._opens_earlier(pinned, event, old, f"opens earlier: {reason}", commit)

    def _opens_earlier(
        self, pinned: Session, event: events.GateChecked, old: Gate, reason: str, commit: Commit
    ) -> Iterator[Step]:
        """A run that left the gate of the record closed; said once for each attempt."""
        mark = event.phase, pinned.phases[event.phase].attempt, event.gate
        if mark not in self._opened and _judged(pinned, event.phase, old)[0] is not Verdict.PASS:
            self._opened.add(mark)
            yield _step(commit, event.phase, Outcome.PASSED, gate=event.gate, reason=reason)

    def _finish(self, pinned: Session, tried: Session, event: events.PhaseFinished, commit: Commit) -> Iterator[Step]:
        gates = tried.gates(event.phase)
        facts = _facts(pinned, tried, event, commit)
        for gate in gates:
            outcome, reason = self._judge(tried, event.phase, gate, facts)
            waits_for = _people(gate) if outcome is Outcome.WAITS else ""
            is_same = outcome is Outcome.PASSED
            yield _step(
                commit,
                event.phase,
                outcome,
                gate=gate_name(gate),
                reason=reason,
                waits_for=waits_for,
                is_same=is_same,
            )
        if tried.is_supervised(event.phase):
            is_same = pinned.is_supervised(event.phase)
            reason = "a person reviews the finished phase"
            yield _step(commit, event.phase, Outcome.WAITS, reason=reason, waits_for=ANYONE, is_same=is_same)
        yield from self._budget(pinned, tried, event, commit)

    def _budget(
        self, pinned: Session, tried: Session, event: events.PhaseFinished | events.PhaseFailed, commit: Commit
    ) -> Iterator[Step]:
        for raised in budget_escalation(tried, event.phase, commit.at, event.tokens):
            is_same = bool(budget_escalation(pinned, event.phase, commit.at, event.tokens))
            yield _step(commit, event.phase, Outcome.WAITS, reason=raised.detail, waits_for=ANYONE, is_same=is_same)

    def _judge(self, tried: Session, phase: str, gate: Gate, facts: Facts) -> tuple[Outcome, str]:
        """The outcome of a gate at a finish."""
        state = tried.phases[phase].at_gate(gate_name(gate))
        if gate.opened_by is Opener.RUN and state.approved_by is None:
            usable = self._usable(phase, gate, state)
            if usable is None:
                command = gate.runnable()
                return Outcome.UNKNOWN, f"no run of `{command}` is recorded" if command else "no run is recorded"
            if usable is not state:
                gates = {**tried.phases[phase].gates, gate_name(gate): usable}
                changed = replace(tried.phases[phase], gates=gates)
                tried = replace(tried, phases=tried.phases.replaced(phase, changed))
                state = usable
        unseen = [path for path in required_paths(gate, tried.folder) if path not in (facts.exists or ())]
        if unseen and state.approved_by is None:
            return Outcome.UNKNOWN, f"the journal does not say whether {', '.join(unseen)} existed"
        inputs = state.receipt.inputs if state.receipt is not None else None
        if inputs is not None:
            facts = replace(facts, changed={**facts.changed, inputs: ()})
        judged = judge(tried, phase, gate, facts)
        return _outcome(gate, judged.verdict), judged.reason

    def _usable(self, phase: str, gate: Gate, state: GateState) -> GateState | None:
        """The state of the gate with a run that can be one of it: its own, or one of the same command."""
        if state.receipt is not None and gate.contradiction(state.receipt) is None:
            return state
        other = self._ran.get(phase, {}).get(gate.runnable() or "")
        if other is None or other.receipt is None or gate.contradiction(other.receipt) is not None:
            return None
        return replace(other, votes=state.votes)


def _facts(pinned: Session, tried: Session, event: events.PhaseFinished, commit: Commit) -> Facts:
    """The facts that the record implies: every path that a gate of the record asked for existed."""
    gates = pinned.gates(event.phase)
    required = (path for gate in gates for path in required_paths(gate, pinned.folder))
    begun = tried.phases[event.phase].tree
    taken = next(
        (
            taken.tree.manifest
            for taken in commit.events
            if isinstance(taken, events.CheckpointTaken)
            and (taken.kind, taken.phase) == (CheckpointKind.POST, event.phase)
        ),
        None,
    )
    return Facts(
        exists=frozenset((*required, *pinned.declared, *event.artifacts)),
        differs={begun: begun != taken} if begun is not None and taken is not None else {},
        now=commit.at,
    )


def _judged(session: Session, phase: str, gate: Gate) -> tuple[Verdict, str]:
    """The verdict of a gate after a run, with nothing changed since."""
    receipt = session.phases[phase].at_gate(gate_name(gate)).receipt
    changed = {receipt.inputs: ()} if receipt is not None and receipt.inputs is not None else {}
    judged = judge(session, phase, gate, Facts(changed=dict(changed), now=session.updated_at))
    return judged.verdict, judged.reason


def _outcome(gate: Gate, verdict: Verdict) -> Outcome:
    if verdict is Verdict.PASS:
        return Outcome.PASSED
    if gate.opened_by.is_person and verdict is not Verdict.FAIL:
        return Outcome.WAITS
    # Whether the work was done that opens such a gate, only the files could say.
    is_unseen = gate.opened_by is Opener.WORK and verdict is Verdict.PENDING
    return Outcome.UNKNOWN if is_unseen or verdict is Verdict.ERROR else Outcome.REFUSED


def _people(gate: Gate) -> str:
    return (gate.seats() if isinstance(gate, Voted) else "") or ANYONE


def _words(name: str) -> str:
    """`LossAccepted` as words: loss accepted."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name).strip()


def _step(
    commit: Commit,
    phase: str,
    outcome: Outcome,
    *,
    reason: str,
    gate: str = "",
    waits_for: str = "",
    is_same: bool = False,
) -> Step:
    return Step(
        commit=commit.version,
        at=commit.at,
        phase=phase,
        gate=gate,
        outcome=outcome,
        is_same=is_same,
        reason=reason,
        waits_for=waits_for,
    )
