"""The decision of a commit, in the words of a statement. The first decision of a commit is what a person signs.

A commit may hold further events that follow from the first one, such as the phases that `resolve skip` skips. They are
named in the choice, so that a signature covers them.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, assert_never

from detent.core.actor import Assurance
from detent.core.decision.statement import REJECT
from detent.core.gate import Gate, gate_name
from detent.core.session import events
from detent.core.session.session import Session
from detent.errors import Refused

#: The events that are, or may be, a person's decision; `engine/policy.py` says when.
DecisionEvent = (
    events.VoteCast
    | events.GateApproved
    | events.GateChecked
    | events.LossAccepted
    | events.GateCommandSet
    | events.BaselineReplaced
    | events.EscalationsResolved
    | events.PhaseReviewed
    | events.QuestionReplied
    | events.QuestionAnswered
    | events.PhaseSkipped
    | events.SessionCancelled
    | events.SessionCompleted
    | events.SessionReopened
    | events.SessionArchived
    | events.RolledBack
    | events.PhasesImported
    | events.TailSetAside
)
#: The events that may follow a decision in its commit because they are a part of it.
_PARTS: dict[type[DecisionEvent], tuple[type[DecisionEvent], ...]] = {
    events.PhaseSkipped: (events.PhaseSkipped,),
    events.EscalationsResolved: (events.PhaseSkipped, events.SessionCancelled),
    events.QuestionReplied: (events.QuestionAnswered,),
}
#: Decisions about the files of the project: they are about the files that were shown.
_ABOUT_FILES = (
    events.VoteCast,
    events.GateApproved,
    events.PhaseReviewed,
    events.LossAccepted,
    events.GateChecked,
)


class Subject(NamedTuple):
    """The content of a decision, apart from its name."""

    phase: str = ""
    gate: str = ""
    choice: str = ""
    reason: str = ""
    stands_for: str = ""
    #: A vote against.
    is_against: bool = False
    about_files: bool = False

    def decision(self, name: str) -> str:
        """The name of the decision in a statement."""
        return REJECT if self.is_against else name


def subject(decided: Sequence[DecisionEvent]) -> Subject:
    """The subject of a commit whose decisions are these events; `Refused` if they are more than one decision."""
    first, *rest = decided
    parts = _PARTS.get(type(first), ())
    foreign = [type(event).__name__ for event in rest if not isinstance(event, parts)]
    if foreign:
        raise Refused(f"a commit holds one decision, and this one holds {type(first).__name__} and {foreign[0]}")
    return _of(first, rest)._replace(about_files=isinstance(first, _ABOUT_FILES))


def _of(first: DecisionEvent, rest: Iterable[DecisionEvent]) -> Subject:
    skipped = [event.phase for event in (first, *rest) if isinstance(event, events.PhaseSkipped)]
    match first:
        case events.VoteCast():
            return Subject(
                phase=first.phase,
                gate=first.gate,
                reason=first.reason,
                stands_for=first.stands_for,
                is_against=not first.approve,
            )
        case events.GateApproved():
            # It opens the gate alone: a signed vote must not be taken for it.
            return Subject(phase=first.phase, gate=first.gate, choice="by hand", reason=first.reason)
        case events.GateChecked():
            return Subject(phase=first.phase, gate=first.gate, choice="compliant", reason=first.receipt.tail)
        case events.LossAccepted():
            return Subject(phase=first.phase, gate=first.gate, choice=_listed(first.names), reason=first.reason)
        case events.GateCommandSet():
            where = f"{_listed(first.phases)}: {first.command}"
            return Subject(gate=first.gate, choice=where, reason=first.reason)
        case events.BaselineReplaced():
            tests = f"{first.tests.count} tests {first.tests.names or ''}".strip()
            return Subject(choice=f"{first.command}: {tests}", reason=first.reason)
        case events.EscalationsResolved():
            action = " ".join([first.action, _listed(skipped)]).strip()
            return Subject(phase=first.phase or "", choice=action, reason=first.reason)
        case events.PhaseReviewed():
            return Subject(phase=first.phase, choice=first.decision, reason=first.note)
        case events.QuestionReplied():
            return Subject(phase=first.phase, choice=f"{first.id}: {first.answer}")
        case events.QuestionAnswered():
            return Subject(phase=first.phase, gate=first.gate, choice=first.choice or "")
        case events.PhaseSkipped():
            return Subject(phase=first.phase if len(skipped) == 1 else "", choice=_listed(skipped), reason=first.reason)
        case events.SessionCancelled():
            return Subject(reason=first.reason)
        case events.SessionReopened():
            return Subject(reason=first.reason)
        case events.RolledBack():
            choice = rollback_choice(
                first.name, first.to, first.paths, phase_only=first.phase_only, undoes=first.undoes
            )
            return Subject(choice=choice)
        case events.SessionCompleted() | events.SessionArchived() | events.PhasesImported() | events.TailSetAside():
            # Their names say everything.
            return Subject()
        case _:
            assert_never(first)


def rollback_choice(name: str, checkpoint: str, paths: Sequence[str], *, phase_only: bool, undoes: str | None) -> str:
    """The checkpoint, and what comes back from it."""
    what = "phases only" if phase_only else _listed(paths) or "all files"
    return f"{name} {checkpoint}: {what}" + (f"; undoes {undoes}" if undoes else "")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def needed_assurance(session: Session, decided: Iterable[DecisionEvent]) -> Assurance:
    """The weakest assurance that counts: that of the session, or a stronger one of a gate that is opened or left out.

    The setting of a gate counts alone for the votes at it, also if it is weaker than that of the session.
    """
    needed = Assurance.ATTENDED
    for event in decided:
        stated = [gate.assurance for gate in _gates(session, event) if gate.assurance is not None]
        own = [] if stated and isinstance(event, events.VoteCast) else [session.options.assurance]
        needed = strongest([needed, *stated, *own])
    return needed


def strongest(strengths: Iterable[Assurance]) -> Assurance:
    return max(strengths, key=list(Assurance).index)


def _gates(session: Session, event: DecisionEvent) -> list[Gate]:
    """The gates that a decision opens or goes around."""
    if isinstance(event, events.VoteCast | events.GateApproved | events.GateChecked | events.LossAccepted):
        return [gate for gate in _of_phase(session, event.phase) if gate_name(gate) == event.gate]
    if isinstance(event, events.PhaseSkipped):
        return _of_phase(session, event.phase)
    if isinstance(event, events.SessionCompleted):
        unsettled = [key for key in session.workflow.order if not session.phases[key].status.is_settled]
        return [gate for key in unsettled for gate in _of_phase(session, key)]
    return []


def _of_phase(session: Session, phase: str) -> list[Gate]:
    return list(session.workflow.by_key[phase].gates)
