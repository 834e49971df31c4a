"""Lets a person sign or confirm a decision: builds the statement about it, and asks before any lock is taken."""

import os
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.core.actor import Actor, Channel, Proof
from detent.core.decision.approvers import NOBODY
from detent.core.decision.statement import NONCE_BYTES, Statement
from detent.core.decision.subject import Subject
from detent.core.session.session import Session
from detent.engine.policy import Decision, Witness

if TYPE_CHECKING:
    from detent.core.decision.approvers import Approvers
    from detent.engine.project import Project
    from detent.engine.proofs import Signer
    from detent.store.port import Cursor


def is_signed(actor: Actor) -> bool:
    return actor.proof is not None and bool(actor.proof.signature)


def statement_about(
    project: "Project", session: Session, decision: Decision, about: Subject, *, position: "Cursor", now: datetime
) -> Statement:
    """The statement about a decision in the session at this position, and about the files of this moment."""
    return Statement(
        project=project.id,
        session=session.id,
        phase=about.phase,
        gate=about.gate,
        attempt=session.phases[about.phase].attempt if about.phase else 0,
        decision=about.decision(decision),
        choice=about.choice,
        reason=about.reason,
        stands_for=about.stands_for,
        version=position.version,
        sum=position.sum,
        tree=project.files().digest if about.about_files else "",
        at=now,
        nonce=os.urandom(NONCE_BYTES).hex(),
    )


def proven(
    project: "Project", actor: Actor, statement: Statement, signer: "Signer | None"
) -> tuple[Actor, Witness | None]:
    """The actor after the person has signed or confirmed the statement, and what the commit compares it with."""
    if signer is not None:
        actor = replace(actor, proof=signer.sign(statement))
        return actor, witness_of(project, actor)
    if actor.channel is not Channel.PAGE:
        # A page shows the decision itself, and its button is the answer.
        project.confirm(statement)
    return actor, Witness(project.id, NOBODY, project.files().digest if statement.tree else "", shown=statement)


def witness_of(project: "Project", actor: Actor) -> Witness | None:
    """What a signed decision is compared with; None if the actor has signed nothing."""
    if not is_signed(actor):
        return None
    return Witness(project.id, project.approvers.read(), project.files().digest)


class Shown(Exception):
    """A statement was made, and is not signed here."""


class Preview:
    """Keeps the statement of a decision instead of signing it."""

    def __init__(self, approver: str) -> None:
        self._approver = approver
        self.statement: Statement | None = None

    def identity(self, approvers: "Approvers") -> str:  # noqa: ARG002 - the interface of a signer
        return self._approver

    def sign(self, statement: Statement) -> Proof:
        self.statement = statement
        raise Shown
