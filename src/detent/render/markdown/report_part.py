"""The parts of a session's report that are tables and lists: gates, failures, people, tasks, checkpoints."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from detent.core.checkpoint.checkpoint import Taken
from detent.core.gate import Gate, gate_name
from detent.core.gate.evidence import NOTHING_KNOWN, Receipt
from detent.core.gate.judge import evidence_of, judge_recorded
from detent.core.gate.kind import Evidence
from detent.core.session.attempts import AttemptRecord
from detent.core.session.events import (
    CheckpointTaken,
    Commit,
    EscalationRaised,
    EscalationsResolved,
    GateApproved,
    PhaseReviewed,
    QuestionAnswered,
    QuestionAsked,
    QuestionReplied,
    SessionCancelled,
    SessionCompleted,
    VoteCast,
)
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.task.row import Row
from detent.core.task.title import escaped

_MOST_FAILURES, _MOST_TASKS, _MOST_CHECKPOINTS = 50, 200, 60
_TAIL_LINES, _TAIL_COLUMNS = 8, 160


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table without its empty columns; nothing if there are no rows."""
    lines = list(rows)
    used = [at for at in range(len(head)) if any(row[at] for row in lines)]
    if not used:
        return
    yield f"| {' | '.join(head[at] for at in used)} |"
    yield f"|{'---|' * len(used)}"
    yield from (f"| {' | '.join(row[at] for at in used)} |" for row in lines)


def gate_lines(session: Session) -> Iterator[str]:
    if not session.gates_apply:
        yield "Gates were off: no evidence was required."
        return
    yield from table(
        ("Phase", "Gate", "Verdict", "Evidence"),
        (
            tuple(map(escaped, (key, gate_name(gate), *_proved(session, key, gate))))
            for key in session.workflow.order
            for gate in session.workflow.by_key[key].gates
        ),
    )


def _proved(session: Session, key: str, gate: Gate) -> tuple[str, str]:
    """The verdict, and the evidence for it."""
    evidence = evidence_of(session, key, gate, NOTHING_KNOWN)
    if evidence.gate.approved_by is not None:
        return "opened by hand", _proof(gate, evidence)
    if evidence.state.status is Status.SKIPPED or not evidence.state.attempt:
        return "not reached", ""
    return str(judge_recorded(session, key, gate).verdict), _proof(gate, evidence)


def _proof(gate: Gate, evidence: Evidence) -> str:
    at_gate = evidence.gate
    if at_gate.approved_by is not None:
        return f"{at_gate.approved_by}: {at_gate.approval_reason}"
    if at_gate.receipt is not None:
        times = f", run {at_gate.iterations}" if at_gate.iterations > 1 else ""
        return _receipt_text(at_gate.receipt) + times
    if at_gate.votes:
        words = {True: "approved", False: "rejected"}
        votes = (f"{who} {words[vote.approve]}: {vote.reason}" for who, vote in at_gate.votes.items())
        return "; ".join(vote.removesuffix(": ") for vote in votes)
    return gate.proof(evidence)


def _receipt_text(receipt: Receipt) -> str:
    code = "" if receipt.exit_code is None else f"exit code {receipt.exit_code}"
    seen = "observed in the agent's shell" if receipt.observed else ""
    covered = "" if receipt.coverage is None else f"coverage {receipt.coverage:g} %"
    return ", ".join(part for part in (receipt.command or "reported", code, covered, seen) if part)


def failure_lines(tried: Sequence[Tried]) -> Iterator[str]:
    failed = [attempt for attempt in tried if attempt.error or attempt.closed]
    for attempt in failed[-_MOST_FAILURES:]:
        how = f" {escaped(attempt.how)}" if attempt.how not in ("completed", "") else ""
        reason = f": {escaped(attempt.error)}" if attempt.error else ""
        yield f"- **{escaped(attempt.phase)}**, attempt {attempt.attempt}{how}{reason}"
        for check in attempt.closed:
            code = f", exit code {check.receipt.exit_code}" if check.receipt.exit_code is not None else ""
            error = f": {escaped(check.receipt.error)}" if check.receipt.error else ""
            yield f"  - {_clock(check.at)} gate {escaped(check.gate)} {check.receipt.result}{code}{error}"
        if attempt.closed:
            yield from _fenced(attempt.closed[-1].receipt.tail, "    ")
    if len(failed) > _MOST_FAILURES:
        yield f"- and {len(failed) - _MOST_FAILURES} earlier ones"


def _fenced(text: str, indent: str) -> Iterator[str]:
    """The first lines, in a fence that is longer than any in them."""
    lines = [line.rstrip()[:_TAIL_COLUMNS] for line in text.splitlines() if line.strip()][:_TAIL_LINES]
    if not lines:
        return
    fence = "`" * max(3, 1 + max(_longest_run(line) for line in lines))
    yield ""
    yield f"{indent}{fence}text"
    yield from (indent + "".join(c if c.isprintable() else " " for c in line) for line in lines)
    yield f"{indent}{fence}"
    yield ""


def _longest_run(line: str) -> int:
    longest = run = 0
    for character in line:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest


def question_lines(commits: Sequence[Commit]) -> Iterator[str]:
    asked: dict[str, tuple[str, str]] = {}
    answered: dict[str, str] = {}
    for commit in commits:
        for event in commit.events:
            match event:
                case QuestionAsked():
                    asked[event.id] = (event.phase, event.text)
                case QuestionReplied():
                    answered[event.id] = f"{escaped(event.answer)} ({escaped(commit.by)}, {_clock(commit.at)})"
                case QuestionAnswered() if event.choice:
                    yield f"- {escaped(event.phase)}, {escaped(event.gate)}: {escaped(event.choice)}"
                case _:
                    pass
    for key, (phase, text) in asked.items():
        yield f"- {escaped(phase)} asked: {escaped(text)}"
        yield f"  - {answered.get(key, 'not answered')}"


def decision_lines(commits: Sequence[Commit]) -> Iterator[str]:
    """Escalations with their decisions, reviews, votes, and gates that were opened by hand."""
    raised: list[str] = []
    for commit in commits:
        who = f"{escaped(commit.by)}, {_clock(commit.at)}"
        for event in commit.events:
            match event:
                case EscalationRaised():
                    raised.append(f"{escaped(event.phase)}: {escaped(event.detail)} ({escaped(event.kind)})")
                case EscalationsResolved():
                    why = f": {escaped(event.reason)}" if event.reason else ""
                    yield from _resolved(raised, f"{escaped(event.action)} ({who}){why}")
                    raised = []
                case SessionCancelled() | SessionCompleted() if raised:
                    yield from _resolved(raised, f"the session ended ({who})")
                    raised = []
                case GateApproved():
                    opened = f"{escaped(event.gate)} of {escaped(event.phase)} was opened by hand"
                    yield f"- {opened} ({who}): {escaped(event.reason)}"
                case VoteCast():
                    vote = "approved" if event.approve else "rejected"
                    why = f": {escaped(event.reason)}" if event.reason else ""
                    yield f"- {escaped(event.approver)} {vote} {escaped(event.gate)} of {escaped(event.phase)}{why}"
                case PhaseReviewed():
                    why = f": {escaped(event.note)}" if event.note else ""
                    yield f"- {escaped(event.phase)} was reviewed: {escaped(event.decision)} ({who}){why}"
                case _:
                    pass
    yield from _resolved(raised, "still open")


def _resolved(raised: Iterable[str], how: str) -> Iterator[str]:
    for escalation in raised:
        yield f"- {escalation}"
        yield f"  - {how}"


def task_lines(session: Session) -> Iterator[str]:
    rows: list[Row] = list(session.tasks)
    yield from table(
        ("Task", "Title", "Status", "Attempts", "Agent", "Reason"),
        (
            tuple(map(escaped, (row.id, row.title, row.status, str(row.attempts or ""), row.agent, row.reason or "")))
            for row in rows[:_MOST_TASKS]
        ),
    )
    if len(rows) > _MOST_TASKS:
        yield ""
        yield f"And {len(rows) - _MOST_TASKS} more."


def checkpoint_lines(session: Session, commits: Sequence[Commit]) -> Iterator[str]:
    taken = [
        (commit.at, event)
        for commit in commits
        for event in commit.events
        if isinstance(event, CheckpointTaken) and event.taken is not Taken.SAFETY
    ]
    if len(taken) > _MOST_CHECKPOINTS:
        yield f"The last {_MOST_CHECKPOINTS} of {len(taken)} checkpoints."
        yield ""
    rows = (
        (f"`{event.name}`", _clock(at), str(event.taken), str(event.tree.files), f"`detent rollback {event.name}`")
        for at, event in taken[-_MOST_CHECKPOINTS:]
    )
    yield from table(("Checkpoint", "When", "Outcome", "Files", "Command"), rows)
    if taken:
        yield ""
        yield f"Add `--session {session.id}` if it is not the active session, and `--dry-run` to see the plan first."


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
