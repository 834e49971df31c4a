"""The actor of a change: a person, an agent or a runner, with its channel and its proof.

The rules that tell an agent's process from a person's are here too. They are pure: the engine reads the processes.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

#: The name of a run in everything that it does itself.
RUN_NAME = "run"
#: How many processes the statement of a proof names.
MAX_CHAIN = 12


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

    def reaches(self, needed: "Assurance") -> bool:
        """Whether it is at least as strong as `needed`."""
        strength = list(Assurance)
        return strength.index(self) >= strength.index(needed)


class Proof(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The evidence that a person made a decision."""

    assurance: Assurance
    #: The procedure that made it: `tty`, `page`, `ssh`, `ssh-sk`, `webauthn`.
    method: str
    #: The person whom it proves: the approver who owns the key, or the account of the operating system. Votes are
    #: counted by it.
    identity: str = ""
    #: The signed text, or the observed facts about the process and its terminal.
    statement: str = ""
    #: Base64; empty where nothing was signed. For WebAuthn, of JSON with authenticatorData, clientDataJSON, signature.
    signature: str = ""
    #: The key that signed: the fingerprint of an SSH key (`SHA256:…`), or the id of a WebAuthn credential.
    key: str = ""

    def describe(self) -> str:
        """The proof in a line: what was seen, or which key signed."""
        if self.signature:
            return f"{self.assurance}: {self.method} key {self.key}"
        return f"{self.assurance}: {self.statement or self.method}"


class Actor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of a commit."""

    #: The name of an agent, or the name that a person goes by here. It is no identity: see `Proof`.
    name: str
    kind: ActorKind
    channel: Channel
    #: The mark that identified an agent's shell: an environment variable, or the program of a client.
    mark: str = ""
    #: Only commits with a decision in them have one.
    proof: Proof | None = None

    @property
    def identity(self) -> str:
        """The identity that its proof shows; the name without one."""
        return self.proof.identity if self.proof is not None and self.proof.identity else self.name

    @property
    def shown(self) -> str:
        """The author as everything shows it. A decision is by an identity, whatever name was given.

        A run acts by itself: the account that started it did none of that.
        """
        if self.kind is ActorKind.RUNNER:
            return RUN_NAME
        return spoken_as(self.identity, self.name) if self.proof is not None else self.name


def spoken_as(identity: str, name: str) -> str:
    """The identity, with the name that it used if that is another one: `ada, as bob`."""
    if not identity or identity == name:
        return name
    return f"{identity}, as {name}" if name else identity


class Ancestor(NamedTuple):
    """A process, or one of those that started it."""

    pid: int
    #: The name that the system shows for it.
    program: str
    #: Every name that it is known by: its program, and the script that an interpreter runs.
    names: frozenset[str]
    #: The names of the variables that it was started with; None if they cannot be read.
    variables: frozenset[str] | None


class AgentSign(NamedTuple):
    """The reason why a process counts as an agent's."""

    client: str
    #: The variable, or the program of the client.
    mark: str
    ancestor: Ancestor
    #: The sign is in the process itself, not in one that started it.
    is_own: bool

    def describe(self) -> str:
        program, pid = self.ancestor.program, self.ancestor.pid
        if self.mark in self.ancestor.names:
            return f"process {pid} ({program}) started it"
        return f"{self.mark} is set" + ("" if self.is_own else f" in process {pid} ({program}) above it")


def sign_of_agent(
    lineage: Sequence[Ancestor], marks: Mapping[str, str], programs: Mapping[str, str]
) -> AgentSign | None:
    """The nearest sign of an agent in a process and its ancestors, nearest first; None if there is none.

    `marks` are variables and `programs` are programs that start agents, each with its client. A shell can replace
    itself and its environment, but not the program that started it. What cannot be read shows no sign.
    """
    for number, ancestor in enumerate(lineage):
        is_own = number == 0
        for mark, client in marks.items():
            if mark in (ancestor.variables or ()):
                return AgentSign(client, mark, ancestor, is_own)
        for program, client in () if is_own else programs.items():
            if program in ancestor.names:
                return AgentSign(client, program, ancestor, is_own)
    return None


def chain_text(lineage: Sequence[Ancestor]) -> str:
    """The programs, nearest first: `detent < bash < sshd (environment unknown)`. Neighbours with one name are one."""
    names = [
        f"{ancestor.program} (environment unknown)" if ancestor.variables is None else ancestor.program
        for ancestor in lineage
    ]
    names = [name for name, before in zip(names, ["", *names], strict=False) if name != before]
    return " < ".join([*names[:MAX_CHAIN], "…"] if len(names) > MAX_CHAIN else names)


def as_runner(actor: Actor) -> Actor:
    """The run that `actor` started. It acts by itself, so none of its commits is a person's decision."""
    return msgspec.structs.replace(actor, kind=ActorKind.RUNNER, proof=None)
