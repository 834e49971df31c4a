"""Leaves out the gates of a workflow that nothing could open in this project.

A gate that can never open teaches people to switch gates off. `detent start` reports which gates it leaves out and why;
all others hold for the whole session.
"""

import os

import msgspec

from detent.config.place import Place
from detent.core.gate.kind import Surroundings
from detent.core.workflow.graph import Phase, Workflow
from detent.engine.stores import checkout_store

INSTALLED = "install/manifest.json"


def applicable(workflow: Workflow, place: Place, *, delegates: bool = False) -> tuple[Workflow, tuple[str, ...]]:
    """The workflow with the gates that apply, and a line for each kind that does not.

    `delegates`: the caller that starts the session delegates its phases itself and records that.
    """
    reasons: dict[str, None] = {}
    project = Surroundings(
        exists=lambda path: os.path.exists(os.path.join(place.base, path)),
        is_observed=is_observed(place),
        delegates=delegates,
    )

    def kept(phase: Phase) -> Phase:
        gates = []
        for gate in phase.gates:
            reason = gate.skipped_because(project)
            if reason is None:
                gates.append(gate)
            else:
                reasons[reason] = None
        return msgspec.structs.replace(phase, gates=tuple(gates))

    phases = tuple(kept(phase) for phase in workflow.phases)
    return msgspec.structs.replace(workflow, phases=phases), tuple(reasons)


def is_observed(place: Place) -> bool:
    """Whether Detent is installed in a client, and so sees what its agents do."""
    return checkout_store(place.root).written(INSTALLED) > 0
