"""Identifies who asks: reads the marks that clients and runners leave in the environment of a process."""

import os
from collections.abc import Mapping

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.limits import MAX_NAME, check_text
from detent.engine.agent_environment import PHASE, RUN

#: Variable that is set in an agent's shell, and the client that sets it.
AGENT_SHELLS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "GEMINI_CLI": "gemini",
    PHASE: "agent",
    # A run starts gate checks and flow steps too, and agents write those.
    RUN: "agent",
}


def identify(environment: Mapping[str, str], channel: Channel, *, name: str | None = None) -> Actor:
    """The actor behind a process with this environment.

    A name changes what commits show. It never makes an agent a person.
    """
    mark = next((variable for variable in AGENT_SHELLS if environment.get(variable)), "")
    named = name or environment.get("DETENT_ACTOR") or AGENT_SHELLS.get(mark) or _account(environment)
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
