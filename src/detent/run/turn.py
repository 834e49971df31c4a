"""A turn given to an agent: what it is told, what comes back, and how often it is tried."""

import time
from typing import TYPE_CHECKING

import msgspec

from detent.clients.adapter.agent import Agent, Turn
from detent.core.run.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.run.run_event import AgentDid, Retrying
from detent.core.session.budget import budget_escalation
from detent.core.session.phase_state import Report, Tokens, ToolUse
from detent.engine.agents import environment as variables
from detent.run.job import Job
from detent.run.policy import pause_before

if TYPE_CHECKING:
    from detent.engine.session import SessionHandle

#: Lines of an agent that are passed on at once, and how many more a second; the rest is not shown to anybody.
SAID_BURST, SAID_PER_S = 50, 20


class Delegated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn: how it ended, and all that is to be recorded about it either way."""

    end: Finished | Failed
    report: Report


def delegate(
    handle: "SessionHandle",
    job: Job,
    *,
    name: str,
    agent: Agent,
    agent_id: str,
    prompt: str,
    cwd: str,
    minutes: float,
) -> Delegated:
    """One turn by an agent, again after a pause where it failed for a passing reason."""
    job.had_turn = True
    run_context, tools, spent = job.run_context, _Tools(job), Tokens()
    retries = run_context.agents.settings_of(name).retries
    with run_context.scratch(agent_id) as scratch:
        turn = Turn(
            agent_id=agent_id,
            session=run_context.session,
            phase=job.phase,
            task=job.task,
            token=_token(job),
            prompt=prompt,
            cwd=cwd,
            scratch=scratch,
            env={**run_context.marks, **_own(job, agent_id, name)},
            timeout_s=minutes * 60.0,
        )
        for again in range(retries + 1):
            end, used = _once(handle, job, turn, agent, tools, spent)
            spent += used
            if not isinstance(end, Failed) or end.failure is not Failure.TRANSIENT or again == retries:
                break
            _pause(job, end, again + 1, name)
            if job.is_stopping():
                end = Failed(failure=Failure.STOPPED, reason=job.why_stopped)
                break
    report = end.report if isinstance(end, Finished) else Report()
    return Delegated(end=end, report=msgspec.structs.replace(report, tokens=spent, tools=tuple(tools.used)))


def over_budget(handle: "SessionHandle", phase: str, used: Tokens) -> str | None:
    """Which limit is exceeded with what is used besides what the session knows, in words."""
    session = handle.state
    known = session.phases[phase].report
    more = used + (known.tokens if known is not None else Tokens())
    raised = budget_escalation(session, phase, handle.now(), more)
    return raised[0].detail if raised else None


def _once(
    handle: "SessionHandle", job: Job, turn: Turn, agent: Agent, tools: "_Tools", spent: Tokens
) -> tuple[Finished | Failed, Tokens]:
    used, end = Tokens(), None
    for event in agent.work(turn, job.is_stopping):
        match event:
            case Used():
                used = event.tokens
                if (reason := over_budget(handle, job.phase, spent + used)) is not None:
                    job.stop(reason)
            case Finished() | Failed():
                end = event
        tools.take(event)
    if end is None:
        end = Failed(failure=Failure.ERROR, reason="the agent ended without saying how")
    if not isinstance(end, Failed):
        return end, used
    if job.is_stopping():
        return Failed(failure=Failure.STOPPED, reason=job.why_stopped), used
    return end, used


def _pause(job: Job, end: Failed, again: int, name: str) -> None:
    run_context, settings = job.run_context, job.run_context.agents.settings_of(name)
    pause_s = pause_before(again, settings.backoff_s)
    run_context.tell(
        Retrying(
            at=run_context.clock(),
            phase=job.phase,
            task=job.task,
            reason=end.reason,
            pause_s=pause_s,
            again=again,
            of=settings.retries,
        )
    )
    job.wait(pause_s)


def _token(job: Job) -> str:
    assert job.claim is not None
    return str(job.claim.token)


def _own(job: Job, agent_id: str, name: str) -> dict[str, str]:
    """What only this agent's environment has."""
    own = {
        variables.AGENT: agent_id,
        variables.PHASE: job.phase,
        variables.TOKEN: _token(job),
        variables.ACTOR: name,
    }
    if job.claim is not None and job.claim.task is not None:
        own |= {variables.TASK: job.claim.task, variables.CLAIM: str(job.claim.fence)}
    return own


class _Tools:
    """What an agent did, for the record; passed on to whoever looks on, who is not flooded."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self.used: list[ToolUse] = []
        self._room, self._since_s = float(SAID_BURST), time.monotonic()

    def take(self, event: AgentEvent) -> None:
        now = self._job.run_context.clock()
        if isinstance(event, ToolUsed):
            self.used.append(ToolUse(tool=event.tool, input=event.input, at=now, succeeded=event.succeeded))
        elif isinstance(event, Said):
            if not self._has_room():
                return
        elif not isinstance(event, Started | Used):
            return
        self._job.run_context.tell(AgentDid(at=now, phase=self._job.phase, task=self._job.task, did=event))

    def _has_room(self) -> bool:
        now_s = time.monotonic()
        self._room = min(SAID_BURST, self._room + (now_s - self._since_s) * SAID_PER_S)
        self._since_s = now_s
        if self._room < 1:
            return False
        self._room -= 1
        return True
