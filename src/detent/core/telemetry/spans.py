"""The spans and metrics of a session, from its commits.

Session → attempts of phases → turns of agents → tool calls, and the checks of gates beside the turns. An id is a hash
of what the span is about, so that a second export has the same ids. Only what has ended is a span. Prompts, outputs,
commands and arguments of tools are left out.

The names follow the GenAI and CI/CD conventions of OpenTelemetry 1.37, which are in development.
"""

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from detent.core.gate.evidence import Receipt, Result
from detent.core.session import events
from detent.core.session.events import Commit, Event
from detent.core.session.phase_state import Tokens

CONVENTIONS = "1.37.0"
Value = str | int | float | bool


class Span(msgspec.Struct, frozen=True, kw_only=True):
    trace: str
    id: str
    #: Empty for the session itself.
    parent: str = ""
    name: str
    start: datetime
    end: datetime
    attributes: dict[str, Value] = {}
    #: None if it succeeded or if that is not known.
    error: str | None = None


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A sum over the session so far, for one set of attributes."""

    name: str
    unit: str
    value: float
    attributes: dict[str, Value] = {}


class Trace:
    """Collects the spans of one session, commit by commit. `take` gives those that have ended since the last call."""

    def __init__(self) -> None:
        self.session = ""
        self.workflow = ""
        self.started: datetime | None = None
        self.last: datetime | None = None
        self._trace = ""
        self._ended: list[Span] = []
        #: Phase in progress to its attempt and begin; id of an agent to its launch.
        self._attempts: dict[str, tuple[int, datetime]] = {}
        self._turns: dict[str, tuple[events.AgentLaunched, datetime, str]] = {}
        self._sums: dict[tuple[str, str, tuple[tuple[str, Value], ...]], float] = {}
        self._runs: dict[tuple[str, int, str], int] = {}
        #: Tokens that the turns of the attempt in progress reported, by phase. Its end repeats them.
        self._reported: dict[str, Tokens] = {}

    def add(self, commit: Commit) -> None:
        self.last = commit.at
        for index, event in enumerate(commit.events):
            self._event(event, commit, index)

    def take(self) -> tuple[Span, ...]:
        ended, self._ended = tuple(self._ended), []
        return ended

    def root(self) -> Span | None:
        """The span of the session up to its last commit; None for an empty journal."""
        if self.started is None or self.last is None:
            return None
        return Span(
            trace=self._trace,
            id=self._id("session"),
            name=f"invoke_workflow {self.workflow}",
            start=self.started,
            end=self.last,
            attributes={
                "gen_ai.operation.name": "invoke_workflow",
                "cicd.pipeline.name": self.workflow,
                "cicd.pipeline.run.id": self.session,
            },
        )

    def metrics(self) -> tuple[Metric, ...]:
        return tuple(
            Metric(name=name, unit=unit, value=value, attributes=dict(attributes))
            for (name, unit, attributes), value in sorted(self._sums.items())
        )

    def _event(self, event: Event, commit: Commit, index: int) -> None:
        at = commit.at
        if isinstance(event, events.SessionStarted):
            self.session, self.workflow, self.started = event.session, event.workflow.name, at
            self._trace = hashlib.sha256(f"{event.session}\0{at.isoformat()}".encode()).hexdigest()[:32]
        elif isinstance(event, events.PhaseBegun | events.PhaseRedone):
            self._end(event.phase, at, "redone")
            self._attempts[event.phase] = event.attempt, at
            self._reported.pop(event.phase, None)
            self._count("detent.phase.attempts", "{attempt}", 1, {"detent.phase": event.phase})
        elif isinstance(event, events.PhaseFinished):
            self._spend(_beyond(event.tokens, self._reported.get(event.phase)), "", "")
            self._end(event.phase, at, "success")
        elif isinstance(event, events.PhaseFailed):
            self._spend(_beyond(event.tokens, self._reported.get(event.phase)), "", "")
            self._end(event.phase, at, "failure", error="the attempt failed")
        elif isinstance(event, events.PhaseSkipped | events.PhaseReset):
            self._end(event.phase, at, "skip")
        elif isinstance(event, events.RolledBack):
            for phase in event.phases:
                self._end(phase, at, "cancellation")
        elif isinstance(event, events.AgentLaunched):
            self._turns[event.agent_id] = event, at, self._attempt_id(event.phase)
        elif isinstance(event, events.AgentEnded):
            self._turn_ended(event, at)
        elif isinstance(event, events.GateChecked):
            self._checked(event, commit, index)
        elif isinstance(event, events.SessionCompleted | events.SessionCancelled):
            for phase in tuple(self._attempts):
                self._end(phase, at, "cancellation")
            root = self.root()
            assert root is not None, "a session that ends has started"
            ended = "success" if isinstance(event, events.SessionCompleted) else "cancellation"
            attributes = {**root.attributes, "cicd.pipeline.result": ended}
            self._ended.append(msgspec.structs.replace(root, attributes=attributes))

    def _end(self, phase: str, at: datetime, result: str, error: str | None = None) -> None:
        if phase not in self._attempts:
            return
        attempt, begun = self._attempts[phase]
        span = Span(
            trace=self._trace,
            id=self._attempt_id(phase),
            parent=self._id("session"),
            name=f"phase {phase}",
            start=begun,
            end=at,
            attributes={
                "cicd.pipeline.task.name": phase,
                "cicd.pipeline.task.run.result": result,
                "detent.attempt": attempt,
            },
            error=error,
        )
        del self._attempts[phase]
        self._ended.append(span)

    def _turn_ended(self, event: events.AgentEnded, at: datetime) -> None:
        launched = self._turns.pop(event.agent_id, None)
        if launched is None:
            return
        start, since, parent = launched
        report, own = event.report, self._id("turn", event.agent_id)
        worker = report.worker if report is not None else None
        agent, model = worker.agent if worker is not None else start.agent, worker.model if worker is not None else ""
        attributes: dict[str, Value] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
        if model:
            attributes["gen_ai.request.model"] = model
        if report is not None:
            attributes["gen_ai.usage.input_tokens"] = report.tokens.input
            attributes["gen_ai.usage.output_tokens"] = report.tokens.output
            if report.tokens.cost:
                attributes["detent.cost"] = report.tokens.cost
            self._spend(report.tokens, agent, model)
            self._reported[event.phase] = self._reported.get(event.phase, Tokens()) + report.tokens
            for number, use in enumerate(report.tools):
                used = use.at or at
                tool = Span(
                    trace=self._trace,
                    id=self._id("tool", event.agent_id, str(number)),
                    parent=own,
                    name=f"execute_tool {use.tool}",
                    start=used,
                    end=used,
                    attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": use.tool},
                    error=None if use.succeeded else "the tool failed",
                )
                self._ended.append(tool)
        turn = Span(
            trace=self._trace,
            id=own,
            parent=parent,
            name=f"invoke_agent {agent}",
            start=since,
            end=at,
            attributes=attributes,
            error=None if event.succeeded else "the turn failed",
        )
        self._ended.append(turn)

    def _checked(self, event: events.GateChecked, commit: Commit, index: int) -> None:
        receipt = event.receipt
        attempt = self._attempts.get(event.phase, (0, commit.at))[0]
        if receipt.aside is None:
            key = event.phase, attempt, event.gate
            if self._runs.get(key):
                self._count("detent.gate.retries", "{run}", 1, {"detent.phase": event.phase, "detent.gate": event.gate})
            self._runs[key] = self._runs.get(key, 0) + 1
        span = Span(
            trace=self._trace,
            id=self._id("gate", str(commit.version), str(index)),
            parent=self._attempt_id(event.phase),
            name=f"gate {event.gate}",
            start=commit.at - timedelta(seconds=max(0.0, receipt.duration_s)),
            end=commit.at,
            attributes={
                "cicd.pipeline.task.name": event.gate,
                "cicd.pipeline.task.type": "test",
                "cicd.pipeline.task.run.result": _result(receipt),
                "detent.phase": event.phase,
                "detent.attempt": attempt,
            },
            error=None if receipt.is_pass else "the check did not pass",
        )
        self._ended.append(span)

    def _spend(self, tokens: Tokens, agent: str, model: str) -> None:
        who: dict[str, Value] = {"gen_ai.agent.name": agent, "gen_ai.request.model": model}
        own = {name: value for name, value in who.items() if value}
        for kind, count in (("input", tokens.input), ("output", tokens.output)):
            if count:
                self._count("gen_ai.client.token.usage", "{token}", count, {**own, "gen_ai.token.type": kind})
        if tokens.cost:
            self._count("detent.cost", "USD", tokens.cost, own)

    def _count(self, name: str, unit: str, value: float, attributes: dict[str, Value]) -> None:
        key = name, unit, tuple(sorted(attributes.items()))
        self._sums[key] = self._sums.get(key, 0) + value

    def _attempt_id(self, phase: str) -> str:
        attempt = self._attempts.get(phase, (0, None))[0]
        return self._id("attempt", phase, str(attempt)) if attempt else self._id("session")

    def _id(self, *parts: str) -> str:
        return hashlib.sha256("\0".join((self._trace, *parts)).encode()).hexdigest()[:16]


def _beyond(total: Tokens, reported: Tokens | None) -> Tokens:
    """The tokens of an attempt that no turn reported."""
    if reported is None:
        return total
    return Tokens(
        input=max(0, total.input - reported.input),
        output=max(0, total.output - reported.output),
        cost=max(0.0, total.cost - reported.cost),
    )


def _result(receipt: Receipt) -> str:
    if receipt.result is Result.ERROR:
        return "error"
    return "success" if receipt.is_pass else "failure"


def trace_of(commits: Iterable[Commit]) -> tuple[Trace, tuple[Span, ...]]:
    """The trace of a whole journal, with the span of the session even if it goes on."""
    trace = Trace()
    for commit in commits:
        trace.add(commit)
    spans = trace.take()
    root = trace.root()
    if root is not None and all(span.id != root.id for span in spans):
        spans = (*spans, root)
    return trace, spans
