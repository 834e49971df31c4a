"""Verifies the proof of a signed decision: who signed it, and how strong that is.

Whether the statement is about the decision at hand is asked elsewhere, see `core/decision/matching.py`.
"""

from typing import NamedTuple, Protocol

from detent.core.actor import Assurance, Proof
from detent.core.decision.approvers import Approvers, SshKey, WebAuthnKey
from detent.core.decision.statement import Statement, read_statement
from detent.engine.ssh_signatures import verify_ssh
from detent.engine.webauthn import verify_webauthn
from detent.errors import Invalid, Refused


class Verified(NamedTuple):
    """The approver who signed."""

    name: str
    roles: tuple[str, ...]
    assurance: Assurance
    statement: Statement


class Signer(Protocol):
    """Signs a statement for a person."""

    def identity(self, approvers: Approvers) -> str:
        """The approver who signs; `Refused` if the key is not known."""
        ...

    def sign(self, statement: Statement) -> Proof: ...


def verify_proof(proof: Proof, approvers: Approvers) -> Verified:
    """The approver who signed the proof's statement, and the assurance; `Refused` with the reason if not proven."""
    owned = approvers.owner(proof.key)
    if owned is None:
        known = ", ".join(approvers.names) or "no approver"
        raise Refused(
            f"the key {proof.key[:80] or '(none)'} belongs to no approver; approvers.toml lists {known}",
            way_out="detent approver add NAME --public-key FILE, signed by one of them",
        )
    try:
        statement = read_statement(proof.statement)
        match owned.key:
            case SshKey():
                assurance = verify_ssh(proof, owned.key)
            case WebAuthnKey():
                assurance = verify_webauthn(proof, owned.key, statement)
    except Invalid as error:
        raise Refused(f"the proof of {owned.approver.name} cannot be read: {error.message}") from error
    return Verified(owned.approver.name, owned.approver.roles, assurance, statement)
