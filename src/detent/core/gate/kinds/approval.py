"""The `approval` gate: a person must agree, one of the named or anyone."""

from detent.core.gate.kind import GateSettings
from detent.core.gate.voted import Voted


class ApprovalGate(GateSettings, Voted, frozen=True, kw_only=True, tag="approval"):
    """A person must agree: one of the named, or anyone."""

    approvers: tuple[str, ...] = ()

    def requirement(self, phase: str, folder: str) -> str:
        return f"{' or '.join(self.approvers) or 'a person'} must approve. They are asked; you are not."
