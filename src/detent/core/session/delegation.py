"""The agents of an attempt: launched with it, and what they reported when it ends."""

import msgspec

from detent.core.limits import (
    MAX_REASON,
    MAX_SUMMARY,
    MAX_TOOL_INPUT,
    MAX_TOOLS,
    check_artifacts,
    check_deliverables,
    cut,
)
from detent.core.session.commands import Fail, Finish
from detent.core.session.events import AgentEnded, AgentLaunched
from detent.core.session.phase_state import PhaseState, Report, ToolUse


def launched(phase: str, agent: str, agent_id: str | None) -> tuple[AgentLaunched, ...]:
    """An agent that is launched with the attempt is known from its first moment, so that none can be forgotten."""
    return () if agent_id is None else (AgentLaunched(phase=phase, agent=agent, agent_id=agent_id),)


def ended(state: PhaseState, phase: str, agent_id: str | None, *, succeeded: bool) -> tuple[AgentEnded, ...]:
    """The end of the agent that the attempt ends with, if it is one that was launched."""
    if agent_id is None or not any(one.agent_id == agent_id and one.ended_at is None for one in state.delegations):
        return ()
    return (AgentEnded(phase=phase, agent_id=agent_id, succeeded=succeeded),)


def checked_report(report: Report) -> Report:
    """A report as it may be stored: what only informs is cut, and paths stay inside the project."""
    return msgspec.structs.replace(
        report,
        summary=cut(report.summary.strip(), MAX_SUMMARY),
        artifacts=check_artifacts(report.artifacts),
        deliverables=check_deliverables(report.deliverables),
        context=cut(report.context, MAX_REASON),
        tools=tuple(map(_short, report.tools[-MAX_TOOLS:])),
        tools_dropped=report.tools_dropped + max(0, len(report.tools) - MAX_TOOLS),
    )


def _short(use: ToolUse) -> ToolUse:
    if len(use.input) <= MAX_TOOL_INPUT and len(use.tool) <= MAX_TOOL_INPUT:
        return use
    return msgspec.structs.replace(use, tool=cut(use.tool, MAX_TOOL_INPUT), input=cut(use.input, MAX_TOOL_INPUT))


def whole_report(state: PhaseState, command: Finish | Fail) -> Report:
    """What the agents of the attempt reported while it went on, and what is said at its end."""
    last = Report(artifacts=command.artifacts, tokens=command.tokens, tools=command.tools)
    return (state.report or Report()).and_then(checked_report(last), MAX_TOOLS)
