"""Identifies who asks: reads the marks that clients and runners leave in the environment of a process."""

import os
from collections.abc import Mapping

from detent.clients.registry import shell_marks
from detent.core.actor import Actor, ActorKind, Channel
from detent.core.limits import MAX_NAME, check_text
from detent.engine.agents.environment import GATE, PHASE, RUN


def agent_marks() -> dict[str, str]:
    """Variables that are set in agents' shells, each with the client that sets it.

    A run starts gate checks and flow steps too, and agents write those.
    """
    return {**shell_marks(), PHASE: "agent", RUN: "agent", GATE: "check"}


def identify(environment: Mapping[str, str], channel: Channel, *, name: str | None = None) -> Actor:
    """The actor behind a process with this environment.

    A name changes what commits show. It never makes an agent a person.
    """
    marks = agent_marks()
    mark = next((variable for variable in marks if environment.get(variable)), "")
    named = name or environment.get("DETENT_ACTOR") or marks.get(mark) or _account(environment)
    kind = ActorKind.AGENT if mark else ActorKind.PERSON
    return Actor(name=check_text("an actor", named, MAX_NAME), kind=kind, channel=channel, mark=mark)


def _account(environment: Mapping[str, str]) -> str:
    if known := environment.get("USER") or environment.get("LOGNAME"):
        return known
    import pwd  # noqa: PLC0415 - the environment nearly always names the account

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
