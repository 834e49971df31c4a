"""Briefings for an agent that starts or resumes: the state of the session, and its assignment."""

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

REPORT = (
    "End your answer with the lines Summary:, Deliverables: and Context for next:, "
    "and with Status: failed if it did not work."
)


def briefing(session: Session, judged: Mapping[str, Sequence[Judgement]], handovers: Sequence[Handover]) -> str:
    lines = [f"Detent holds this work to the workflow {session.workflow.name}: {session.task}", ""]
    lines += [
        f"{_MARKS[session.phases[key].status]} {key} ({session.phases[key].agent or 'anyone'})"
        for key in session.workflow.order
    ]
    for handover in handovers:
        lines += ["", *_handover_lines(session, handover, judged.get(handover.phase, ()))]
    if session.escalations:
        lines += [
            "",
            "A person must decide first:",
            *(f"- {each.phase}: {each.detail}" for each in session.escalations),
        ]
    elif not handovers and session.ready:
        lines += ["", f"Next: detent begin {session.ready[0]}"]
    lines += [
        "",
        "detent status shows the state, detent why explains what blocks it, detent finish -m SUMMARY finishes a phase.",
    ]
    return "\n".join(lines)


def assignment(session: Session, handover: Handover, judged: Sequence[Judgement]) -> str:
    """The assignment of the agent of a phase: its handover, and how to report."""
    head = f"You work on one phase of this task: {session.task}"
    return "\n".join([head, *_handover_lines(session, handover, judged), REPORT])


def todos(session: Session) -> str:
    """The phases as a todo list, for clients that keep one."""
    words = {Status.COMPLETED: "completed", Status.IN_PROGRESS: "in_progress"}
    titles = {key: session.workflow.by_key[key].title or key for key in session.active_order}
    lines = [
        f"- {title}: {words.get(session.phases[key].status, 'pending')} (activeForm: Working on {title})"
        for key, title in titles.items()
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
    lines += [
        f"Gate {gate.gate} is {gate.verdict}: {gate.reason}" for gate in judged if gate.verdict is not Verdict.PASS
    ]
    return lines
