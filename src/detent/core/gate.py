"""What a phase asks for before it may be finished, as data.

A gate is declared in the workflow and pinned with it. Judging one is `core/judge.py`, running one is the engine's.
"""

import msgspec


class _Declared(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    #: How commands and evidence refer to it; the kind if a phase has only one of that kind.
    name: str = ""


class Tests(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="tests"):
    """A test run must pass, within a number of tries."""

    #: What `detent gate run` executes; without it a run seen in the agent's shell counts.
    command: str | None = None
    #: The files whose change makes a passed run stale.
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3
    coverage: int | None = None
    #: Test files that must also pass as they were when the phase began.
    protected: tuple[str, ...] = ()


class Constitution(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="constitution"):
    """The work must comply with the named articles of a file."""

    articles: tuple[str, ...]
    file: str = "docs/constitution.md"
    #: Article to a command that decides it.
    checks: dict[str, str] = {}
    max_iterations: int = 5


class Elicitation(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="elicitation"):
    """A person must have been asked, and must have said how to go on."""

    interactions: int = 1
    final: tuple[str, ...] = ("save", "continue")


class Artifacts(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="artifacts"):
    """Each path must exist; `{artifact_folder}` is the session's folder."""

    paths: tuple[str, ...]


class Delegation(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="delegation"):
    """The phase's agent must really have run."""


class Command(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="command"):
    """A command must exit with 0."""

    command: str
    inputs: tuple[str, ...] = ()
    max_iterations: int = 10
    circuit_breaker: int = 3


class Consensus(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="consensus"):
    """So many of the named approvers must agree."""

    approvers: tuple[str, ...]
    quorum: int


class Approval(_Declared, frozen=True, kw_only=True, tag_field="kind", tag="approval"):
    """A person must agree: one of the named, or anyone."""

    approvers: tuple[str, ...] = ()


Gate = Tests | Constitution | Elicitation | Artifacts | Delegation | Command | Consensus | Approval

#: Gates that a run decides, and so have a receipt, iterations and a circuit breaker.
Runnable = Tests | Constitution | Command


def gate_name(gate: Gate) -> str:
    return gate.name or gate_kind(gate)


def gate_kind(gate: Gate) -> str:
    return type(gate).__struct_config__.tag  # type: ignore[return-value]
