"""The `consensus` gate: a quorum of the named approvers must agree."""

from detent.core.actor import Assurance
from detent.core.gate.kind import GateSettings
from detent.core.gate.voted import Voted


class ConsensusGate(GateSettings, Voted, frozen=True, kw_only=True, tag="consensus"):
    """A quorum of the named approvers must agree."""

    needs_quorum = True

    approvers: tuple[str, ...]
    quorum: int
    #: Role to the identities that fill it; those of [decisions.roles] are added when a session starts.
    roles: dict[str, tuple[str, ...]] = {}
    #: The weakest assurance of a vote: attended, signed or hardware; without it, that of [decisions].
    assurance: Assurance | None = None
    #: Set when a session starts with a lower quorum.
    lowered_from: int | None = None

    def requirement(self, phase: str, folder: str) -> str:
        who = ", ".join(self.approvers) if self.lowered_from is None else "the people of this project"
        return f"{self.quorum} of {who} must approve. They are asked; you are not."
