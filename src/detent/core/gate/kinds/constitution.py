"""The `constitution` gate: the work must comply with the named articles of a file."""

from typing import Any

from msgspec.structs import replace

from detent.core.gate.checked import Checked, receipt_of
from detent.core.gate.evidence import GateState, Receipt, Result, Verdict
from detent.core.gate.kind import CheckRunner, GateSettings, Surroundings, gate_name
from detent.errors import Refused

#: For a project without the file; the page has a template.
_TEMPLATE = "see detent help gates"


class ConstitutionGate(GateSettings, Checked, frozen=True, kw_only=True, tag="constitution"):
    """The work must comply with the named articles of a file."""

    is_compliance = True

    articles: tuple[str, ...]
    file: str = "docs/constitution.md"
    #: Article to a command that decides it.
    checks: dict[str, str] = {}
    max_iterations: int = 5
    env: tuple[str, ...] = ()

    @property
    def inputs(self) -> None:
        """Compliance is judged by articles; an edit does not expire it."""
        return

    @property
    def is_reported(self) -> bool:
        return not self.checks

    def way_out(self, phase: str, state: GateState) -> str:
        name = gate_name(self)
        return f"detent gate run {name}" if self.checks else f"detent gate report {name} --compliant"

    def requirement(self, phase: str, folder: str) -> str:
        articles = f"article{'s' if len(self.articles) > 1 else ''} {', '.join(self.articles)} of {self.file}"
        if self.checks:
            checks = ", ".join(f"`{line}` ({article})" for article, line in self.checks.items())
            return f"your work must comply with {articles}. Detent runs {checks} when your turn ends{self.tries()}."
        report = f"detent gate report {gate_name(self)} --phase {phase} --not-compliant -m WHY"
        return (
            f"your work must comply with {articles}. Read them, check your work, and fix it. A person reports that it "
            f"complies; if it cannot, say so with `{report}`."
        )

    def runnable(self) -> str | None:
        return "its articles" if self.checks else None

    @property
    def recorded_command(self) -> str:
        return "; ".join(self.checks.values())

    def run(self, runner: CheckRunner, command: str | None) -> Receipt:
        """Run the check of every article; a reviewer reports the articles that have none."""
        runs = {article: runner.run(line) for article, line in self.checks.items() if article in self.articles}
        if not runs:
            raise Refused(
                "none of the articles has a check to run", way_out="detent gate report constitution --compliant"
            )
        command = self.recorded_command
        broken = next((ran for ran in runs.values() if ran.problem), None)
        if broken is not None:
            return receipt_of(broken, command, Result.ERROR)
        violated = tuple(article for article, ran in runs.items() if ran.exit_code != 0)
        unchecked = tuple(article for article in self.articles if article not in runs)
        failing = runs[violated[0]] if violated else next(iter(runs.values()))
        result = Result.FAILED if violated else Result.UNCLEAR if unchecked else Result.PASSED
        error = f"article {violated[0]} does not hold" if violated else None
        if result is Result.UNCLEAR:
            error = f"articles {', '.join(unchecked)} have no check; report them"
        receipt = receipt_of(failing, command, result)
        return replace(receipt, error=error, signature=",".join(violated), violated=violated)

    def needs_person(self, verdict: Verdict, *, sees_tests: bool) -> bool:
        return not self.checks

    def skipped_because(self, project: Surroundings) -> str | None:
        return None if project.exists(self.file) else f"no constitution gate: no {self.file}; {_TEMPLATE}"

    def state_record(self, state: GateState, *, is_open: bool) -> tuple[tuple[str, ...], dict[str, Any]]:
        compliant = state.receipt is not None and state.receipt.result is Result.PASSED
        if state.escalated:
            status = "escalated"
        elif compliant:
            status = "compliant"
        else:
            status = "in_progress" if state.iterations else "pending"
        return ("constitutional_validation",), {
            "required": True,
            "completed": is_open and state.iterations > 0,
            "status": status,
            "iterations_used": state.iterations,
            "max_iterations": self.max_iterations,
            "articles_required": list(self.articles),
            "escalation_approved": state.approved_by is not None,
        }
