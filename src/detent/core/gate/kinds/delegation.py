"""The `delegation` gate: the phase's agent must have run and succeeded."""

from detent.core.gate.evidence import GateState, Verdict
from detent.core.gate.kind import Evidence, GateSettings, Opener, Surroundings, gate_name
from detent.core.workflow.roles import SUB_AGENTS


class DelegationGate(GateSettings, frozen=True, kw_only=True, tag="delegation"):
    """The phase's agent must have run and succeeded."""

    opened_by = Opener.DELEGATION

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        agent, delegations = evidence.state.agent or "the agent", evidence.state.delegations
        ended = [entry for entry in delegations if entry.succeeded and entry.agent not in SUB_AGENTS]
        if ended:
            return Verdict.PASS, f"{ended[-1].agent} ran"
        running = [entry.agent for entry in delegations if entry.ended_at is None]
        if running:
            return Verdict.PENDING, f"{', '.join(running)} is still running"
        if delegations and delegations[-1].succeeded:
            return Verdict.PENDING, f"{delegations[-1].agent} ran, but {agent} has not"
        if delegations:
            return Verdict.FAIL, f"{delegations[-1].agent} failed"
        return Verdict.PENDING, f"{agent} has not run"

    def way_out(self, phase: str, state: GateState) -> str:
        return f"let the agent of {phase} run, or detent approve {phase} --gate {gate_name(self)} -m WHY"

    def requirement(self, phase: str, folder: str) -> str:
        return "your own run opens it when it succeeds; you need not do anything."

    def proof(self, evidence: Evidence) -> str:
        succeeded = (entry.agent for entry in evidence.state.delegations if entry.succeeded)
        return "; ".join(dict.fromkeys(f"{agent} ran" for agent in succeeded))

    def skipped_because(self, project: Surroundings) -> str | None:
        if project.delegates or project.is_observed:
            return None
        return "no delegation and elicitation gates: no agent is installed (detent init --agent NAME)"
