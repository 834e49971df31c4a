"""The `approval` gate: a person must agree, one of the named or anyone."""

from detent.core.actor import Assurance
from detent.core.gate.kind import GateSettings
from detent.core.gate.voted import Voted


class ApprovalGate(GateSettings, Voted, frozen=True, kw_only=True, tag="approval"):
    """A person must agree: one of the named, or anyone."""

    approvers: tuple[str, ...] = ()
    #: Role to the identities that fill it; those of [decisions.roles] are added when a session starts.
    roles: dict[str, tuple[str, ...]] = {}
    #: The weakest assurance of a vote: attended, signed or hardware; without it, that of [decisions].
    assurance: Assurance | None = None
    #: Set when a session starts with a lower quorum.
    lowered_from: int | None = None

    def requirement(self, phase: str, folder: str) -> str:
        return f"{' or '.join(self.approvers) or 'a person'} must approve. They are asked; you are not."
