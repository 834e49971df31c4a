"""What an agent is told when it starts or comes back: where the work stands and what is expected now."""

from collections.abc import Mapping, Sequence

from detent.core.gate.evidence import Judgement, Verdict
from detent.core.session.handover import Handover
from detent.core.session.session import Session
from detent.core.session.status import Status

_MARKS = {
    Status.PENDING: "[ ]",
    Status.IN_PROGRESS: "[>]",
    Status.COMPLETED: "[x]",
    Status.FAILED: "[!]",
    Status.SKIPPED: "[-]",
}


def briefing(session: Session, judged: Mapping[str, Sequence[Judgement]], handovers: Sequence[Handover]) -> str:
    lines = [f"Detent holds this work to the workflow {session.workflow.name}: {session.task}", ""]
    lines += [
        f"{_MARKS[session.phases[key].status]} {key} ({session.phases[key].agent or 'anyone'})"
        for key in session.workflow.order
    ]
    for handover in handovers:
        lines += ["", *_handover_lines(session, handover, judged.get(handover.phase, ()))]
    if session.escalations:
        lines += ["", "A person must decide first:", *(f"- {one.phase}: {one.detail}" for one in session.escalations)]
    elif not handovers and session.ready:
        lines += ["", f"Next: detent begin {session.ready[0]}"]
    lines += [
        "",
        "detent status shows where it stands, detent why what holds it, detent finish -m SUMMARY ends a phase.",
    ]
    return "\n".join(lines)


def assignment(session: Session, handover: Handover, judged: Sequence[Judgement]) -> str:
    """What the agent of a phase hears when it starts: what it is given, and how it reports."""
    lines = [f"You work on one phase of this: {session.task}", *_handover_lines(session, handover, judged)]
    lines.append(
        "End your answer with the lines Summary:, Deliverables: and Context for next:, "
        "and with Status: failed if it did not work."
    )
    return "\n".join(lines)


def todos(session: Session) -> str:
    """The phases as a todo list, for clients that keep one."""
    words = {Status.COMPLETED: "completed", Status.IN_PROGRESS: "in_progress"}
    lines = [
        f"- {session.workflow.by_key[key].title or key}: {words.get(session.phases[key].status, 'pending')}"
        for key in session.active_order
    ]
    return "\n".join(["If you keep a todo list, keep it in step with the workflow:", *lines])


def _handover_lines(session: Session, handover: Handover, judged: Sequence[Judgement]) -> list[str]:
    token = session.token(handover.phase)
    lines = [f"In progress: {handover.phase}, attempt {token.attempt} (token {token})"]
    lines.append(f"Artifacts go to {handover.artifact_path}/")
    for passed in handover.passed:
        lines.append(f"From {passed.phase}: {passed.summary}")
        lines += [f"  read {path}" for path in passed.artifacts]
        lines += [f"  {line}" for line in passed.context.splitlines()]
    lines += [f"Warning: {warning}" for warning in handover.warnings]
    lines += [f"Gate {one.gate} is {one.verdict}: {one.reason}" for one in judged if one.verdict is not Verdict.PASS]
    return lines
