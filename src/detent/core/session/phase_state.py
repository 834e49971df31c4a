"""The state of one phase, and its parts: tokens, tool calls, reports."""

import hashlib
from datetime import datetime
from enum import Enum
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec.structs import replace

from detent.core.gate.evidence import Delegated, GateState
from detent.core.session.status import Status

_encode = msgspec.json.Encoder().encode
#: Copying a hash object is twice as fast as making one.
_SHA256 = hashlib.sha256()
#: Maximum number of artifacts and of deliverables of an attempt. The last ones are kept.
MAX_PATHS = 1_000


class Lasts(Enum):
    """How long a field of a phase's state keeps its value. Every field of `PhaseState` declares it."""

    #: It is empty again in the next attempt.
    ATTEMPT = 1
    #: It survives a redo. A phase that is reset begins without it.
    REDO = 2
    #: It survives a redo and a reset. A rollback returns it to its past value.
    RESET = 3
    #: It never goes back.
    ALWAYS = 4


_T = TypeVar("_T")
OfAttempt = Annotated[_T, Lasts.ATTEMPT]
OverRedos = Annotated[_T, Lasts.REDO]
OverResets = Annotated[_T, Lasts.RESET]
Always = Annotated[_T, Lasts.ALWAYS]


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Model tokens that an attempt used."""

    input: int = 0
    output: int = 0
    cost: float = 0.0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(input=self.input + other.input, output=self.output + other.output, cost=self.cost + other.cost)


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call of an agent."""

    tool: str
    input: str = ""
    at: datetime | None = None
    succeeded: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report of an agent about its part of an attempt, with its usage."""

    summary: str = ""
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0

    def and_then(self, later: "Report", max_tools: int) -> "Report":
        """Both reports as one: usage adds up, and later texts replace earlier ones."""
        tools = (*self.tools, *later.tools)
        return Report(
            summary=later.summary or self.summary,
            artifacts=tuple(dict.fromkeys((*self.artifacts, *later.artifacts)))[-MAX_PATHS:],
            deliverables=tuple(dict.fromkeys((*self.deliverables, *later.deliverables)))[-MAX_PATHS:],
            context=later.context or self.context,
            tokens=self.tokens + later.tokens,
            tools=tools[-max_tools:],
            tools_dropped=self.tools_dropped + later.tools_dropped + max(0, len(tools) - max_tools),
        )


class PhaseState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one phase. Times are those of the last attempt, except `started`, which is of the first."""

    status: OverResets[Status] = Status.PENDING
    attempt: Always[int] = 0
    fence: Always[int] = 0
    agent: OverResets[str] = ""
    started: Always[datetime | None] = None
    begun: OfAttempt[datetime | None] = None
    completed: OfAttempt[datetime | None] = None
    gate_passed: OfAttempt[datetime | None] = None
    summary: OfAttempt[str | None] = None
    artifacts: OfAttempt[tuple[str, ...]] = ()
    deliverables: OfAttempt[tuple[str, ...]] = ()
    context: OfAttempt[str] = ""
    error: OfAttempt[str | None] = None
    skip_reason: OfAttempt[str | None] = None
    tokens: Always[Tokens] = Tokens()
    #: The last tool calls of the attempt, and the number of earlier ones.
    tools: OfAttempt[tuple[ToolUse, ...]] = ()
    tools_dropped: OfAttempt[int] = 0
    #: Gate name to its state in the current attempt.
    gates: OfAttempt[dict[str, GateState]] = {}
    delegations: OfAttempt[tuple[Delegated, ...]] = ()
    #: The reports of the agents of the attempt in progress.
    report: OfAttempt[Report | None] = None
    #: Digest of the manifest of the protected tests at the first begin.
    protected: OverRedos[str | None] = None
    #: The status of a person's review: pending, reviewing or done; None without supervision.
    review: OfAttempt[str | None] = None
    review_redos: OverRedos[int] = 0
    #: A person let the phase continue over its budget.
    budget_accepted: OfAttempt[bool] = False
    #: The last attempts that have a PRE or POST checkpoint of their own.
    pre: Always[int] = 0
    post: Always[int] = 0

    def digest(self) -> bytes:
        total = _SHA256.copy()
        total.update(_encode(self))
        return total.digest()

    @property
    def all_tokens(self) -> Tokens:
        """The tokens of the phase, with those that agents of the attempt in progress reported."""
        return self.tokens if self.report is None else self.tokens + self.report.tokens

    @property
    def retries(self) -> int:
        return max(0, self.attempt - 1)

    def redone(self, **changes: Any) -> "PhaseState":
        """The state at the beginning of the next attempt."""
        return replace(self, **{**_EMPTY[Lasts.ATTEMPT], **changes})

    def reset(self, **changes: Any) -> "PhaseState":
        """The state of the phase if it has to be done again, as after the redo of a phase that it needs."""
        return replace(self, **{**_EMPTY[Lasts.ATTEMPT], **_EMPTY[Lasts.REDO], **changes})

    def rolled_back(self, past: "PhaseState", **changes: Any) -> "PhaseState":
        """The state of the phase after a rollback to `past`: the fields that never go back are those of the present."""
        return replace(past, **{**{name: getattr(self, name) for name in _EMPTY[Lasts.ALWAYS]}, **changes})


#: The fields by how long they last, with their values before the first attempt.
_EMPTY: dict[Lasts, dict[str, Any]] = {
    lasts: {
        name: getattr(PhaseState(), name)
        for name, declared in PhaseState.__annotations__.items()
        if lasts in getattr(declared, "__metadata__", ())
    }
    for lasts in Lasts
}
