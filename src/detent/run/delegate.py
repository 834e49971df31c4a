"""A turn given to an agent: what it is told, what comes back, and how often it is tried."""

import time
from typing import TYPE_CHECKING

import msgspec

from detent.clients.adapter.agent import Agent, Turn
from detent.core.agent_event import AgentEvent, Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.budget import budget_escalation
from detent.core.phase_state import Report, Tokens, ToolUse
from detent.core.redact import redact
from detent.core.run_event import AgentDid, Retrying
from detent.engine import agent_environment as variables
from detent.run.course import pause_before
from detent.run.work import Work

if TYPE_CHECKING:
    from detent.engine.handle import SessionHandle

#: Lines of an agent that are passed on at once, and how many more a second; the rest is not shown to anybody.
SAID_BURST, SAID_PER_S = 50, 20


class Delegated(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a turn: how it ended, and all that is to be recorded about it either way."""

    end: Finished | Failed
    report: Report


def delegate(
    handle: "SessionHandle",
    work: Work,
    *,
    name: str,
    agent: Agent,
    agent_id: str,
    prompt: str,
    cwd: str,
    minutes: float,
) -> Delegated:
    """One turn by an agent, again after a pause where it failed for a passing reason."""
    work.had_turn = True
    desk, tools, spent = work.desk, _Tools(work), Tokens()
    retries = desk.agents.settings_of(name).retries
    with desk.scratch(agent_id) as scratch:
        turn = Turn(
            agent_id=agent_id,
            session=desk.session,
            phase=work.phase,
            task=work.task,
            token=_token(work),
            prompt=prompt,
            cwd=cwd,
            scratch=scratch,
            env={**desk.marks, **_own(work, agent_id, name)},
            timeout_s=minutes * 60.0,
        )
        for again in range(retries + 1):
            end, used = _once(handle, work, turn, agent, tools, spent)
            spent += used
            if not isinstance(end, Failed) or end.failure is not Failure.TRANSIENT or again == retries:
                break
            _pause(work, end, again + 1, name)
            if work.is_stopping():
                end = Failed(failure=Failure.STOPPED, reason=work.why_stopped)
                break
    report = _redacted(end.report) if isinstance(end, Finished) else Report()
    return Delegated(end=end, report=msgspec.structs.replace(report, tokens=spent, tools=tuple(tools.used)))


def over_budget(handle: "SessionHandle", phase: str, used: Tokens) -> str | None:
    """Which limit is exceeded with what is used besides what the session knows, in words."""
    session = handle.state
    known = session.phases[phase].report
    more = used + (known.tokens if known is not None else Tokens())
    raised = budget_escalation(session, phase, handle.now(), more)
    return raised[0].detail if raised else None


def _once(
    handle: "SessionHandle", work: Work, turn: Turn, agent: Agent, tools: "_Tools", spent: Tokens
) -> tuple[Finished | Failed, Tokens]:
    used, end = Tokens(), None
    for event in agent.work(turn, work.is_stopping):
        match event:
            case Used():
                used = event.tokens
                if (reason := over_budget(handle, work.phase, spent + used)) is not None:
                    work.stop(reason)
            case Finished() | Failed():
                end = event
        tools.take(event)
    if end is None:
        end = Failed(failure=Failure.ERROR, reason="the agent ended without saying how")
    if not isinstance(end, Failed):
        return end, used
    if work.is_stopping():
        return Failed(failure=Failure.STOPPED, reason=work.why_stopped), used
    return Failed(failure=end.failure, reason=redact(end.reason)), used


def _pause(work: Work, end: Failed, again: int, name: str) -> None:
    desk, settings = work.desk, work.desk.agents.settings_of(name)
    pause_s = pause_before(again, settings.backoff_s)
    desk.tell(
        Retrying(
            at=desk.clock(),
            phase=work.phase,
            task=work.task,
            reason=end.reason,
            pause_s=pause_s,
            again=again,
            of=settings.retries,
        )
    )
    work.wait(pause_s)


def _token(work: Work) -> str:
    assert work.target is not None
    return str(work.target.token)


def _own(work: Work, agent_id: str, name: str) -> dict[str, str]:
    """What only this agent's environment has."""
    own = {
        variables.AGENT: agent_id,
        variables.PHASE: work.phase,
        variables.TOKEN: _token(work),
        variables.ACTOR: name,
    }
    if work.target is not None and work.target.task is not None:
        own |= {variables.TASK: work.target.task, variables.CLAIM: str(work.target.claim)}
    return own


def _redacted(report: Report) -> Report:
    """Secrets go where an answer comes in: what is recorded of it is repeated in many places."""
    return msgspec.structs.replace(
        report,
        summary=redact(report.summary),
        context=redact(report.context),
        deliverables=tuple(redact(one) for one in report.deliverables),
    )


class _Tools:
    """What an agent did, for the record; passed on to whoever looks on, who is not flooded."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.used: list[ToolUse] = []
        self._room, self._since_s = float(SAID_BURST), time.monotonic()

    def take(self, event: AgentEvent) -> None:
        now = self._work.desk.clock()
        if isinstance(event, ToolUsed):
            event = ToolUsed(tool=event.tool, input=redact(event.input), succeeded=event.succeeded)
            self.used.append(ToolUse(tool=event.tool, input=event.input, at=now, succeeded=event.succeeded))
        elif isinstance(event, Said):
            if not self._has_room():
                return
            event = Said(text=redact(event.text))
        elif not isinstance(event, Started | Used):
            return
        self._work.desk.tell(AgentDid(at=now, phase=self._work.phase, task=self._work.task, did=event))

    def _has_room(self) -> bool:
        now_s = time.monotonic()
        self._room = min(SAID_BURST, self._room + (now_s - self._since_s) * SAID_PER_S)
        self._since_s = now_s
        if self._room < 1:
            return False
        self._room -= 1
        return True
