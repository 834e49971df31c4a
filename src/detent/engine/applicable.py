"""Which of a workflow's gates can be judged in this project at all.

A gate that nothing could ever open would only teach people to switch gates off. Those are left out when a session
starts, and it is said which and why; everything else holds from then on.
"""

import os

import msgspec

from detent.config.place import Place
from detent.core.gate import Constitution, Delegation, Elicitation, Gate
from detent.core.graph import Phase, Workflow
from detent.engine.stores import checkout_store

INSTALLED = "install/manifest.json"


def applicable(workflow: Workflow, place: Place, *, delegates: bool = False) -> tuple[Workflow, tuple[str, ...]]:
    """The workflow with the gates that apply, and a line for each kind that does not.

    `delegates`: whoever starts the session delegates its phases itself, and records it.
    """
    reasons: dict[str, None] = {}

    def kept(phase: Phase) -> Phase:
        gates = []
        for gate in phase.gates:
            reason = _not_here(gate, place, delegates=delegates)
            if reason is None:
                gates.append(gate)
            else:
                reasons[reason] = None
        return msgspec.structs.replace(phase, gates=tuple(gates))

    phases = tuple(kept(phase) for phase in workflow.phases)
    return msgspec.structs.replace(workflow, phases=phases), tuple(reasons)


def _not_here(gate: Gate, place: Place, *, delegates: bool) -> str | None:
    match gate:
        case Delegation() if delegates:
            return None
        case Constitution() if not os.path.exists(os.path.join(place.base, gate.file)):
            return f"no constitution gate: there is no {gate.file}"
        case Elicitation() if delegates and not is_observed(place):
            return "no elicitation gate: no agent is installed (detent init --agent NAME)"
        case Delegation() | Elicitation() if not is_observed(place):
            return "no delegation and elicitation gates: no agent is installed (detent init --agent NAME)"
    return None


def is_observed(place: Place) -> bool:
    """Whether Detent is installed in a client, and so sees what its agents do."""
    return checkout_store(place.root).written(INSTALLED) > 0
