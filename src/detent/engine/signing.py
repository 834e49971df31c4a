"""Lets a person sign or confirm a decision: builds the statement about it, and asks before any lock is taken."""

import os
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from detent.core.actor import Actor, Channel, Proof
from detent.core.counted import listed
from detent.core.decision.approvers import NOBODY
from detent.core.decision.statement import NONCE_BYTES, Statement, read_statement
from detent.core.decision.subject import Subject
from detent.core.path_text import to_text
from detent.core.session.session import Session
from detent.engine.policy import Decision, Witness
from detent.errors import Invalid, Refused

if TYPE_CHECKING:
    from detent.core.decision.approvers import Approvers
    from detent.engine.project import Project
    from detent.engine.proofs import Signer
    from detent.objects.universe import Files
    from detent.store.port import Cursor

#: The most files that a refusal names.
_MAX_NAMED = 5


def is_signed(actor: Actor) -> bool:
    return actor.proof is not None and bool(actor.proof.signature)


def check_files_are_here(project: "Project", session: Session, phase: str) -> None:
    """Refuse to sign for work of another machine unless its files are here: the signature is for the files here."""
    elsewhere = project.checkpoints.newest_elsewhere(session, phase) if phase else None
    if elsewhere is None:
        return
    from detent.engine.checkpoints.travel import differing  # noqa: PLC0415 - few projects need it

    if paths := sorted(to_text(path) for changed in differing(project, session.id) for path in changed):
        raise Refused(
            f"the files here are not those of the machine that does {phase}; "
            f"they differ in {listed(paths, _MAX_NAMED)}",
            way_out="detent files bring, then sign",
        )


def statement_about(
    project: "Project",
    session: Session,
    decision: Decision,
    about: Subject,
    *,
    position: "Cursor",
    now: datetime,
    files: "Files | None" = None,
) -> Statement:
    """The statement about a decision in the session at this position, and about these files."""
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
        tree=files.digest if files is not None else "",
        at=now,
        nonce=os.urandom(NONCE_BYTES).hex(),
    )


def proven(
    project: "Project", actor: Actor, statement: Statement, signer: "Signer | None", files: "Files | None" = None
) -> tuple[Actor, Witness | None]:
    """The actor after the person has signed or confirmed the statement, and what the commit compares it with.

    `files` are those that the statement is about. Refuses if they changed while the person decided.
    """
    if signer is not None:
        actor = replace(actor, proof=signer.sign(statement))
    elif actor.channel is not Channel.PAGE:
        # A page shows the decision itself, and its button is the answer.
        project.confirm(statement)
    now = project.files() if files is not None else None
    if files is not None and now is not None and (changed := files.changed(now)):
        raise Refused(
            f"the files are not those that were shown; changed meanwhile: {listed(changed, _MAX_NAMED)}",
            way_out="look at them, and decide again",
        )
    if signer is not None:
        return actor, witness_of(project, actor, statement.session)
    return actor, Witness(project.id, NOBODY, now.digest if now is not None else "", shown=statement)


def witness_of(project: "Project", actor: Actor, session: str) -> Witness | None:
    """The facts that a signed decision about the session is compared with; None if the actor has signed nothing."""
    if actor.proof is None or not is_signed(actor):
        return None
    files = project.working_on(session, _phase(actor.proof)).files()
    return Witness(project.id, project.approvers.read(), files.digest)


def _phase(proof: Proof) -> str | None:
    """The phase that the signed statement names. A statement that cannot be read is refused when it is verified."""
    try:
        return read_statement(proof.statement).phase or None
    except Invalid:
        return None


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
