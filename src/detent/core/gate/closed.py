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
    """Whether only gates that a person opens are closed, and no approver has rejected the phase.

    A gate that runs last waits until they are open.
    """
    closed = [judgement for judgement in closed_gates(judged) if not _runs_later(gates, judgement)]
    personal = all(is_personal(gates, judgement, sees_tests=sees_tests) for judgement in closed)
    return bool(closed) and personal and not is_rejected(judged)


def _runs_later(gates: Sequence[Gate], judged: Judgement) -> bool:
    is_last = any(gate.runs_last for gate in gates if gate_name(gate) == judged.gate)
    return is_last and judged.verdict in (Verdict.PENDING, Verdict.STALE)
