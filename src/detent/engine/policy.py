"""Who may do what. Two tables: the decisions that need a person (`RULES`), and the actors that may make one.

`authorize_events` runs in the one place where commits are made, so no surface can leave it out. It looks at the process
too: a decision needs a person at a terminal, and carries the proof of that. Everything that is not listed as a decision
is open to every actor: `redo`, `resume` and `complete` too, because the gates are judged again or were open.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from detent.config.settings import RunSettings
from detent.core.actor import Actor, ActorKind, Assurance, Channel
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
from detent.engine.actor import attended
from detent.errors import Refused


class Decision(StrEnum):
    """What only a person decides, by the name that a refusal gives it."""

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
    # Nor choose where its work goes.
    INTO = "merge --into"
    # Nor how much may be spent on it.
    LIMITS = "raising a limit of a run"


class Rule(NamedTuple):
    """A decision, the commands that ask for it, and the events that it leaves in the journal."""

    decision: Decision
    commands: tuple[type[Command], ...] = ()
    events: tuple[type[Event], ...] = ()


#: `FORCE` is told by a field, see below. Rows without an event are authorized by name, where they are carried out.
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
    Rule(Decision.INTO),
    Rule(Decision.LIMITS),
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


def authorize_events(actor: Actor, events: Iterable[Event]) -> Actor:
    """The author of a commit with these events. Refuses one that may not make the decisions in it, whatever command led
    to it.
    """
    author = actor
    for event in events:
        is_forced = isinstance(event, SessionCompleted) and event.forced
        decision = Decision.FORCE if is_forced else _BY_EVENT.get(type(event))
        if decision is not None and author is actor:
            author = authorize(actor, decision)
        if isinstance(event, VoteCast):
            _check_vote(author, event)
    return author


def _check_vote(author: Actor, vote: VoteCast) -> None:
    identity = author.proof.identity if author.proof is not None else ""
    if vote.approver != identity:
        raise Refused(f"the vote of {vote.approver} cannot be cast by {identity}")


def authorize(actor: Actor, decision: Decision) -> Actor:
    """The actor with the proof of the decision. Raises `Refused` unless the actor may make it."""
    if actor.mark:
        # Says which process has the mark.
        attended(actor, decision)
    if not may_decide(actor):
        raise Refused(
            f"{decision} is a person's decision, and this is {_described(actor)}",
            way_out="type it in a terminal of your own",
        )
    if actor.channel is Channel.PAGE and actor.proof is None:
        # Every process on the machine reaches the port of a page.
        raise _too_weak(decision, None)
    author = attended(actor, decision)
    assurance = author.proof.assurance if author.proof is not None else None
    if assurance is None or _STRENGTH.index(assurance) < _STRENGTH.index(ASSURANCE[decision]):
        raise _too_weak(decision, assurance)
    return author


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


def _too_weak(decision: Decision, assurance: Assurance | None) -> Refused:
    return Refused(
        f"{decision} needs the assurance {ASSURANCE[decision]}, and this request has {assurance or 'none'}",
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
