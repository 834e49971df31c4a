"""Closed gates, and who can open them: the agent of the phase, a run, or only a person."""

from collections.abc import Sequence

from detent.core.gate.evidence import Judgement, Verdict
from detent.core.gate.kind import Gate, gate_name
from detent.core.gate.registry import KINDS


def closed_gates(judged: Sequence[Judgement]) -> tuple[Judgement, ...]:
    return tuple(judgement for judgement in judged if judgement.verdict is not Verdict.PASS)


def is_personal(gates: Sequence[Gate], judged: Judgement, *, sees_tests: bool = True) -> bool:
    """Whether only a person can open the gate: by a vote, by an answer, or because no command can judge it.

    `sees_tests`: a gate that asks for tests and names no command can be opened without a person.
    """
    gate = next(gate for gate in gates if gate_name(gate) == judged.gate)
    return gate.needs_person(judged.verdict, sees_tests=sees_tests)


def is_rejected(judged: Sequence[Judgement]) -> bool:
    """Whether an approver rejected the phase, so that waiting for the others is useless."""
    return any(judgement.verdict is Verdict.FAIL and KINDS[judgement.kind].opened_by.is_person for judgement in judged)


def is_held(gates: Sequence[Gate], judged: Sequence[Judgement], *, sees_tests: bool = True) -> bool:
    """Whether only gates that a person opens are closed, and no approver has rejected the phase."""
    closed = closed_now(gates, judged)
    personal = all(is_personal(gates, judgement, sees_tests=sees_tests) for judgement in closed)
    return bool(closed) and personal and not is_rejected(judged)


def closed_now(gates: Sequence[Gate], judged: Sequence[Judgement]) -> tuple[Judgement, ...]:
    """The closed gates, without those that run last and whose turn has not come."""
    last = {gate_name(gate) for gate in gates if gate.runs_last}
    closed = closed_gates(judged)
    now = tuple(each for each in closed if each.gate not in last or each.verdict not in _NOT_RUN)
    return now or closed


#: Verdicts of a check that has not run on the present files.
_NOT_RUN = (Verdict.PENDING, Verdict.STALE)
