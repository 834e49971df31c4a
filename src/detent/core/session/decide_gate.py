"""Decides commands about gates, agents, questions, escalations and reviews."""

from typing import assert_never

from detent.core.gate import Gate, Opener, gate_name
from detent.core.gate.evidence import Facts, GateState, Receipt, Result
from detent.core.gate.state import gate_after
from detent.core.limits import MAX_NAME, MAX_REASON, check_text, cut
from detent.core.session import commands, events
from detent.core.session.budget import budget_escalation
from detent.core.session.commands import GateCommand, Redo
from detent.core.session.decide_phase import checked_report, decide_phase, known_phase, with_completion
from detent.core.session.events import Event
from detent.core.session.session import RESOLUTIONS, Question, Session
from detent.core.session.status import Status
from detent.core.testrun.baseline import OTHERS, KnownTests
from detent.errors import Invalid, NotFound, Refused

DECISIONS = ("continue", "review", "redo")
#: The most questions that can be open at once, and the most choices of one.
MAX_QUESTIONS = 20
MAX_CHOICES = 20
#: The most lost tests that one decision accepts by name.
MAX_ACCEPTED = 1_000


def decide_gate(session: Session, command: GateCommand, facts: Facts) -> tuple[Event, ...]:
    match command:
        case commands.CheckGate():
            return _check(session, command, facts)
        case commands.AcceptLoss():
            return (_accept_loss(session, command),)
        case commands.SetGateCommand():
            return (_set_command(session, command),)
        case commands.RecordBaseline():
            return (_record_baseline(session, command),)
        case commands.Answer():
            return (_answer(session, command),)
        case commands.Approve():
            return (_approve(session, command),)
        case commands.Override():
            phase = _live(session, command.phase)
            find_gate(session, phase, command.gate)
            reason = check_text("a reason", command.reason, MAX_REASON)
            return (events.GateApproved(phase=phase, gate=command.gate, reason=reason),)
        case commands.RecordAgentStarted():
            phase = _live(session, command.phase)
            agent, agent_id, sandboxed = command.agent, command.agent_id, command.sandboxed
            return (events.AgentLaunched(phase=phase, agent=agent, agent_id=agent_id, sandboxed=sandboxed),)
        case commands.RecordAgentEnded():
            return (_agent_ended(session, command),)
        case commands.Ask():
            return (_ask(session, command),)
        case commands.Reply():
            return _reply(session, command)
        case commands.Escalate():
            phase = known_phase(session, command.phase)
            detail = cut(command.detail, MAX_REASON)
            return (events.EscalationRaised(kind=command.kind, phase=phase, gate=command.gate, detail=detail),)
        case commands.Resolve():
            return _resolve(session, command)
        case commands.Review():
            return _review(session, command, facts)
        case _:
            assert_never(command)


def find_gate(session: Session, phase: str, name: str) -> Gate:
    gate = session.workflow.by_key[phase].gate(name)
    if gate is not None:
        return gate
    raise NotFound(f"phase {phase} has no gate {name}; it has {_gate_names(session, phase)}")


def _gate_names(session: Session, phase: str) -> str:
    return ", ".join(map(gate_name, session.workflow.by_key[phase].gates)) or "none"


def _check(session: Session, command: commands.CheckGate, facts: Facts) -> tuple[Event, ...]:
    phase = _live(session, command.phase)
    gate = find_gate(session, phase, command.gate)
    if gate.opened_by is not Opener.RUN:
        raise Refused(f"gate {command.gate} of {phase} is not decided by a run")
    event = events.GateChecked(phase=phase, gate=command.gate, receipt=command.receipt)
    before = session.phases[phase].at_gate(command.gate)
    after = gate_after(before, event, at=facts.now, by="")
    exhausted = None if command.receipt.aside is not None else gate.exhausted(after, session.baseline)
    raised = () if exhausted is None else (_exhaustion(phase, command.gate, after, exhausted),)
    return (
        event,
        *_first_baseline(session, gate, command.receipt),
        *raised,
        *budget_escalation(session, phase, facts.now),
    )


def _first_baseline(session: Session, gate: Gate, receipt: Receipt) -> tuple[events.BaselineRecorded, ...]:
    """The baseline of the gate's command, from the first whole run of it that passed.

    If test files had changed before that run, the tests of the protected run are the ones that stood at the start.
    """
    key = gate.runnable() or ""
    stood = receipt.protected if receipt.protected is not None and receipt.protected.tests is not None else receipt
    is_whole = receipt.result is Result.PASSED and receipt.aside is None
    if not is_whole or stood.tests is None or key in session.baseline.tests:
        return ()
    tests = KnownTests(count=stood.tests.passed, names=stood.names)
    return (events.BaselineRecorded(command=key, tests=tests),)


def _accept_loss(session: Session, command: commands.AcceptLoss) -> events.LossAccepted:
    phase = known_phase(session, command.phase)
    gate = find_gate(session, phase, command.gate)
    if not command.names:
        raise Invalid("name the tests to accept, or say --all", way_out="detent gates lists them")
    if len(command.names) > MAX_ACCEPTED:
        raise Invalid(
            f"{len(command.names)} tests are more than the {MAX_ACCEPTED} that can be accepted by name",
            way_out=f"detent gate baseline {command.gate} -m WHY makes the present tests the baseline",
        )
    receipt = session.phases[phase].at_gate(command.gate).receipt
    lost, count = (receipt.lost, receipt.lost_count) if receipt is not None else ({}, 0)
    failing = receipt.protected.failing if receipt is not None and receipt.protected is not None else ()
    accepts = receipt is not None and gate.accepts_findings
    findings, finding_count = (receipt.findings, receipt.finding_count) if accepts and receipt is not None else ((), 0)
    known = {*lost, *failing, *findings}
    unknown = [name for name in command.names if name not in known and not name.startswith(OTHERS)]
    if unknown and len(lost) == count and len(findings) == finding_count:
        raise NotFound(
            f"{', '.join(unknown[:3])} is not among what keeps gate {command.gate} of {phase} closed: "
            f"{', '.join(sorted(known)) or 'none'}",
            way_out=f"detent gates {phase}",
        )
    return events.LossAccepted(
        phase=phase,
        gate=command.gate,
        names=tuple(check_text("a test", name, MAX_REASON) for name in command.names),
        reason=check_text("a reason", command.reason, MAX_REASON),
    )


def _set_command(session: Session, command: commands.SetGateCommand) -> events.GateCommandSet:
    line = check_text("a command", command.command, MAX_REASON)
    having = [
        key
        for key in ([known_phase(session, command.phase)] if command.phase else session.workflow.order)
        for gate in session.workflow.by_key[key].gates
        if gate_name(gate) == command.gate and session.phases[key].status is not Status.COMPLETED
    ]
    if not having:
        raise NotFound(f"no phase that is still to be finished has a gate {command.gate}", way_out="detent gates")
    for key in having:
        find_gate(session, key, command.gate).with_command(line)
    reason = check_text("a reason", command.reason, MAX_REASON)
    return events.GateCommandSet(gate=command.gate, phases=tuple(having), command=line, reason=reason)


def _record_baseline(
    session: Session, command: commands.RecordBaseline
) -> events.BaselineRecorded | events.BaselineReplaced:
    if command.command not in session.baseline.tests:
        return events.BaselineRecorded(command=command.command, tests=command.tests)
    reason = check_text("a reason to replace the baseline", command.reason, MAX_REASON)
    return events.BaselineReplaced(command=command.command, tests=command.tests, reason=reason)


def _exhaustion(phase: str, gate: str, state: GateState, why: str) -> events.EscalationRaised:
    receipt = state.receipt or Receipt(result=Result.UNCLEAR)
    lost = f"it lost {receipt.lost_count} of the tests of the baseline" if receipt.lost_count else ""
    covered = f"coverage is {receipt.coverage:g} %" if receipt.coverage is not None else ""
    error = receipt.error or lost or covered or "no reason was given"
    times = f"the same failure {state.repeats} times" if why == "circuit_breaker" else f"{state.iterations} runs"
    return events.EscalationRaised(kind=why, phase=phase, gate=gate, detail=f"{gate}: {times} without success: {error}")


def _answer(session: Session, command: commands.Answer) -> events.QuestionAnswered:
    phase = _live(session, command.phase)
    gate = find_gate(session, phase, command.gate) if command.gate is not None else _answer_gate(session, phase)
    if gate is None:
        raise NotFound(f"phase {phase} has no gate that an answer opens; it has {_gate_names(session, phase)}")
    return events.QuestionAnswered(phase=phase, gate=gate_name(gate), choice=command.choice)


def _approve(session: Session, command: commands.Approve) -> Event:
    phase = _live(session, command.phase)
    gate = find_gate(session, phase, command.gate) if command.gate is not None else _voted_gate(session, phase)
    name = gate_name(gate)
    reason = check_text("a reason", command.reason, MAX_REASON)
    if gate.opened_by is Opener.VOTE:
        gate.check_voter(phase, command.identity, command.stands_for)
        return events.VoteCast(
            phase=phase,
            gate=name,
            approver=command.identity,
            stands_for=command.stands_for,
            approve=command.approve,
            reason=reason,
        )
    if not command.approve:
        raise Refused(f"gate {name} of {phase} is not voted on; it can only be opened by hand")
    if command.stands_for:
        raise Refused(
            f"gate {name} of {phase} is not voted on, so an approval cannot stand for {command.stands_for}",
            way_out=f"detent approve {phase} --gate {name} -m WHY",
        )
    return events.GateApproved(phase=phase, gate=name, reason=reason)


def _agent_ended(session: Session, command: commands.RecordAgentEnded) -> events.AgentEnded:
    phase = _live(session, command.phase) if command.phase is not None else _phase_of_agent(session, command.agent_id)
    report = checked_report(command.report) if command.report is not None else None
    return events.AgentEnded(phase=phase, agent_id=command.agent_id, succeeded=command.succeeded, report=report)


def _phase_of_agent(session: Session, agent_id: str) -> str:
    for phase in session.workflow.order:
        for entry in session.phases[phase].delegations:
            if entry.agent_id == agent_id and entry.ended_at is None:
                return phase
    raise NotFound(f"no agent {agent_id or '(without an id)'} is running in {session.id}")


def _ask(session: Session, command: commands.Ask) -> events.QuestionAsked:
    if command.phase not in session.in_progress:
        raise Refused(
            f"phase {command.phase} is not in progress, so no agent waits for an answer", way_out="detent status"
        )
    if len(session.questions) >= MAX_QUESTIONS or len(command.choices) > MAX_CHOICES:
        raise Refused(f"at most {MAX_QUESTIONS} questions of {MAX_CHOICES} choices can be open", way_out="detent reply")
    if any(question.id == command.id for question in session.questions):
        raise Refused(f"question {command.id} is open already")
    text = check_text("a question", command.text, MAX_REASON)
    choices = tuple(dict.fromkeys(check_text("a choice", choice, MAX_NAME) for choice in command.choices))
    return events.QuestionAsked(id=command.id, phase=command.phase, text=text, choices=choices)


def _reply(session: Session, command: commands.Reply) -> tuple[Event, ...]:
    question = _open_question(session, command.id)
    answer = check_text("an answer", command.answer, MAX_REASON)
    if question.choices and answer not in question.choices:
        raise Invalid(f"{answer[:80]!r} is none of the choices: {', '.join(question.choices)}")
    replied = events.QuestionReplied(id=question.id, phase=question.phase, answer=answer)
    gate = _answer_gate(session, question.phase)
    if gate is None or not session.gates_apply:
        return (replied,)
    choice = answer if answer in gate.choices else None
    return replied, events.QuestionAnswered(phase=question.phase, gate=gate_name(gate), choice=choice)


def _open_question(session: Session, id_: str | None) -> Question:
    """The named question; without a name, the only open one."""
    matches = [question for question in session.questions if id_ in (None, question.id)]
    if len(matches) == 1:
        return matches[0]
    ids = ", ".join(question.id for question in session.questions) or "none"
    if not matches:
        raise NotFound(f"no question {f'{id_} ' if id_ else ''}is open; open are: {ids}")
    raise Refused(f"{len(matches)} questions are open: {ids}; say which one you answer")


def _resolve(session: Session, command: commands.Resolve) -> tuple[Event, ...]:
    if command.action not in RESOLUTIONS:
        raise Invalid(f"{command.action!r} resolves nothing; say {', '.join(RESOLUTIONS)}")
    asked = [entry for entry in session.escalations if command.phase in (None, entry.phase)]
    if not asked:
        raise Refused("nothing waits for a decision", way_out="detent why")
    resolved = events.EscalationsResolved(action=command.action, reason=command.reason, phase=command.phase)
    match command.action:
        case "skip":
            reason = command.reason or "; ".join(entry.detail for entry in asked)
            held = dict.fromkeys(entry.phase for entry in asked)
            unsettled = [key for key in held if not session.phases[key].status.is_settled]
            skipped = tuple(events.PhaseSkipped(phase=key, reason=cut(reason, MAX_REASON)) for key in unsettled)
            return (resolved, *with_completion(session, skipped)) if skipped else (resolved,)
        case "cancel":
            reason = command.reason or asked[0].detail
            return (resolved, events.SessionCancelled(reason=cut(reason, MAX_REASON)))
        case _:
            return (resolved,)


def _review(session: Session, command: commands.Review, facts: Facts) -> tuple[Event, ...]:
    waiting = session.awaiting_review
    if command.decision not in DECISIONS:
        raise Invalid(f"{command.decision!r} is no answer to a review; say {', '.join(DECISIONS)}")
    if not waiting:
        raise Refused("no phase waits for a review")
    phase = waiting[0] if command.phase is None else known_phase(session, command.phase)
    if phase not in waiting:
        raise Refused(f"phase {phase} does not wait for a review; {', '.join(waiting)} does")
    event = events.PhaseReviewed(phase=phase, decision=command.decision, note=cut(command.note, MAX_REASON))
    limit = session.options.supervised.max_redos if session.options.supervised else 0
    if command.decision == "redo":
        if session.phases[phase].review_redos >= limit:
            raise Refused(
                f"{phase} was redone {limit} times already", way_out="detent review continue, or detent cancel"
            )
        return (event, *decide_phase(session, Redo(phase=phase, reason=command.note), facts))
    return with_completion(session, (event,))


def _live(session: Session, phase: str) -> str:
    key = known_phase(session, phase)
    if session.phases[key].status is not Status.IN_PROGRESS:
        raise Refused(f"phase {key} is {session.phases[key].status}, not in progress", way_out="detent why")
    return key


def _voted_gate(session: Session, phase: str) -> Gate:
    gates = [gate for gate in session.workflow.by_key[phase].gates if gate.opened_by is Opener.VOTE]
    if len(gates) == 1:
        return gates[0]
    raise Refused(f"say which gate of {phase} you approve with --gate; it has {_gate_names(session, phase)}")


def _answer_gate(session: Session, phase: str) -> Gate | None:
    gates = session.workflow.by_key[phase].gates
    return next((gate for gate in gates if gate.opened_by is Opener.ANSWER), None)
