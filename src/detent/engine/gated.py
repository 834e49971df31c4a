"""The operations of a session on gates, agents and people's decisions."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from detent.core.gate import gate_name
from detent.core.gate.evidence import GateState, Judgement, Receipt, Verdict
from detent.core.gate.judge import judgements
from detent.core.session.commands import (
    Answer,
    Approve,
    Ask,
    CheckGate,
    Escalate,
    Override,
    RecordAgentEnded,
    RecordAgentStarted,
    Reply,
    Resolve,
    Review,
)
from detent.core.session.decide_gate import find_gate
from detent.core.session.decide_phase import known_phase, live_phase
from detent.core.session.events import Commit, QuestionAsked, QuestionReplied
from detent.core.session.phase_state import Report
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.engine.results import Outcome
from detent.engine.session_part import SessionPart
from detent.errors import Refused
from detent.store.port import START


class Gated(SessionPart):
    def judgements(self, phase: str | None = None) -> dict[str, tuple[Judgement, ...]]:
        """The verdict on every gate of the phases in progress, or of the one named."""
        session = self.state
        phases = session.with_status(Status.IN_PROGRESS) if phase is None else (known_phase(session, phase),)
        now, moment = self._project.clock(), self._project.checkpoints.moment()
        return {key: judgements(session, key, self._checks.facts(session, key, now, moment)) for key in phases}

    def run_gate(self, gate: str, *, phase: str | None = None, command: str | None = None) -> Outcome:
        """Run the gate's check now and record what came of it."""
        key = live_phase(self.state, phase)
        return self.record_gate(gate, phase=key, receipt=self.check_gate(gate, phase=key, command=command))

    def check_gate(
        self, gate: str, *, phase: str, command: str | None = None, env: Mapping[str, str] | None = None
    ) -> Receipt:
        """Run the gate's check now and record nothing. `env` is what it has besides the environment of this process."""
        session = self.state
        return self._checks.run(session, phase, find_gate(session, phase, gate), command, env)

    def record_gate(self, gate: str, *, phase: str, receipt: Receipt) -> Outcome:
        return self.carry_out(CheckGate(phase=phase, gate=gate, receipt=receipt))

    def observe_tests(self, phase: str, command: str, output: str, exit_code: int | None) -> Outcome | None:
        """Record a test run that was seen in the agent's shell, if the phase asks for one and names no command."""
        for gate in self.state.workflow.by_key[phase].gates if self.state.gates_apply else ():
            receipt = self._checks.observed(gate, command, output, exit_code)
            if receipt is not None:
                return self.carry_out(CheckGate(phase=phase, gate=gate_name(gate), receipt=receipt))
        return None

    def report_gate(self, gate: str, *, compliant: bool, note: str = "", phase: str | None = None) -> Outcome:
        """Record a reviewer's finding about a constitution whose articles no command can check."""
        key = live_phase(self.state, phase)
        declared = find_gate(self.state, key, gate)
        if not declared.is_reported:
            raise Refused(f"gate {gate} of {key} is not reported", way_out=declared.way_out(key, GateState()))
        receipt = self._checks.reported(compliant=compliant, note=note)
        return self.carry_out(CheckGate(phase=key, gate=gate, receipt=receipt))

    def answer(self, *, choice: str | None = None, gate: str | None = None, phase: str | None = None) -> Outcome:
        """Record that a person answered a question of the phase, and what it chose."""
        return self.carry_out(Answer(phase=live_phase(self.state, phase), gate=gate, choice=choice))

    def approve(
        self,
        reason: str,
        *,
        gate: str | None = None,
        phase: str | None = None,
        who: str | None = None,
        approve: bool = True,
    ) -> Outcome:
        """Vote at a gate that asks for votes, or open another one by hand."""
        voter = who or self._actor.name
        key = live_phase(self.state, phase)
        return self.carry_out(Approve(phase=key, gate=gate, who=voter, reason=reason, approve=approve))

    def record_agent_started(self, phase: str, agent: str, agent_id: str) -> Outcome:
        return self.carry_out(RecordAgentStarted(phase=phase, agent=agent, agent_id=agent_id))

    def record_agent_ended(
        self, agent_id: str, *, succeeded: bool, report: Report | None = None, phase: str | None = None
    ) -> Outcome:
        """An agent ended. What it reported is kept, and becomes part of the attempt's end."""
        return self.carry_out(RecordAgentEnded(agent_id=agent_id, succeeded=succeeded, report=report, phase=phase))

    # People

    def ask(self, text: str, *, phase: str | None = None, choices: Iterable[str] = ()) -> str:
        """Ask a person something and return the id of the question."""
        offered = tuple(choices)

        def numbered(session: Session) -> Ask:
            key = live_phase(session, phase)
            return Ask(id=f"Q{session.version + 1}", phase=key, text=text, choices=offered)

        # Under the lock, so that two who ask at once get two numbers.
        outcome = self.carry_out_first(numbered)
        return next(event.id for event in outcome.events if isinstance(event, QuestionAsked))

    def reply(self, answer: str, *, question: str | None = None) -> Outcome:
        """Answer what an agent asked."""
        return self.carry_out(Reply(id=question, answer=answer))

    def answer_to(self, question: str) -> str | None:
        """The reply of a person; None before there is one, and an empty text if the question was dropped."""
        if any(entry.id == question for entry in self.state.questions):
            return None
        replies = (event for commit in self.log() for event in commit.events if isinstance(event, QuestionReplied))
        return next((event.answer for event in replies if event.id == question), "")

    def escalate(self, kind: str, phase: str, detail: str) -> Outcome:
        """Hold the session until a person decides."""
        return self.carry_out(Escalate(kind=kind, phase=phase, detail=detail))

    def resolve(self, action: str, reason: str = "", *, phase: str | None = None) -> Outcome:
        """Decide what the open escalations ask, or only those of a phase: retry, skip or cancel."""
        return self.carry_out(Resolve(action=action, reason=reason, phase=phase))

    def release(self, reason: str, *, phase: str | None = None) -> Outcome:
        """Open every closed gate of the phase by hand and resolve what waits for a decision: all or nothing new."""
        if self.state.escalations:
            self.resolve("retry", reason)
        live = self.state.with_status(Status.IN_PROGRESS) if phase is None else (phase,)
        outcome: Outcome | None = None
        for key in live:
            for judged in self.judgements(key)[key]:
                if judged.verdict is not Verdict.PASS:
                    outcome = self.carry_out(Override(phase=key, gate=judged.gate, reason=reason))
        if outcome is None:
            raise Refused("no gate of a phase in progress is closed", way_out="detent why")
        return outcome

    def review(self, decision: str, *, phase: str | None = None, note: str = "") -> Outcome:
        """A person's word on a finished phase: continue, review or redo."""
        return self.carry_out(Review(phase=phase, decision=decision, note=note))

    # Looking

    def now(self) -> datetime:
        return self._project.clock()

    def log(self) -> Iterator[Commit]:
        """Every commit, oldest first."""
        cursor, more = START, True
        while more:
            commits, cursor, _, more = self._project.store.read(self.id, cursor)
            yield from commits
