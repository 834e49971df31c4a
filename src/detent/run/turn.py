"""One turn of an agent: its environment, its events, and the retries after passing failures."""

import time
from typing import TYPE_CHECKING

import msgspec

from detent.clients.adapter.agent import Agent, Turn
from detent.core.run.agent_event import (
    AgentEvent,
    Failed,
    Failure,
    Finished,
    Said,
    Started,
    ToolStarted,
    ToolUsed,
    Used,
)
from detent.core.run.run_event import AgentDid, Retrying
from detent.core.session.budget import budget_escalation, cost_left
from detent.core.session.phase_state import Report, Tokens, ToolUse, Worker
from detent.engine.agents import environment as variables
from detent.run.job import Job
from detent.run.policy import pause_before, retries_left

if TYPE_CHECKING:
    from detent.config.place import Place
    from detent.engine.session import SessionHandle

#: Rate limit of an agent's messages: a burst, and messages per second after it. Messages above it are dropped.
SAID_BURST, SAID_PER_S = 50, 20
#: Failures after which the next turn begins a new conversation.
_ENDS_CONVERSATION = (Failure.ERROR, Failure.REFUSED)


class Delegated(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a turn: its end, and the report to record in either case."""

    end: Finished | Failed
    report: Report
    #: Whether the agent did anything: used tokens or a tool.
    answered: bool = True

    @property
    def never_answered(self) -> bool:
        """Whether a service in trouble kept the agent from beginning, in every try."""
        return isinstance(self.end, Failed) and self.end.failure is Failure.TRANSIENT and not self.answered


def delegate(
    handle: "SessionHandle",
    job: Job,
    *,
    name: str,
    agent: Agent,
    agent_id: str,
    prompt: str,
    place: "Place",
    minutes: float,
) -> Delegated:
    """Give the agent one turn, and retry it after a pause if it fails for a passing reason."""
    job.had_turn = True
    context, events, spent = job.context, _Events(job), Tokens()
    retries, attempts, retry = context.agents.settings_of(name).retries, context.options.attempts, 0
    work = (job.phase, job.task, name)
    env = {**context.marks, **_own(job, agent_id, name)}
    with context.scratch(agent_id) as scratch, context.inside(place, name, env, scratch) as inside:
        turn = Turn(
            agent_id=agent_id,
            session=context.session,
            phase=job.phase,
            task=job.task,
            token=str(job.token),
            prompt=prompt,
            cwd=place.base,
            scratch=scratch,
            env={**env, **inside.env},
            timeout_s=minutes * 60.0,
            sandbox=inside.sandbox,
            max_cost=cost_left(handle.state, job.phase),
        )
        while True:
            turn = msgspec.structs.replace(turn, conversation=context.conversations.get(work, ""))
            end, used = _try(handle, job, turn, agent, events, spent)
            spent += used
            retry += 1
            answered = spent != Tokens() or bool(events.tools)
            left = retries_left(retry, retries=retries, attempts=attempts, answered=answered)
            if not isinstance(end, Failed) or end.failure is not Failure.TRANSIENT or left <= 0:
                break
            context.conversations[work] = events.started.conversation
            _pause(job, end, name, retry=retry, of=retry + left - 1)
            if job.is_stopping():
                end = Failed(failure=Failure.STOPPED, reason=job.why_stopped)
                break
    if events.started.conversation and not (isinstance(end, Failed) and end.failure in _ENDS_CONVERSATION):
        context.conversations[work] = events.started.conversation
    else:
        context.conversations.pop(work, None)
    handle.notice_settings()
    report = end.report if isinstance(end, Finished) else Report()
    worker = Worker(agent=name, model=events.started.model, version=events.started.version)
    recorded = msgspec.structs.replace(report, tokens=spent, tools=tuple(events.tools), worker=worker)
    return Delegated(end=end, report=recorded, answered=answered)


def is_turn(agent_id: str) -> bool:
    """Whether a run gave this agent a turn of a phase, not a task."""
    return agent_id.startswith("run-") and agent_id.count("/") == 2


def over_budget(handle: "SessionHandle", phase: str, used: Tokens) -> str | None:
    """The limit that is exceeded if `used` is added to the recorded tokens, as a sentence."""
    session = handle.state
    known = session.phases[phase].report
    more = used + (known.tokens if known is not None else Tokens())
    raised = budget_escalation(session, phase, handle.now(), more)
    return raised[0].detail if raised else None


def _try(
    handle: "SessionHandle", job: Job, turn: Turn, agent: Agent, events: "_Events", spent: Tokens
) -> tuple[Finished | Failed, Tokens]:
    used = Tokens()
    end: Finished | Failed | None = None
    handle.back_up()
    for event in agent.work(turn, job.is_stopping):
        match event:
            case Used():
                used = used.grown_to(event.tokens)
                event = Used(tokens=used)  # noqa: PLW2901 - the feed tells no smaller figure either
                if (reason := over_budget(handle, job.phase, spent + used)) is not None:
                    job.stop(reason)
            case Finished() | Failed():
                end = event
            case Started() | ToolStarted() | ToolUsed() | Said():
                pass
        events.take(event)
    if end is None:
        end = Failed(failure=Failure.ERROR, reason="the agent ended without a result")
    if isinstance(end, Failed) and job.is_stopping():
        end = Failed(failure=Failure.STOPPED, reason=job.why_stopped)
    return end, used


def _pause(job: Job, end: Failed, name: str, *, retry: int, of: int) -> None:
    settings = job.context.agents.settings_of(name)
    pause_s = pause_before(retry, settings.backoff_s, end.retry_after_s)
    job.tell(Retrying, task=job.task, reason=end.reason, pause_s=pause_s, again=retry, of=of)
    job.wait(pause_s)


def _own(job: Job, agent_id: str, name: str) -> dict[str, str]:
    """Variables of this agent's environment alone."""
    own = {
        variables.AGENT: agent_id,
        variables.PHASE: job.phase,
        variables.TOKEN: str(job.token),
        variables.ACTOR: name,
    }
    if job.claim is not None and job.claim.task is not None:
        own |= {variables.TASK: job.claim.task, variables.CLAIM: str(job.claim.fence)}
    return own


class _Events:
    """Records the tools that an agent used, and passes its events on, at a limited rate."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.tools: list[ToolUse] = []
        self.started = Started()
        self._room, self._since_s = float(SAID_BURST), time.monotonic()

    def take(self, event: AgentEvent) -> None:
        # An agent that talks much must not hide what Detent says about it.
        is_dropped = isinstance(event, Said) and not (event.text.strip() and (event.by_detent or self._has_room()))
        if is_dropped or not isinstance(event, Started | ToolStarted | ToolUsed | Said | Used):
            return
        if isinstance(event, Started):
            self.started = event
        if isinstance(event, ToolUsed):
            now = self._job.context.clock()
            self.tools.append(ToolUse(tool=event.tool, input=event.input, at=now, succeeded=event.succeeded))
        self._job.tell(AgentDid, task=self._job.task, did=event)

    def _has_room(self) -> bool:
        now_s = time.monotonic()
        self._room = min(SAID_BURST, self._room + (now_s - self._since_s) * SAID_PER_S)
        self._since_s = now_s
        if self._room < 1:
            return False
        self._room -= 1
        return True
