"""Who may do what. Two tables: the events that are a person's decision, and the actors that may make one.

`authorize` runs in the one place where commits are made, so no surface can leave it out. Everything that is not listed
as a decision is open to every actor.
"""

from collections.abc import Iterable
from enum import StrEnum

from detent.core.actor import Actor, ActorKind, Assurance, Channel
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


#: The event that a decision leaves in the journal. `STEP` and `UNINSTALL` leave none and are authorized by name.
DECISIONS: dict[type[Event], Decision] = {
    GateApproved: Decision.APPROVE,
    VoteCast: Decision.APPROVE,
    EscalationsResolved: Decision.RESOLVE,
    PhaseReviewed: Decision.REVIEW,
    QuestionReplied: Decision.REPLY,
    QuestionAnswered: Decision.ANSWER,
    PhaseSkipped: Decision.SKIP,
    SessionCancelled: Decision.CANCEL,
    RolledBack: Decision.ROLLBACK,
    PhasesImported: Decision.IMPORT,
}

#: The weakest proof that counts for each decision. Gates and settings may ask for more.
ASSURANCE: dict[Decision, Assurance] = dict.fromkeys(Decision, Assurance.ATTENDED)

#: The actors whose decisions count as a person's. A hook and an MCP server are started by an agent's client, so what
#: they pass on is the client's word, whoever is said to be behind it.
MAY_DECIDE = frozenset(
    {
        (ActorKind.PERSON, Channel.TERMINAL),
        (ActorKind.PERSON, Channel.PAGE),
        (ActorKind.PERSON, Channel.LIBRARY),
    }
)


def authorize_events(actor: Actor, events: Iterable[Event]) -> None:
    """Refuse a commit by an actor that may not make the decisions in it."""
    for event in events:
        decision = decision_of(event)
        if decision is not None:
            authorize(actor, decision)


def decision_of(event: Event) -> Decision | None:
    if isinstance(event, SessionCompleted):
        return Decision.FORCE if event.forced else None
    return DECISIONS.get(type(event))


def authorize(actor: Actor, decision: Decision) -> None:
    """Raise `Refused` unless the actor may make the decision."""
    if not may_decide(actor):
        raise Refused(
            f"{decision} is a person's decision, and this is {_described(actor)}",
            way_out="type it in a terminal of your own",
        )


def may_decide(actor: Actor) -> bool:
    return (actor.kind, actor.channel) in MAY_DECIDE


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
