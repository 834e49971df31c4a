"""Identifies who asks: by the environment of a process, by the processes that started it, and by its terminal."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec

from detent.clients.registry import client_programs, shell_marks
from detent.core.actor import (
    Actor,
    ActorKind,
    AgentSign,
    Ancestor,
    Assurance,
    Channel,
    Proof,
    chain_text,
    sign_of_agent,
)
from detent.core.limits import MAX_NAME, check_text
from detent.engine.agents.environment import GATE, PHASE, RUN
from detent.errors import Refused

#: The proof of a person at a terminal.
TERMINAL_METHOD = "tty"
#: The identity of every account in a user namespace in which root is not root.
IN_A_NAMESPACE = "user-namespace"
_NOBODY = Ancestor(0, "", frozenset(), frozenset())


def agent_marks() -> dict[str, str]:
    """Variables that are set in agents' shells, each with the client that sets it.

    A run starts gate checks and flow steps too, and agents write those.
    """
    return {**shell_marks(), PHASE: "agent", RUN: "agent", GATE: "check"}


def identify(
    environment: Mapping[str, str],
    channel: Channel,
    *,
    name: str | None = None,
    lineage: Sequence[Ancestor] = (),
) -> Actor:
    """The actor behind a process with this environment and these ancestors.

    A name changes what commits show. It makes no agent a person, and no person another one.
    """
    sign = _sign(environment, lineage)
    client = sign.client if sign else ""
    named = name or environment.get("DETENT_ACTOR") or client or environment.get("USER") or account()
    kind = ActorKind.AGENT if sign else ActorKind.PERSON
    mark = sign.mark if sign else ""
    return Actor(name=check_text("an actor", named, MAX_NAME), kind=kind, channel=channel, mark=mark)


def agent_behind(pid: int) -> AgentSign | None:
    """The sign of an agent in a process or in one that started it. A run of Detent is known by its marks."""
    from detent.engine.agents.ancestry import ancestry  # noqa: PLC0415 - only the page asks

    return sign_of_agent(ancestry(pid), agent_marks(), client_programs())


def own_lineage() -> tuple[Ancestor, ...]:
    """This process and its ancestors."""
    from detent.engine.agents.ancestry import ancestry  # noqa: PLC0415 - reading needs none of it

    return ancestry(os.getpid())


def attended(actor: Actor, decision: str) -> Actor:
    """The actor with the proof that a person makes the decision in this process; raises `Refused` if none does.

    The process is judged, not what the caller says about it.
    """
    from detent.engine.agents.ancestry import ancestry, terminal  # noqa: PLC0415

    lineage, screen = own_lineage(), terminal()
    sign = _sign(os.environ, lineage)
    for leader in screen.leaders if screen is not None and sign is None else ():
        # A process that outlived its parent has lost its ancestors, but not the terminal that an agent works at.
        sign = sign or sign_of_agent((_NOBODY, *ancestry(leader)), agent_marks(), client_programs())
    if sign is not None:
        raise Refused(
            f"{decision} is a person's decision, and this is an agent's shell ({sign.describe()})",
            way_out="type it in a terminal of your own"
            if sign.is_own
            else "type it in a fresh terminal, one that no agent started, or sign it with a key to touch: --sign",
        )
    if screen is None:
        raise Refused(
            f"{decision} is a person's decision, and this process has no terminal (/dev/tty cannot be opened)",
            way_out="type it in a terminal of your own; without one, an SSH key of an approver can sign it: --sign",
        )
    identity = account()
    if actor.proof is not None and actor.channel is Channel.PAGE:
        # A page without a signature is attended, whatever its proof claims.
        seen = msgspec.structs.replace(actor.proof, assurance=Assurance.ATTENDED, identity=identity)
        return msgspec.structs.replace(actor, proof=seen)
    proof = Proof(
        assurance=Assurance.ATTENDED,
        method=TERMINAL_METHOD,
        identity=identity,
        statement=f"terminal {screen.device}; {chain_text(lineage)}",
    )
    return msgspec.structs.replace(actor, proof=proof)


def account() -> str:
    """The account of the operating system that this process belongs to. No variable changes it.

    Anyone can be called anything in a user namespace of their own, so all accounts there are one.
    """
    return IN_A_NAMESPACE if _is_root_renamed() else _account_name(os.getuid())


@lru_cache
def _account_name(uid: int) -> str:
    # Kept: the system may ask a service for each answer, and a run asks twice a phase.
    import pwd  # noqa: PLC0415

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid-{uid}"


def _is_root_renamed() -> bool:
    """Whether the owner of the system's files is not root here, as in a user namespace that an ordinary user made."""
    try:
        return os.stat("/proc/version").st_uid != 0
    except OSError:
        return False


def _sign(environment: Mapping[str, str], lineage: Sequence[Ancestor]) -> AgentSign | None:
    """A sign in this environment, or in the ancestors. A process may have changed what it was started with."""
    now = Ancestor(os.getpid(), "", frozenset(), frozenset(name for name, value in environment.items() if value))
    # A run starts its agents and their checks.
    marks, programs = agent_marks(), {**client_programs(), "detent": "agent"}
    return sign_of_agent((now,), marks, programs) or sign_of_agent(lineage, marks, programs)
