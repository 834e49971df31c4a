"""The state of one phase, and its parts: tokens, tool calls, reports."""

import hashlib
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Delegated, GateState
from detent.core.session.status import Status

_encode = msgspec.json.Encoder().encode
#: Copying a hash object is twice as fast as making one.
_SHA256 = hashlib.sha256()
#: Maximum number of artifacts and of deliverables of an attempt. The last ones are kept.
MAX_PATHS = 1_000


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

    status: Status = Status.PENDING
    attempt: int = 0
    fence: int = 0
    agent: str = ""
    started: datetime | None = None
    begun: datetime | None = None
    completed: datetime | None = None
    gate_passed: datetime | None = None
    summary: str | None = None
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    error: str | None = None
    skip_reason: str | None = None
    tokens: Tokens = Tokens()
    #: The last tool calls of the attempt, and the number of earlier ones.
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0
    #: Gate name to its state in the current attempt.
    gates: dict[str, GateState] = {}
    delegations: tuple[Delegated, ...] = ()
    #: The reports of the agents of the attempt in progress.
    report: Report | None = None
    #: The status of a person's review: pending, reviewing or done; None without supervision.
    review: str | None = None
    review_redos: int = 0
    #: A person let the phase continue over its budget.
    budget_accepted: bool = False
    #: The last attempts that have a PRE or POST checkpoint of their own.
    pre: int = 0
    post: int = 0

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
