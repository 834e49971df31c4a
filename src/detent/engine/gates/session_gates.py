"""The gates of one session: judge them, run their checks, record receipts."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from detent.core.actor import ActorKind, Channel
from detent.core.counted import counted
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import Facts, GateState, Judgement, RanBy, Receipt, Verdict
from detent.core.gate.judge import judgements
from detent.core.session.commands import AcceptLoss, CheckGate, RecordBaseline, SetGateCommand
from detent.core.session.decide_gate import find_gate
from detent.core.session.decide_phase import known_phase, live_phase
from detent.core.session.session import Session
from detent.engine.policy import Decision
from detent.engine.redact_command import redact_text
from detent.engine.results import Outcome
from detent.errors import Refused

if TYPE_CHECKING:
    from detent.engine.gates.checks import GateChecks
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.objects.universe import Moment


#: Seconds that a command in an agent's shell waits for a check: clients end a shell that is silent for longer.
SHELL_S = 60.0
#: Seconds that a call of the MCP server waits for one: some clients end a call after a minute.
MCP_S = 45.0


#: The most characters of the report of a reviewer.
MAX_REVIEW = 4_000


class SessionGates:
    def __init__(self, project: "Project", handle: "SessionHandle") -> None:
        self._project, self._handle = project, handle

    @cached_property
    def checks(self) -> "GateChecks":
        # Running checks needs processes and parsers, and looking at a session does not.
        from detent.engine.gates.checks import GateChecks  # noqa: PLC0415

        project = self._project
        checks = GateChecks(project.store, project.place, self._handle.id, project.checkpoints, project.sandbox)
        checks.knows_tests = project.settings.run.tests is not None
        return checks

    def judgements(self, phase: str | None = None) -> dict[str, tuple[Judgement, ...]]:
        """The verdict on every gate of the phases in progress, or of the one named."""
        session = self._handle.state
        phases = session.in_progress if phase is None else (known_phase(session, phase),)
        now = self._project.clock()
        gated = {key for key in phases if session.workflow.by_key[key].gates}
        return {key: judgements(session, key, self._facts(session, key, now)) if key in gated else () for key in phases}

    def _facts(self, session: Session, phase: str, now: datetime) -> Facts:
        """The facts of the files that the phase is done in."""
        there = self._project.working_on(session.id, phase)
        checks = self.checks if there is self._project else there.session(session.id).gates.checks
        return checks.facts(session, phase, now, there.checkpoints.moment())

    def check_known(self, gate: str, *, phase: str) -> None:
        """Refuse a gate that the phase does not have, or a phase that is not in progress."""
        find_gate(self._handle.state, live_phase(self._handle.state, phase), gate)

    def run(self, gate: str, *, phase: str | None = None, command: str | None = None) -> Outcome:
        """Run the gate's check now and record the receipt."""
        key = live_phase(self._handle.state, phase)
        return self.record(gate, phase=key, receipt=self.check(gate, phase=key, command=command))

    def run_all(self, *, phase: str | None = None) -> tuple[tuple[str, str], ...]:
        """Run every check that has a command, of the phases in progress or of one; the phases and gates that ran.

        Checks that run last, such as a merge, run only if every other gate of their phase is open.
        """
        session = self._handle.state
        phases = session.in_progress if phase is None else (live_phase(session, phase),)
        ran: list[tuple[str, str]] = []
        for key in phases:
            gates = session.gates(key)
            for gate in sorted(gates, key=lambda gate: gate.runs_last):
                state = session.phases[key].at_gate(gate_name(gate))
                if gate.runnable() is None or state.escalated is not None:
                    continue
                if gate.runs_last and any(
                    judged.verdict is not Verdict.PASS and judged.gate != gate_name(gate)
                    for judged in self.judgements(key)[key]
                ):
                    continue
                self.run(gate_name(gate), phase=key)
                ran.append((key, gate_name(gate)))
        return tuple(ran)

    def run_due(self, phase: str, moment: "Moment") -> bool:
        """Run every check that was not run on the files of the moment, once; False if none was to be run.

        Raises `CheckRunning` if one takes too long.
        """
        done: set[str] = set()
        while (gate := self._due(phase, done, moment)) is not None:
            done.add(gate)
            moment = self._project.checkpoints.moment()
            if self._project.actor.channel is Channel.LIBRARY:
                self.run(gate, phase=phase)
            else:
                self._run_apart(gate, phase)
        return bool(done)

    def _due(self, phase: str, done: set[str], moment: "Moment") -> str | None:
        """The next gate whose check is to be run; those that run last only if every other gate is open."""
        session = self._handle.state
        facts = self.checks.facts(session, phase, self._project.clock(), moment)
        judged = judgements(session, phase, facts)
        closed = {judgement.gate for judgement in judged if judgement.verdict is not Verdict.PASS}
        for gate in session.workflow.by_key[phase].gates:
            name = gate_name(gate)
            state = session.phases[phase].at_gate(name)
            if name not in closed - done or gate.runnable() is None or state.escalated is not None:
                continue
            if gate.runs_last and closed != {name}:
                continue
            if not self.checks.is_current(session, phase, gate, moment):
                return name
        return None

    def _run_apart(self, gate: str, phase: str) -> None:
        """Run the check in a process of its own, and wait for it as long as the caller can."""
        from detent.engine.gates.check_process import start_check, wait_for  # noqa: PLC0415 - few commands run checks

        actor = self._project.actor
        started = start_check(self._project, self._handle.id, gate, phase)
        if actor.channel in (Channel.HOOK, Channel.PAGE):
            patience_s: float | None = 0.0
        elif actor.channel is Channel.MCP:
            patience_s = MCP_S
        else:
            patience_s = SHELL_S if actor.kind is ActorKind.AGENT else None
        wait_for(started, patience_s, self._project.checking)

    def check(
        self,
        gate: str,
        *,
        phase: str,
        command: str | None = None,
        env: Mapping[str, str] | None = None,
        by: RanBy = RanBy.DETENT,
    ) -> Receipt:
        """Run the gate's check now and record nothing. `env` adds to the environment of this process."""
        session = self._handle.state
        declared = find_gate(session, phase, gate)
        if command is None and declared.runs_tests and not declared.takes_names and declared.runnable() is None:
            command = self._project.settings.run.tests
        self.checks.watch = self._watch(gate)
        return self.checks.run(session, phase, declared, command, env, by=by)

    def _watch(self, gate: str) -> Callable[[bytes, float], object] | None:
        """Passes on the output of a check and its duration, if the project has a listener for them."""
        checking, streaming = self._project.checking, self._project.streaming
        if streaming is not None:
            return lambda output, _: streaming(output)
        return None if checking is None else lambda _, seconds: checking(gate, seconds)

    def record(self, gate: str, *, phase: str, receipt: Receipt) -> Outcome:
        return self._handle.execute(CheckGate(phase=phase, gate=gate, receipt=receipt))

    def observe(
        self, phase: str, command: str, output: str, exit_code: int | None, *, noted_at: datetime | None = None
    ) -> Outcome | None:
        """Record a test run that was seen in the agent's shell, if the phase asks for tests.

        `noted_at` is the time at which a hook noted the run; the caller holds PROJECT then.
        """
        session = self._handle.state
        gates = session.gates(phase)
        output = redact_text(output) if gates else ""
        for gate in gates:
            receipt = self.checks.observed(session, gate, command, output, exit_code, noted_at)
            if receipt is not None:
                return self._handle.execute(CheckGate(phase=phase, gate=gate_name(gate), receipt=receipt))
        return None

    # Decisions of a person

    def accept(self, gate: str, names: Iterable[str], reason: str, *, phase: str | None = None) -> Outcome:
        """Accept that tests of the baseline are gone or do not pass; without names, all that the last run lost."""
        key = live_phase(self._handle.state, phase)
        return self._handle.execute(
            AcceptLoss(phase=key, gate=gate, names=tuple(names) or self._lost(key, gate), reason=reason)
        )

    def _lost(self, phase: str, gate: str) -> tuple[str, ...]:
        """All tests that the last run of a gate lost. The receipt only names the first of them."""
        session = self._handle.state
        declared = find_gate(session, phase, gate)
        receipt = session.phases[phase].at_gate(gate).receipt
        if receipt is not None and declared.accepts_findings and receipt.findings:
            if receipt.finding_count > len(receipt.findings):
                raise Refused(
                    f"{receipt.finding_count} findings are too many to accept together; only the first are named",
                    way_out=f"mend some, or detent approve {phase} --gate {gate} -m WHY",
                )
            return receipt.findings
        known = session.baseline.tests.get(declared.runnable() or "")
        if receipt is None or not receipt.lost_count:
            raise Refused(f"gate {gate} of {phase} has lost no test", way_out="detent gates")
        if known is None or known.names is None or receipt.names is None:
            raise Refused(
                f"{counted(receipt.lost_count, 'test')} fewer passed, but the run did not name them",
                way_out=f"detent gate baseline {gate} -m WHY makes the present tests the baseline",
            )
        missing = self.checks.names(known.names) - self.checks.names(receipt.names)
        return tuple(sorted(missing - set(session.baseline.accepted)))

    def set_command(self, gate: str, command: str, reason: str, *, phase: str | None = None) -> Outcome:
        """Set the command that decides a gate, in one phase or in all that have the gate."""
        return self._handle.execute(SetGateCommand(gate=gate, command=command, reason=reason, phase=phase))

    def baseline(self, gate: str, *, phase: str | None = None, reason: str = "") -> Outcome:
        """Run the gate's command now, and record the tests in it as the baseline.

        An agent may do that too while there is none. To replace one is a person's decision.
        """
        session = self._handle.state
        declared = next(
            (
                candidate
                for key in ((known_phase(session, phase),) if phase else session.workflow.order)
                for candidate in session.workflow.by_key[key].gates
                if gate_name(candidate) == gate and not session.phases[key].status.is_settled
            ),
            None,
        )
        command = declared.runnable() if declared is not None else None
        if declared is None or command is None:
            raise Refused(
                f"no gate {gate} that is still to be opened has a command",
                way_out=f"detent gate set {gate} --command COMMAND -m WHY",
            )
        if command in session.baseline.tests:
            self._handle.check_may_decide(Decision.BASELINE)
        tests = self.checks.baseline(session, declared, command)
        return self._handle.execute(RecordBaseline(command=command, tests=tests, reason=reason))

    def report(self, gate: str, *, compliant: bool, note: str = "", phase: str | None = None) -> Outcome:
        """Record a reviewer's finding about a constitution whose articles no command can check."""
        key = live_phase(self._handle.state, phase)
        declared = find_gate(self._handle.state, key, gate)
        if declared.is_reviewed:
            return self._review(declared, key, compliant=compliant, note=note)
        if not declared.is_reported:
            raise Refused(f"gate {gate} of {key} is not reported", way_out=declared.way_out(key, GateState()))
        if compliant:
            self._handle.check_may_decide(Decision.REPORT)
        receipt = self.checks.reported(compliant=compliant, note=note)
        return self._handle.execute(CheckGate(phase=key, gate=gate, receipt=receipt))

    def _review(self, gate: Gate, phase: str, *, compliant: bool, note: str) -> Outcome:
        """Record the report of an agent about the work of others. Refuses authors, and agents that they started."""
        from detent.core.gate.evidence import Review  # noqa: PLC0415 - few gates are reviewed
        from detent.engine.gates.reviewing import authors_of, reviewers  # noqa: PLC0415

        session, name = self._handle.state, gate_name(gate)
        if not note.strip():
            raise Refused(f"gate {name} needs a report", way_out=f"detent gate report {name} … -m 'what you looked at'")
        asked = reviewers(self._project, session, phase, gate)
        authors = authors_of(self._project, session, self._handle.log(), gate.reviewed_phases or (phase,))
        if not authors:
            raise Refused(
                f"gate {name} of {phase} cannot be reviewed: no agent is recorded as the author of the work",
                way_out=f"as a person, detent approve {phase} --gate {name} -m WHY",
            )
        for reviewer in asked:
            problem = gate.cannot_review(reviewer, authors)
            if problem is not None:
                raise Refused(
                    f"gate {name} of {phase}: {problem}",
                    way_out="let an agent of another client report; or, as a person, "
                    f"detent approve {phase} --gate {name} -m WHY",
                )
        review = Review(reviewer=asked[0], authors=tuple(authors), text=redact_text(note)[:MAX_REVIEW])
        receipt = self.checks.reviewed(gate, review, compliant=compliant)
        return self._handle.execute(CheckGate(phase=phase, gate=name, receipt=receipt))
