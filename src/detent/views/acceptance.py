"""What opens each gate of a phase, and who judges it, in the words that an agent is told."""

from collections.abc import Sequence
from typing import assert_never

from detent.core.evidence import Judgement
from detent.core.gate import (
    Approval,
    Artifacts,
    Command,
    Consensus,
    Constitution,
    Delegation,
    Elicitation,
    Gate,
    Tests,
    gate_name,
)
from detent.core.judge import artifact_paths
from detent.core.limits import cut
from detent.core.session import Session

#: A gate takes one line; what is longer than this stands in the workflow, and nobody reads it as a line.
MAX_LINE = 2_000


def gate_lines(session: Session, phase: str, judged: Sequence[Judgement], *, tests: str | None) -> list[str]:
    """One line for each gate. `tests` is what runs the tests where a gate names no command itself."""
    if not session.gates_apply:
        return []
    verdicts = {one.gate: one.verdict for one in judged}
    lines = []
    for gate in session.workflow.by_key[phase].gates:
        name = gate_name(gate)
        stands = f" Now {verdicts[name]}." if name in verdicts else ""
        lines.append(f"- {name}: {cut(_opened_by(session, phase, gate, tests), MAX_LINE)}{stands}")
    return lines


def _opened_by(session: Session, phase: str, gate: Gate, tests: str | None) -> str:
    match gate:
        case Tests():
            return _tests(phase, gate, gate.command or tests)
        case Constitution():
            return _constitution(phase, gate)
        case Elicitation():
            chosen = " ".join(f"--choice {choice}" for choice in gate.final)
            count = "one question" if gate.interactions <= 1 else f"{gate.interactions} questions"
            return f'a person must have answered {count}; ask the last one with `detent ask "HOW TO GO ON?" {chosen}`.'
        case Artifacts():
            return f"these files must be there: {', '.join(artifact_paths(gate, session.folder))}."
        case Delegation():
            return "your own run opens it when it ends well; there is nothing to do for it."
        case Command():
            return f"`{gate.command}` must exit with 0. Detent runs it when your turn ends{_tries(gate)}."
        case Consensus():
            return f"{gate.quorum} of {', '.join(gate.approvers)} must approve. They are asked; you are not."
        case Approval():
            return f"{' or '.join(gate.approvers) or 'a person'} must approve. They are asked; you are not."
        case _:
            assert_never(gate)


def _tests(phase: str, gate: Tests, command: str | None) -> str:
    enough = f", with {gate.coverage} % coverage or more" if gate.coverage is not None else ""
    kept = f"; {', '.join(gate.protected)} must also pass as they were when the phase began" if gate.protected else ""
    if command:
        return f"`{command}` must pass{enough}{kept}. Detent runs it when your turn ends{_tries(gate)}."
    run = f"detent gate run {gate_name(gate)} --phase {phase} -- YOUR TEST COMMAND"
    return f"the tests must pass{enough}{kept}. Run them after your last change with `{run}`."


def _constitution(phase: str, gate: Constitution) -> str:
    articles = f"article{'s' if len(gate.articles) > 1 else ''} {', '.join(gate.articles)} of {gate.file}"
    if gate.checks:
        checks = ", ".join(f"`{line}` ({article})" for article, line in gate.checks.items())
        return f"your work must comply with {articles}. Detent runs {checks} when your turn ends{_tries(gate)}."
    report = f"detent gate report {gate_name(gate)} --phase {phase} --compliant"
    return f"your work must comply with {articles}. Read them, check it, mend it, then run `{report}`."


def _tries(gate: Tests | Command | Constitution) -> str:
    return f", {gate.max_iterations} times at most"
