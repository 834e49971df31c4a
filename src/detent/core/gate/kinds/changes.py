"""The `changes` gate: a phase must leave other files than it began with.

The setting `changes = "required"` of a phase adds it.
"""

from typing import ClassVar

from detent.core.gate.evidence import GateState, Verdict
from detent.core.gate.kind import Evidence, Gate, GateSettings, Opener, Surroundings, gate_name
from detent.core.session.status import Status

#: The reason in a project whose checkpoints do not take all files.
NOT_CAPTURED = 'checkpoints do not take the project\'s files (capture = "tree" under [checkpoint])'


class ChangesGate(GateSettings, frozen=True, kw_only=True, tag="changes"):
    """The phase must leave other files than it began with."""

    opened_by = Opener.WORK
    needs_changes: ClassVar[bool] = True

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        differs = evidence.facts.differs.get(evidence.state.tree or "")
        if differs is None:
            begun = "the files of its begin were not captured" if evidence.state.tree is None else "it was not checked"
            return Verdict.PENDING, f"whether the phase changed a file is not known: {begun}"
        if not differs:
            return Verdict.FAIL, "no file has changed since the phase began, and it must change something"
        return Verdict.PASS, "files have changed since the phase began"

    def way_out(self, phase: str, state: GateState) -> str:
        return f"do the work; or, as a person, detent approve {phase} --gate {gate_name(self)} -m WHY"

    def requirement(self, phase: str, folder: str) -> str:
        return "files of the project must have changed when your turn ends."

    def proof(self, evidence: Evidence) -> str:
        return "files had changed" if evidence.state.status is Status.COMPLETED else ""

    def skipped_because(self, project: Surroundings) -> str | None:
        return None if project.captures_all else f"no changes and regression gates: {NOT_CAPTURED}"


def with_changes(gates: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """The gates of a phase that must change something."""
    return gates if any(gate.needs_changes for gate in gates) else (*gates, ChangesGate())
