"""Draws a phase graph for the terminal and as Mermaid, with the status of each phase if there is a session."""

from collections.abc import Iterator, Mapping

from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.render.size import counted
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.graph_lanes import lanes_of
from detent.render.terminal.status import own_title

_STYLES = {
    Status.COMPLETED: "fill:#d3f9d8,stroke:#2b8a3e,color:#000",
    Status.IN_PROGRESS: "fill:#fff3bf,stroke:#e67700,color:#000",
    Status.FAILED: "fill:#ffe3e3,stroke:#c92a2a,color:#000",
    Status.SKIPPED: "fill:#f1f3f5,stroke:#adb5bd,color:#868e96,stroke-dasharray:4",
}


def statuses(session: Session) -> dict[str, Status]:
    return {key: state.status for key, state in session.phases.items()}


def graph_text(workflow: Workflow, by_phase: Mapping[str, Status], *, canvas: Canvas) -> str:
    """One phase a line, with lanes for its needs."""
    return "\n".join(_drawn(workflow, by_phase, canvas))


def mermaid(workflow: Workflow, by_phase: Mapping[str, Status]) -> str:
    """A flowchart; titles are escaped, so that they cannot contain Mermaid syntax."""
    names = {key: f"p{index}" for index, key in enumerate(workflow.order)}
    lines = ["flowchart TD"]
    for key, name in names.items():
        phase = workflow.by_key[key]
        label = "<br/>".join(_escaped(part) for part in (key, own_title(phase), phase.agent) if part)
        style = f":::{by_phase[key]}" if by_phase.get(key) in _STYLES else ""
        lines.append(f'    {name}["{label}"]{style}')
    lines += [f"    {names[need]} --> {name}" for key, name in names.items() for need in workflow.by_key[key].needs]
    used = {status for status in by_phase.values() if status in _STYLES}
    lines += [f"    classDef {status} {style}" for status, style in _STYLES.items() if status in used]
    return "\n".join(lines)


def _drawn(workflow: Workflow, by_phase: Mapping[str, Status], canvas: Canvas) -> Iterator[str]:
    lanes = lanes_of(workflow, canvas)
    keys = min(max(map(len, workflow.order)), canvas.width // 2)
    for row in lanes.rows:
        phase = workflow.by_key[row.phase]
        if row.above:
            yield canvas.draw(row.above).rstrip()
        rail = lanes.rail(row, by_phase.get(phase.key, Status.PENDING), canvas)
        text = _facts(phase, by_phase.get(phase.key), canvas, needs=lanes.is_listed)
        room = canvas.width - lanes.width - 1 - keys - 2
        yield f"{rail}{canvas.pad(phase.key, keys)}  {canvas.cut(text, room)}".rstrip()
        if row.below:
            yield canvas.draw(row.below)


def _facts(phase: Phase, status: Status | None, canvas: Canvas, *, needs: bool) -> str:
    state = str(status).replace("_", " ") if status else ""
    after = f"after {', '.join(phase.needs)}" if needs and phase.needs else ""
    gates = counted(len(phase.gates), "gate") if phase.gates else ""
    return canvas.draw(" · ").join(part for part in (state, own_title(phase), phase.agent, gates, after) if part)


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c in " -_.,:/()" else f"#{ord(c)};" for c in " ".join(text.split()))
