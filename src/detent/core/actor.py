"""The actor of a change: a person, an agent or a runner, with its channel and its proof."""

from enum import StrEnum

import msgspec


class ActorKind(StrEnum):
    PERSON = "person"
    #: A coding agent, or anything that runs in an agent's shell.
    AGENT = "agent"
    #: `detent run`, which schedules agents and records their results.
    RUNNER = "runner"


class Channel(StrEnum):
    """The surface that the request came through."""

    TERMINAL = "terminal"
    HOOK = "hook"
    PAGE = "page"
    MCP = "mcp"
    LIBRARY = "library"


class Assurance(StrEnum):
    """The strength of the proof that a person decided, weakest first."""

    ATTENDED = "attended"
    SIGNED = "signed"
    HARDWARE = "hardware"


class Proof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evidence that a person made a decision."""

    assurance: Assurance
    #: The procedure that made it: `tty`, `ssh`, `ssh-sk`, `webauthn`.
    method: str
    #: The signed text, or the observed facts about the process and its terminal.
    statement: str = ""
    #: Base64; empty where nothing was signed.
    signature: str = ""


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of a commit."""

    name: str
    kind: ActorKind
    channel: Channel
    #: The mark that identified an agent's shell, such as an environment variable.
    mark: str = ""
    proof: Proof | None = None


def as_runner(actor: Actor) -> Actor:
    """The run that `actor` started. It acts by itself, so none of its commits is a person's decision."""
    return msgspec.structs.replace(actor, kind=ActorKind.RUNNER, proof=None)
