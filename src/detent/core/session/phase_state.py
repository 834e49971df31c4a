"""The state of one phase, and its parts: tokens, tool calls, reports."""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from detent.core.gate.evidence import Delegated, GateState
from detent.core.session.status import Status
from detent.sha256 import sha256

_encode = msgspec.json.Encoder().encode
_FRESH = GateState()
#: Maximum number of artifacts and of deliverables of an attempt. The last ones are kept.
MAX_PATHS = 1_000


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Model tokens that an attempt used."""

    input: int = 0
    output: int = 0
    cost: float = 0.0

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(input=self.input + other.input, output=self.output + other.output, cost=self.cost + other.cost)

    def grown_to(self, later: "Tokens") -> "Tokens":
        """The later figure of the same use. Nothing that was used is taken back, whatever the agent tells then."""
        more = later if later.input + later.output >= self.input + self.output else self
        return Tokens(input=more.input, output=more.output, cost=max(self.cost, later.cost))


class ToolUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One tool call of an agent."""

    tool: str
    input: str = ""
    at: datetime | None = None
    succeeded: bool = True


class Worker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author of a turn: the configured agent, the model that it used, and the version of its program."""

    agent: str
    model: str = ""
    version: str = ""

    def describe(self) -> str:
        return f"{self.agent} ({self.model})" if self.model else self.agent


def is_of_worker(agent_id: str) -> bool:
    """Whether a worker of a run on several machines started the agent: the id of its run names the job too."""
    run = agent_id.partition("/")[0]
    return run.startswith("run-") and run.count("-") > 1


def run_agent(agent_id: str) -> str:
    """The configured agent to which a run gave this id; empty if no run gave it."""
    run, _, rest = agent_id.partition("/")
    return rest.partition("/")[0] if run.startswith("run-") else ""


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report of an agent about its part of an attempt, with its usage."""

    summary: str = ""
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    #: How each acceptance criterion of a task was met.
    met: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    tools: tuple[ToolUse, ...] = ()
    tools_dropped: int = 0
    worker: Worker | None = None

    def and_then(self, later: "Report", max_tools: int) -> "Report":
        """Both reports as one: usage adds up, and later texts replace earlier ones."""
        tools = (*self.tools, *later.tools)
        return Report(
            summary=later.summary or self.summary,
            artifacts=tuple(dict.fromkeys((*self.artifacts, *later.artifacts)))[-MAX_PATHS:],
            deliverables=tuple(dict.fromkeys((*self.deliverables, *later.deliverables)))[-MAX_PATHS:],
            context=later.context or self.context,
            met=later.met or self.met,
            tokens=self.tokens + later.tokens,
            tools=tools[-max_tools:],
            tools_dropped=self.tools_dropped + later.tools_dropped + max(0, len(tools) - max_tools),
            worker=later.worker or self.worker,
        )


# The state of a phase, by how long a field keeps its value: a field belongs to the class that says it.


class _Always(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Never goes back, not even in a rollback."""

    attempt: int = 0
    fence: int = 0
    started: datetime | None = None
    tokens: Tokens = Tokens()
    #: The last attempts that have a PRE or POST checkpoint of their own.
    pre: int = 0
    post: int = 0


class _OverResets(_Always, frozen=True, kw_only=True, omit_defaults=True):
    """Survives a redo and a reset. A rollback returns it to its past value."""

    status: Status = Status.PENDING
    agent: str = ""


class _OverRedos(_OverResets, frozen=True, kw_only=True, omit_defaults=True):
    """Survives a redo. A phase that is reset begins without it."""

    #: Digest of the manifest of the files at the first begin; None if they were not captured.
    tree: str | None = None
    review_redos: int = 0


class PhaseState(_OverRedos, frozen=True, kw_only=True, omit_defaults=True):
    """The state of one phase. What stands here is of the last attempt, and the next one begins without it."""

    begun: datetime | None = None
    completed: datetime | None = None
    gate_passed: datetime | None = None
    summary: str | None = None
    artifacts: tuple[str, ...] = ()
    deliverables: tuple[str, ...] = ()
    context: str = ""
    error: str | None = None
    skip_reason: str | None = None
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
    #: A person let the phase continue over its budget.
    budget_accepted: bool = False
    #: Digest of the protected files when the phase was finished, if it rewrote tests.
    protected: str | None = None

    def digest(self) -> bytes:
        return sha256(_encode(self)).digest()

    def at_gate(self, name: str) -> GateState:
        """The state of a gate; that of a fresh one before anything happened at it."""
        return self.gates.get(name, _FRESH)

    @property
    def all_tokens(self) -> Tokens:
        """The tokens of the phase, with those that agents of the attempt in progress reported."""
        return self.tokens if self.report is None else self.tokens + self.report.tokens

    @property
    def retries(self) -> int:
        return max(0, self.attempt - 1)

    def redone(self, **changes: Any) -> "PhaseState":
        """The state at the beginning of the next attempt."""
        return replace(self, **(_REDONE | changes))

    def reset(self, **changes: Any) -> "PhaseState":
        """The state of the phase if it has to be done again, as after the redo of a phase that it needs."""
        return replace(self, **(_RESET | changes))

    def rolled_back(self, past: "PhaseState", **changes: Any) -> "PhaseState":
        """The state of the phase after a rollback to `past`: the fields that never go back are those of the present."""
        kept = {name: getattr(self, name) for name in _Always.__struct_fields__}
        return replace(past, **{**kept, **changes})


def _lost(kept: type[_Always]) -> dict[str, Any]:
    """The fields that a phase does not keep, with their values at the beginning."""
    new = PhaseState()
    return {name: getattr(new, name) for name in new.__struct_fields__ if name not in kept.__struct_fields__}


_REDONE, _RESET = _lost(_OverRedos), _lost(_OverResets)
