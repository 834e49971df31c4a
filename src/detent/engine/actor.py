"""Who is acting: the person at the terminal, or the agent whose shell this is."""

import os
from collections.abc import Mapping

from detent.engine.agent_environment import PHASE, RUN

#: Set in the shells of agents, and the client that sets it.
AGENT_SHELLS = {
    "CLAUDECODE": "claude-code",
    "CODEX_SANDBOX": "codex",
    "GEMINI_CLI": "gemini",
    PHASE: "agent",
    # What a run starts for gates and steps is often written by an agent.
    RUN: "agent",
}


def agent_shell(environment: Mapping[str, str]) -> str | None:
    """The variable that says that an agent runs this, if there is one."""
    return next((name for name in AGENT_SHELLS if environment.get(name)), None)


def acting(environment: Mapping[str, str]) -> str:
    """The name that commits are made under."""
    shell = agent_shell(environment)
    named = environment.get("DETENT_ACTOR") or (AGENT_SHELLS[shell] if shell else None)
    return named or environment.get("USER") or environment.get("LOGNAME") or _account()


def _account() -> str:
    import pwd  # noqa: PLC0415 - the environment nearly always tells

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid-{os.getuid()}"
