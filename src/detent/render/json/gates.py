"""The verdicts of the gates of phases, for programs, with the tests that the last run of each names."""

from collections.abc import Mapping, Sequence
from typing import Any

from detent.core.gate.evidence import Judgement
from detent.core.session.session import Session


def gates_record(session: Session, judged: Mapping[str, Sequence[Judgement]]) -> dict[str, Any]:
    named: dict[str, dict[str, dict[str, tuple[str, ...]]]] = {}
    for phase, judgements in judged.items():
        states = session.phases[phase].gates
        for judgement in judgements:
            receipt = states[judgement.gate].receipt if judgement.gate in states else None
            if receipt is not None and receipt.named_tests:
                named.setdefault(phase, {})[judgement.gate] = receipt.named_tests
    return {"session": session.id, "gates": judged, "named": named}
