"""The `elicitation` gate: a person must have answered questions and chosen how to continue."""

from typing import Any

from detent.core.gate.evidence import GateState, Verdict
from detent.core.gate.kind import Evidence, GateSettings, Opener, Surroundings, gate_name


class ElicitationGate(GateSettings, frozen=True, kw_only=True, tag="elicitation"):
    """A person must have answered questions and chosen how to continue."""

    opened_by = Opener.ANSWER

    interactions: int = 1
    final: tuple[str, ...] = ("save", "continue")

    @property
    def choices(self) -> tuple[str, ...]:
        return self.final

    def judge(self, evidence: Evidence) -> tuple[Verdict, str]:
        state = evidence.gate
        if state.interactions < 1 or state.interactions < self.interactions:
            return Verdict.PENDING, f"{state.interactions} of {self.interactions} questions were answered"
        if state.selection not in self.final:
            return Verdict.PENDING, f"no person has chosen {' or '.join(self.final)} yet"
        return Verdict.PASS, f"{state.interactions} answers, then {state.selection}"

    def way_out(self, phase: str, state: GateState) -> str:
        return f"detent gate answer {gate_name(self)} --choice {self.final[0]}"

    def requirement(self, phase: str, folder: str) -> str:
        chosen = " ".join(f"--choice {choice}" for choice in self.final)
        count = "one question" if self.interactions <= 1 else f"{self.interactions} questions"
        return f'a person must have answered {count}; ask the last one with `detent ask "HOW TO GO ON?" {chosen}`.'

    def proof(self, evidence: Evidence) -> str:
        selection = f", then {evidence.gate.selection}" if evidence.gate.selection else ""
        return f"{evidence.gate.interactions} answers{selection}"

    def skipped_because(self, project: Surroundings) -> str | None:
        if project.is_observed:
            return None
        gates = "no elicitation gate" if project.delegates else "no delegation and elicitation gates"
        return f"{gates}: no agent is installed (detent init --agent NAME)"

    def state_record(self, state: GateState, *, is_open: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
        return ("iteration_requirements", "interactive_elicitation"), {
            "required": True,
            "completed": is_open and state.interactions > 0,
            "menu_interactions": state.interactions,
            "final_selection": state.selection,
        }
