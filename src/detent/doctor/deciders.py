"""Checks that every decision of a person in a record has its proof, and verifies the signatures."""

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import NamedTuple, cast

import msgspec

from detent.config.settings import Settings
from detent.core.actor import Actor, ActorKind, Assurance, Proof
from detent.core.decision.approvers import NOBODY, Approvers
from detent.core.decision.matching import expected, mismatches
from detent.core.decision.statement import Statement
from detent.core.decision.subject import DecisionEvent, needed_assurance, strongest, subject
from detent.core.gate.voted import Voted
from detent.core.session.events import Commit, Event, PhaseBegun, PhaseRedone, PhaseSkipped, VoteCast
from detent.core.session.session import Session
from detent.doctor.verified import Check, Decided, unchecked, wrong
from detent.engine.gates.quorum import all_roles
from detent.engine.policy import MAY_SIGN, Decision, decided, may_decide
from detent.engine.proofs import verify_proof
from detent.engine.webauthn import WEBAUTHN
from detent.errors import DetentError, Refused
from detent.extras import install_command

_GIVE_APPROVERS = "name the list of approvers with --approvers FILE"


class Approved(NamedTuple):
    """A signed decision about files."""

    commit: int
    tree: str


class Deciders:
    """Follows the decisions of one record, commit by commit."""

    def __init__(self, approvers: Approvers | None, floor: Assurance, settings: Settings | None = None) -> None:
        """`floor` is the weakest assurance that counts, whatever the session asked for.

        With `settings`, they and the approvers say who fills a role, instead of the session.
        """
        self._approvers, self._floor = approvers, floor
        self._roles = None if settings is None else all_roles(settings.decisions.roles, approvers or NOBODY)
        self._nonces: dict[str, int] = {}
        self.decisions: list[Decided] = []
        #: By phase: the signed approvals of the attempt in progress, by gate and approver.
        self.approved: dict[str, dict[tuple[str, str], Approved]] = {}

    def commit(self, before: Session, commit: Commit, sums: list[str]) -> Iterator[Check]:
        """The problems of the decisions of a commit; `sums` are those of the commits before it."""
        for event in commit.events:
            if isinstance(event, PhaseBegun | PhaseRedone):
                self.approved.pop(event.phase, None)
        made = decided(before, commit.events)
        if not before.version:
            made = [(decision, event) for decision, event in made if not _is_by_size(before, event)]
        if not made:
            return
        decision, first = made[0]
        changes = [event for _, event in made]
        what = f"{decision}{_where(first)}"
        needed = strongest([needed_assurance(before, changes), self._floor])
        proof, problems, is_verified = commit.actor.proof, list[str](), False
        if proof is None:
            problems.append(f"{what} is a person's decision, and the commit of {commit.by} has no proof of one")
        elif not proof.signature:
            problems += _unsigned_problems(what, commit.actor, proof)
        elif (problem := self._missing(proof)) is not None:
            yield unchecked(f"{what}, signed by {proof.identity}: {problem[0]}", commit.version, problem[1])
        else:
            signed_problems = self._signed_problems(before, commit, decision, changes, sums)
            problems += [f"{what}: {problem}" for problem in signed_problems]
            is_verified = not signed_problems
        if proof is not None and not proof.assurance.reaches(needed):
            problems.append(f"{what} by {proof.identity} is {proof.assurance}, and {needed} is needed")
        problems += [
            f"the vote of {event.approver} was cast by {commit.author}"
            for event in changes
            if isinstance(event, VoteCast) and event.approver != commit.author
        ]
        problems += [reason for event in changes if (reason := self._without_seat(before, event)) is not None]
        yield from (wrong(problem, commit.version) for problem in problems)
        self.decisions.append(
            Decided(
                commit=commit.version,
                decision=decision,
                phase=getattr(first, "phase", None) or "",
                gate=getattr(first, "gate", None) or "",
                by=commit.author,
                assurance=proof.assurance if proof is not None else None,
                needed=needed,
                key=proof.key if proof is not None else "",
                is_verified=is_verified,
            )
        )

    def _without_seat(self, before: Session, event: Event) -> str | None:
        """Why the settings and the approvers give a voter no vote at a gate, whatever roles the session pinned."""
        if self._roles is None or not isinstance(event, VoteCast):
            return None
        gate = before.workflow.by_key[event.phase].gate(event.gate)
        if not isinstance(gate, Voted):
            return None
        filled = {name: self._roles[name] for name in gate.approvers if name in self._roles}
        try:
            # Every kind is a struct, and those with approvers have roles.
            seated = cast("Voted", msgspec.structs.replace(cast("msgspec.Struct", gate), roles=filled))
            seated.check_voter(event.phase, event.approver, event.stands_for)
        except Refused as error:
            return error.message
        return None

    def _missing(self, proof: Proof) -> tuple[str, str] | None:
        """The missing part without which the signature cannot be checked, and the way to get it."""
        if self._approvers is None:
            return "no list of approvers was given", _GIVE_APPROVERS
        if proof.method == WEBAUTHN and find_spec("fido2") is None:
            return "a WebAuthn key cannot be checked without fido2", install_command("hardware")
        if proof.method != WEBAUTHN and shutil.which("ssh-keygen") is None:
            return "an SSH key cannot be checked without ssh-keygen", "install the client of OpenSSH"
        return None

    def _signed_problems(
        self, before: Session, commit: Commit, decision: Decision, changes: list[DecisionEvent], sums: list[str]
    ) -> list[str]:
        actor, proof = commit.actor, commit.actor.proof
        assert proof is not None
        try:
            verified = verify_proof(proof, self._approvers or NOBODY)
            about = subject(changes)
        except DetentError as error:
            return [error.message]
        statement = verified.statement
        # The position below says which journal it is. The project may have another id where the session was imported.
        must = expected(before, decision, about, project=statement.project, tree=None)
        problems = mismatches(statement, must)
        if verified.name != proof.identity:
            problems.append(f"the key is that of {verified.name}, and the commit names {proof.identity}")
        if not verified.assurance.reaches(proof.assurance):
            problems.append(f"the signature is {verified.assurance}, and the commit says {proof.assurance}")
        if actor.kind is not ActorKind.PERSON or actor.channel not in MAY_SIGN:
            problems.append(f"it is by {actor.kind} {actor.name}, by {actor.channel}")
        if not 0 < statement.version <= len(sums) or sums[statement.version - 1] != statement.sum:
            problems.append(f"it was signed at version {statement.version} of another journal")
        if (used := self._nonces.setdefault(statement.nonce, commit.version)) != commit.version:
            problems.append(f"its signature was used before, in commit {used}")
        if not problems:
            self._remember(statement, verified.name, commit.version, is_against=about.is_against)
        return problems

    def _remember(self, statement: Statement, by: str, version: int, *, is_against: bool) -> None:
        approvals = self.approved.setdefault(statement.phase, {})
        if statement.tree and statement.gate and not is_against:
            approvals[statement.gate, by] = Approved(version, statement.tree)
        else:
            approvals.pop((statement.gate, by), None)


def _unsigned_problems(what: str, actor: Actor, proof: Proof) -> list[str]:
    if proof.assurance is not Assurance.ATTENDED:
        return [f"{what} says that it is {proof.assurance}, and nothing is signed"]
    if not may_decide(actor):
        return [f"{what} is a person's decision, and it is by {actor.kind} {actor.name}, by {actor.channel}"]
    if not proof.identity:
        return [f"{what} does not say who decided"]
    return []


def _is_by_size(started: Session, event: Event) -> bool:
    """Whether the phase is one that a size of the workflow leaves out: choosing a size is no decision."""
    return isinstance(event, PhaseSkipped) and any(event.phase in phases for phases in started.workflow.sizes.values())


def _where(event: Event) -> str:
    phase, gate = getattr(event, "phase", None), getattr(event, "gate", None)
    return (f" of {phase}" if phase else "") + (f" ({gate})" if gate else "")
