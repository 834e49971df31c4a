"""What has become of one phase, as a value."""

import hashlib
from datetime import datetime

import msgspec

from detent.core.gate.evidence import Delegated, GateState
from detent.core.session.status import Status

_encode = msgspec.json.Encoder().encode
#: Copying a hash object is twice as fast as making one.
_SHA256 = hashlib.sha256()


#: Artifacts and deliverables of all turns of an attempt together; the last ones stay.
MOST_NAMED = 1_000


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Model tokens that an attempt used."""

    input: int = 0
    output: int = 0
    cost: float = 0.0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(input=self.input + other.input, output=self.output + other.output, cost=self.cost + other.cost)


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a tool that an agent made, in short."""

    tool: str
    input: str = ""
    at: datetime | None = None
    succeeded: bool = True


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent that did a part of an attempt said about it, and what it used."""

    summary: str = ""
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0

    def and_then(self, later: "Report", most_tools: int) -> "Report":
        """Both together: what is used adds up, and the later words count where there are any."""
        tools = (*self.tools, *later.tools)
        return Report(
            summary=later.summary or self.summary,
            artifacts=tuple(dict.fromkeys((*self.artifacts, *later.artifacts)))[-MOST_NAMED:],
            deliverables=tuple(dict.fromkeys((*self.deliverables, *later.deliverables)))[-MOST_NAMED:],
            context=later.context or self.context,
            tokens=self.tokens + later.tokens,
            tools=tools[-most_tools:],
            tools_dropped=self.tools_dropped + later.tools_dropped + max(0, len(tools) - most_tools),
        )


class PhaseState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What has become of one phase. Times are of the live or last attempt, but `started` is of the first."""

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
    #: The last tools that the agent of the attempt used, and how many more there were.
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0
    #: By gate name; an attempt starts with none.
    gates: dict[str, GateState] = {}
    delegations: tuple[Delegated, ...] = ()
    #: What the agents of the live attempt have reported so far.
    report: Report | None = None
    #: Manifest of the protected tests as they were when the phase was first begun.
    protected: str | None = None
    #: Where a person's review stands: pending, reviewing or done; none without supervision.
    review: str | None = None
    review_redos: int = 0
    #: A person let the phase go on although a budget is exceeded.
    budget_accepted: bool = False
    #: The last attempts that have a checkpoint named after nothing but them.
    pre: int = 0
    post: int = 0

    def digest(self) -> bytes:
        total = _SHA256.copy()
        total.update(_encode(self))
        return total.digest()

    @property
    def all_tokens(self) -> Tokens:
        """What the phase has used, with what the agents of an attempt reported that has not got to its end."""
        return self.tokens if self.report is None else self.tokens + self.report.tokens

    @property
    def retries(self) -> int:
        return max(0, self.attempt - 1)
