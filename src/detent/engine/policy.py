"""Who may do what. Two tables: the decisions that need a person (`RULES`), and the actors that may make one.

`authorize_events` runs in the one place where commits are made, so no surface can leave it out. Everything that is not
listed as a decision is open to every actor.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from detent.core.actor import Actor, ActorKind, Assurance, Channel
from detent.core.session.commands import (
    Answer,
    Approve,
    Cancel,
    Command,
    Complete,
    Override,
    RecordRepair,
    Reply,
    Resolve,
    Review,
    Rollback,
    Skip,
)
from detent.core.session.events import (
    EscalationsResolved,
    Event,
    GateApproved,
    PhaseReviewed,
    PhasesImported,
    PhaseSkipped,
    QuestionAnswered,
    QuestionReplied,
    RolledBack,
    SessionCancelled,
    SessionCompleted,
    TailSetAside,
    VoteCast,
)
from detent.errors import Refused


class Decision(StrEnum):
    """What only a person decides, by the name that a refusal gives it."""

    APPROVE = "approve"
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
    MEND = "doctor --restore"
    FORGET = "forget"


class Rule(NamedTuple):
    """A decision, the commands that ask for it, and the events that it leaves in the journal."""

    decision: Decision
    commands: tuple[type[Command], ...] = ()
    events: tuple[type[Event], ...] = ()


#: `FORCE` is told by a field, see below. `STEP`, `UNINSTALL` and `FORGET` leave no event and are authorized by name.
RULES = (
    Rule(Decision.APPROVE, (Approve, Override), (GateApproved, VoteCast)),
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
    Rule(Decision.MEND, (RecordRepair,), (TailSetAside,)),
    Rule(Decision.FORGET),
)
_BY_COMMAND = {command: rule.decision for rule in RULES for command in rule.commands}
_BY_EVENT = {event: rule.decision for rule in RULES for event in rule.events}

#: The weakest assurance that counts for each decision. Gates and settings may ask for more.
ASSURANCE: dict[Decision, Assurance] = dict.fromkeys(Decision, Assurance.ATTENDED)
_STRENGTH = list(Assurance)

#: The actors that may decide. A client of an agent starts the hook and the MCP server, so their word is the client's.
MAY_DECIDE = frozenset(
    {
        (ActorKind.PERSON, Channel.TERMINAL),
        (ActorKind.PERSON, Channel.PAGE),
        (ActorKind.PERSON, Channel.LIBRARY),
    }
)


def authorize_command(actor: Actor, command: Command) -> None:
    """Refuse a command before any work is done for it."""
    is_forced = isinstance(command, Complete) and command.force
    decision = Decision.FORCE if is_forced else _BY_COMMAND.get(type(command))
    if decision is not None:
        authorize(actor, decision)


def authorize_events(actor: Actor, events: Iterable[Event]) -> None:
    """Refuse a commit by an actor that may not make the decisions in it, whatever command led to it."""
    for event in events:
        is_forced = isinstance(event, SessionCompleted) and event.forced
        decision = Decision.FORCE if is_forced else _BY_EVENT.get(type(event))
        if decision is not None:
            authorize(actor, decision)


def authorize(actor: Actor, decision: Decision) -> None:
    """Raise `Refused` unless the actor may make the decision."""
    if not may_decide(actor):
        raise Refused(
            f"{decision} is a person's decision, and this is {_described(actor)}",
            way_out="type it in a terminal of your own",
        )
    assurance, needed = assurance_of(actor), ASSURANCE[decision]
    if assurance is None or _STRENGTH.index(assurance) < _STRENGTH.index(needed):
        raise Refused(
            f"{decision} needs the assurance {needed}, and this request has {assurance or 'none'}",
            way_out="type it in a terminal of your own",
        )


def may_decide(actor: Actor) -> bool:
    return (actor.kind, actor.channel) in MAY_DECIDE


def assurance_of(actor: Actor) -> Assurance | None:
    """The assurance of the actor's proof. Without a proof, a process of the person's own counts as attended.

    Every process on the machine reaches the port of a page, so a request without a proof has no assurance.
    """
    if actor.proof is not None:
        return actor.proof.assurance
    return None if actor.channel is Channel.PAGE else Assurance.ATTENDED


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
