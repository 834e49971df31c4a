"""The requests of a run to a person, and the application of the answers."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from detent.core.run.run_event import Need, PersonNeeded
from detent.core.session.open_decision import DecisionKind, OpenDecision
from detent.core.session.session import Session
from detent.engine.decisions import decisions_in_run
from detent.errors import Invalid

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle

_YES, _NO = ("y", "yes"), ("n", "no")


class Person(Protocol):
    """A person at the terminal of a run."""

    def needed(self, needs: Sequence[PersonNeeded]) -> None:
        """Set the open requests; the first one is asked."""
        ...

    def poll(self) -> tuple[PersonNeeded, str] | None:
        """An answer since the last call, with its request; None without one. Never waits."""
        ...

    def show(self, text: str) -> None:
        """Show why an answer could not be applied."""
        ...


#: The kind of a decision to the kind of request that a run makes of it. Others need a command.
_REQUESTS = {
    DecisionKind.QUESTION: Need.ANSWER,
    DecisionKind.ANSWER: Need.ANSWER,
    DecisionKind.ESCALATION: Need.DECISION,
    DecisionKind.BUDGET: Need.DECISION,
    DecisionKind.REVIEW: Need.REVIEW,
    DecisionKind.VOTE: Need.APPROVAL,
    DecisionKind.REPORT: Need.APPROVAL,
}


def needs(
    project: "Project", session: Session, held: Collection[str], *, sees_tests: bool = True
) -> list[PersonNeeded]:
    """All requests to a person, the most urgent first."""
    now = project.clock()
    return [_request(entry, session, now) for entry in decisions_in_run(project, session, held, sees_tests=sees_tests)]


def _request(entry: OpenDecision, session: Session, now: datetime) -> PersonNeeded:
    asked = {question.id: question.text for question in session.questions}
    return PersonNeeded(
        at=now,
        need=_REQUESTS.get(entry.kind, Need.WORK) if entry.is_yours else Need.WORK,
        phase=entry.phase or session.workflow.order[-1],
        text=asked.get(entry.question or "", entry.what),
        way_out=entry.command,
        where=entry.where,
        about=entry.question or entry.gate or entry.task or "",
        choices=entry.choices,
    )


def apply_answer(handle: "SessionHandle", need: PersonNeeded, answer: str) -> None:
    """Carry out the answer of a person; raises a `DetentError` if that is impossible."""
    word, _, rest = answer.strip().partition(" ")
    match need.need:
        case Need.ANSWER if need.about in {question.id for question in handle.state.questions}:
            handle.reply(answer, question=need.about)
        case Need.ANSWER:
            handle.answer(choice=answer.strip() or None, gate=need.about, phase=need.phase)
        case Need.DECISION:
            handle.resolve(word.lower(), rest, phase=need.phase)
        case Need.REVIEW:
            handle.review(word.lower(), phase=need.phase, note=rest)
        case Need.APPROVAL:
            if word.lower() not in (*_YES, *_NO):
                raise Invalid(f"{word[:40]!r} is neither yes nor no", way_out="y WHY, or n WHY")
            approves = word.lower() in _YES
            reason = rest.strip() or ("approved" if approves else "rejected")
            handle.approve(f"{reason}, at the terminal of the run", gate=need.about, phase=need.phase, approve=approves)
        case Need.WORK:
            raise Invalid("this needs a command", way_out=need.way_out)
