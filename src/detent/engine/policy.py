"""Authorization. Two tables: the decisions that need a person (`RULES`), and the actors that may make one.

`authorize_events` runs in the one place where commits are made, so no surface can leave it out. A decision carries its
proof: a signature of an approver, or what was seen of the process, which needs a person at a terminal. Everything that
is not listed as a decision is open to every actor: `redo`, `resume` and `complete` too, because the gates are judged
again or were open.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple, get_args

import msgspec

from detent.config.settings import RunSettings
from detent.core.actor import Actor, ActorKind, Assurance, Channel
from detent.core.decision.approvers import Approvers
from detent.core.decision.matching import expected, mismatches
from detent.core.decision.statement import Statement
from detent.core.decision.subject import DecisionEvent, needed_assurance, subject
from detent.core.gate import gate_name
from detent.core.run.choices import LIMITS, RunChoices
from detent.core.session.commands import (
    AcceptLoss,
    Answer,
    Approve,
    Archive,
    Cancel,
    Command,
    Complete,
    Override,
    RecordRepair,
    Reopen,
    Reply,
    Resolve,
    Review,
    Rollback,
    SetGateCommand,
    Skip,
)
from detent.core.session.events import (
    BaselineReplaced,
    EscalationsResolved,
    Event,
    GateApproved,
    GateChecked,
    GateCommandSet,
    LossAccepted,
    PhaseReviewed,
    PhasesImported,
    PhaseSkipped,
    QuestionAnswered,
    QuestionReplied,
    RolledBack,
    SessionArchived,
    SessionCancelled,
    SessionCompleted,
    SessionReopened,
    TailSetAside,
    VoteCast,
)
from detent.core.session.session import Session
from detent.engine.actor import attended
from detent.errors import Refused


class Decision(StrEnum):
    """The decisions that only a person makes, by the name that a refusal gives them."""

    APPROVE = "approve"
    ACCEPT = "gate accept"
    COMMAND = "gate set"
    BASELINE = "replacing a baseline"
    RESOLVE = "resolve"
    REVIEW = "review"
    REPLY = "reply"
    ANSWER = "gate answer"
    SKIP = "skip"
    CANCEL = "cancel"
    FORCE = "complete --force"
    ROLLBACK = "rollback"
    IMPORT = "import"
    STEP = "deciding about a step that waits for a person"
    UNINSTALL = "uninstall"
    # An agent must not leave the gates of its session, loosen them, or report that its own work complies.
    PAUSE = "pause"
    SWITCH = "switch"
    REPLACE = "start, while another session is active,"
    QUORUM = "start --quorum"
    REPORT = "gate report --compliant"
    REOPEN = "reopen"
    ARCHIVE = "archive"
    # Nor remove what a person may want to look at or return to.
    FIX = "doctor --fix"
    COLLECT = "checkpoint gc --yes"
    MEND = "doctor --restore"
    FORGET = "forget"
    STORE = "moving the journals to another store"
    # Nor choose where its work goes.
    INTO = "merge --into"
    # Nor say whose signature counts.
    LIST = "approver add"
    UNLIST = "approver remove"
    # Nor how much may be spent on it.
    LIMITS = "raising a limit of a run"


class Rule(NamedTuple):
    """A decision, the commands that ask for it, and the events that it leaves in the journal."""

    decision: Decision
    commands: tuple[type[Command], ...] = ()
    events: tuple[type[DecisionEvent], ...] = ()


#: `FORCE` and `REPORT` are told by their fields, see below. Other rows without an event are authorized by name, where
#: they are carried out.
RULES = (
    Rule(Decision.APPROVE, (Approve, Override), (GateApproved, VoteCast)),
    Rule(Decision.ACCEPT, (AcceptLoss,), (LossAccepted,)),
    Rule(Decision.COMMAND, (SetGateCommand,), (GateCommandSet,)),
    Rule(Decision.BASELINE, (), (BaselineReplaced,)),
    Rule(Decision.RESOLVE, (Resolve,), (EscalationsResolved,)),
    Rule(Decision.REVIEW, (Review,), (PhaseReviewed,)),
    Rule(Decision.REPLY, (Reply,), (QuestionReplied,)),
    Rule(Decision.ANSWER, (Answer,), (QuestionAnswered,)),
    Rule(Decision.SKIP, (Skip,), (PhaseSkipped,)),
    Rule(Decision.CANCEL, (Cancel,), (SessionCancelled,)),
    Rule(Decision.ROLLBACK, (Rollback,), (RolledBack,)),
    Rule(Decision.IMPORT, (), (PhasesImported,)),
    Rule(Decision.FORCE),
    Rule(Decision.STEP),
    Rule(Decision.UNINSTALL),
    Rule(Decision.PAUSE),
    Rule(Decision.SWITCH),
    Rule(Decision.REPLACE),
    Rule(Decision.QUORUM),
    Rule(Decision.REPORT),
    Rule(Decision.REOPEN, (Reopen,), (SessionReopened,)),
    Rule(Decision.ARCHIVE, (Archive,), (SessionArchived,)),
    Rule(Decision.FIX),
    Rule(Decision.COLLECT),
    Rule(Decision.MEND, (RecordRepair,), (TailSetAside,)),
    Rule(Decision.FORGET),
    Rule(Decision.STORE),
    Rule(Decision.INTO),
    Rule(Decision.LIST),
    Rule(Decision.UNLIST),
    Rule(Decision.LIMITS),
)
_BY_COMMAND = {command: rule.decision for rule in RULES for command in rule.commands}
_BY_EVENT = {event: rule.decision for rule in RULES for event in rule.events}
#: Looked up by type: every commit is compared with all of them, and most hold none.
_DECISION_EVENTS = frozenset(get_args(DecisionEvent))

#: The actors that may decide. A client of an agent starts the hook and the MCP server, so their word is the client's.
MAY_DECIDE = frozenset(
    {
        (ActorKind.PERSON, Channel.TERMINAL),
        (ActorKind.PERSON, Channel.PAGE),
        (ActorKind.PERSON, Channel.LIBRARY),
    }
)


#: The surfaces that a person can sign through. The client of an agent starts the others.
MAY_SIGN = frozenset({Channel.TERMINAL, Channel.PAGE, Channel.LIBRARY})


class Witness(NamedTuple):
    """The facts that a signed statement is compared with, besides the session."""

    project: str
    approvers: Approvers
    #: The digest of the present files.
    tree: str
    #: What a person confirmed without signing it.
    shown: Statement | None = None


def authorize_or_sign(actor: Actor, decision: Decision, *, is_signed: bool) -> Actor:
    """`authorize`, unless the decision will be signed: then the signature is checked with the commit."""
    if not is_signed:
        return authorize(actor, decision)
    if actor.kind is ActorKind.RUNNER or actor.channel not in MAY_SIGN:
        raise _not_a_person(actor, decision)
    return actor


def decision_of(command: Command) -> Decision | None:
    """The decision that a command asks for."""
    is_forced = isinstance(command, Complete) and command.force
    return Decision.FORCE if is_forced else _BY_COMMAND.get(type(command))


def decided(session: Session | None, events: Sequence[Event]) -> list[tuple[Decision, DecisionEvent]]:
    """The decisions among the events of a commit; `session` is the one before it."""
    if _DECISION_EVENTS.isdisjoint(map(type, events)):
        return []
    pairs = ((_decision(session, event), event) for event in events if isinstance(event, DecisionEvent))
    return [(decision, event) for decision, event in pairs if decision is not None]


def _decision(session: Session | None, event: DecisionEvent) -> Decision | None:
    if isinstance(event, SessionCompleted):
        return Decision.FORCE if event.forced else None
    if isinstance(event, GateChecked):
        # A check that ran is no decision; the word of a reviewer that the work complies is one.
        gates = session.workflow.by_key[event.phase].gates if session is not None else ()
        reported = any(gate.is_reported and gate_name(gate) == event.gate for gate in gates)
        return Decision.REPORT if reported and event.receipt.is_pass else None
    return _BY_EVENT.get(type(event))


def authorize_events(
    actor: Actor,
    events: Sequence[Event],
    session: Session,
    *,
    witness: Witness | None = None,
    check_position: Callable[[Statement], object] | None = None,
) -> Actor:
    """The author of a commit with these events. Refuses one that may not make the decisions in it, whatever command led
    to it.

    `witness` and `check_position` are asked if the decision is signed.
    """
    decisions = decided(session, events)
    if not decisions:
        return actor
    decision = decisions[0][0]
    if actor.proof is not None and actor.proof.signature:
        if witness is None or check_position is None:
            raise Refused(f"{decision} cannot be signed here", way_out="type it in a terminal of your own")
        author = _signed(actor, decisions, session, witness, check_position)
    else:
        author = authorize(actor, decision)
        if witness is not None and witness.shown is not None:
            _check_matches(decisions, session, witness, witness.shown)
    check_strength(session, decisions, author.proof.assurance if author.proof is not None else None)
    for _, event in decisions:
        if isinstance(event, VoteCast):
            _check_vote(author, event)
    return author


def _signed(
    actor: Actor,
    decisions: list[tuple[Decision, DecisionEvent]],
    session: Session,
    witness: Witness,
    check_position: Callable[[Statement], object],
) -> Actor:
    """The approver who signed the decision. Raises `Refused` if the signature is not about this decision."""
    from detent.engine.proofs import verify_proof  # noqa: PLC0415 - few decisions are signed

    decision = decisions[0][0]
    authorize_or_sign(actor, decision, is_signed=True)
    assert actor.proof is not None
    verified = verify_proof(actor.proof, witness.approvers)
    check_signer(actor, decision, verified.assurance)
    _check_matches(decisions, session, witness, verified.statement)
    check_position(verified.statement)
    proof = msgspec.structs.replace(actor.proof, assurance=verified.assurance, identity=verified.name)
    # The key identifies the person, not the account of the process.
    return msgspec.structs.replace(actor, kind=ActorKind.PERSON, name=verified.name, proof=proof)


def _check_matches(
    decisions: list[tuple[Decision, DecisionEvent]], session: Session, witness: Witness, statement: Statement
) -> None:
    """Refuse a statement about something else than these decisions."""
    decision, about = decisions[0][0], subject([event for _, event in decisions])
    must = expected(session, decision, about, project=witness.project, tree=witness.tree)
    wrong = mismatches(statement, must)
    if wrong:
        how = "signed" if witness.shown is None else "confirmed"
        raise Refused(
            f"{decision} was {how} for something else: {'; '.join(wrong)}", way_out="look at it, and decide again"
        )


def check_signer(actor: Actor, decision: Decision, assurance: Assurance) -> None:
    """Refuse a signature that an agent could have made by itself: with a key that signs without asking anybody."""
    if actor.kind is ActorKind.AGENT and not assurance.reaches(Assurance.HARDWARE):
        raise Refused(
            f"{decision} is a person's decision, and this is {_described(actor)}, which may use your SSH key",
            way_out="type it in a terminal of your own, or sign it with a key that has to be touched",
        )


def check_strength(
    session: Session, decisions: list[tuple[Decision, DecisionEvent]], assurance: Assurance | None
) -> None:
    """Refuse decisions that need a stronger assurance."""
    needed = needed_assurance(session, [event for _, event in decisions])
    if assurance is None or not assurance.reaches(needed):
        raise too_weak(decisions[0][0], needed, assurance)


def _check_vote(author: Actor, vote: VoteCast) -> None:
    identity = author.proof.identity if author.proof is not None else ""
    if vote.approver != identity:
        raise Refused(f"the vote of {vote.approver} cannot be cast by {identity}")


def authorize(actor: Actor, decision: Decision) -> Actor:
    """The actor with the proof that a person decides in this process. Raises `Refused` unless the actor may decide."""
    if actor.mark:
        # Says which process has the mark.
        attended(actor, decision)
    if not may_decide(actor):
        raise _not_a_person(actor, decision)
    if actor.channel is Channel.PAGE and actor.proof is None:
        # Every process on the machine reaches the port of a page.
        raise too_weak(decision, Assurance.ATTENDED, None)
    return attended(actor, decision)


def authorize_limits(actor: Actor, known: RunSettings, given: RunChoices) -> None:
    """Refuse an agent that gives a run higher limits than those that are known. CI has no terminal and may."""
    if actor.kind is not ActorKind.AGENT:
        return
    for name in LIMITS:
        before, now = getattr(known, name), getattr(given, name)
        if now is not None and now > before:
            option = f"--{name.replace('_', '-')}"
            try:
                authorize(actor, Decision.LIMITS)
            except Refused as refusal:
                reason = f"{refusal.message}: {option} {now:g} is above {before:g}"
                raise Refused(reason, way_out=f"leave {option} out, or {refusal.way_out}") from refusal


def too_weak(decision: Decision, needed: Assurance, assurance: Assurance | None) -> Refused:
    ways = {
        Assurance.ATTENDED: "type it in a terminal of your own",
        Assurance.SIGNED: "add --sign: an SSH key of an approver signs it",
        Assurance.HARDWARE: "add --sign with an SSH key in a device that has to be touched, or decide in detent ui",
    }
    return Refused(
        f"{decision} needs the assurance {needed}, and this request has {assurance or 'none'}", way_out=ways[needed]
    )


def may_decide(actor: Actor) -> bool:
    return (actor.kind, actor.channel) in MAY_DECIDE


def _not_a_person(actor: Actor, decision: Decision) -> Refused:
    return Refused(
        f"{decision} is a person's decision, and this is {_described(actor)}",
        way_out="type it in a terminal of your own",
    )


def _described(actor: Actor) -> str:
    match actor.kind:
        case ActorKind.AGENT if actor.mark:
            return f"an agent's shell ({actor.mark} is set)"
        case ActorKind.AGENT:
            return f"an agent ({actor.name}, by {actor.channel})"
        case ActorKind.RUNNER:
            return f"a run ({actor.name}, by {actor.channel})"
        case ActorKind.PERSON:
            return f"a request by {actor.channel}, which an agent's client can make"
