"""The `consensus` gate: a quorum of the named approvers must agree."""

from detent.core.gate.kind import GateSettings
from detent.core.gate.voted import Voted


class ConsensusGate(GateSettings, Voted, frozen=True, kw_only=True, tag="consensus"):
    """A quorum of the named approvers must agree."""

    needs_quorum = True

    approvers: tuple[str, ...]
    quorum: int

    def requirement(self, phase: str, folder: str) -> str:
        return f"{self.quorum} of {', '.join(self.approvers)} must approve. They are asked; you are not."
