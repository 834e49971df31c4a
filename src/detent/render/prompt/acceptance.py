"""The lines of a prompt that tell an agent what opens each gate of its phase."""

from collections.abc import Sequence

from detent.core.gate import gate_name
from detent.core.gate.evidence import Judgement
from detent.core.limits import cut
from detent.core.session.session import Session

#: A gate takes one line; longer settings are in the workflow.
MAX_LINE = 2_000


def gate_lines(session: Session, phase: str, judged: Sequence[Judgement], *, tests: str | None) -> list[str]:
    """One line for each gate. `tests` is what runs the tests where a gate names no command itself."""
    if not session.gates_apply:
        return []
    verdicts = {judgement.gate: judgement.verdict for judgement in judged}
    lines = []
    for gate in session.workflow.by_key[phase].gates:
        name = gate_name(gate)
        now = f" Now {verdicts[name]}." if name in verdicts else ""
        lines.append(f"- {name}: {cut(gate.requirement(phase, session.folder, tests), MAX_LINE)}{now}")
    return lines
