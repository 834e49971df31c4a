"""Draws a phase graph for the terminal and as Mermaid, with the status of each phase if there is a session."""

from collections.abc import Iterator, Mapping

from detent.core.counted import counted
from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.core.workflow.phase_title import own_title
from detent.render.terminal.canvas import Canvas, columns_of
from detent.render.terminal.graph_lanes import lanes_of
from detent.render.terminal.phase_names import phase_names

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
    places = {key: f"{at} " for at, key in enumerate(_order(workflow, by_phase), 1)}
    for key, name in names.items():
        phase = workflow.by_key[key]
        title = own_title(phase)
        named = f"{places.get(key, '')}{title or key}"
        label = "<br/>".join(_escaped(part) for part in (named, key if title else "", phase.agent) if part)
        style = f":::{by_phase[key]}" if by_phase.get(key) in _STYLES else ""
        lines.append(f'    {name}["{label}"]{style}')
    lines += [f"    {names[need]} --> {name}" for key, name in names.items() for need in workflow.by_key[key].needs]
    used = {status for status in by_phase.values() if status in _STYLES}
    lines += [f"    classDef {status} {style}" for status, style in _STYLES.items() if status in used]
    return "\n".join(lines)


def _order(workflow: Workflow, by_phase: Mapping[str, Status]) -> list[str]:
    """The phases that have a position."""
    return [key for key in workflow.order if by_phase.get(key) is not Status.SKIPPED]


def _drawn(workflow: Workflow, by_phase: Mapping[str, Status], canvas: Canvas) -> Iterator[str]:
    lanes = lanes_of(workflow, canvas)
    lane_columns = lanes.width + 1
    names = phase_names(workflow, _order(workflow, by_phase), canvas).within(canvas.width - lane_columns)
    for row in lanes.rows:
        phase = workflow.by_key[row.phase]
        if row.above:
            yield canvas.draw(row.above).rstrip()
        rail = lanes.rail(row, by_phase.get(phase.key, Status.PENDING), canvas)
        facts = canvas.draw(" · ").join(
            filter(None, (names.left_out(phase.key), *_facts(phase, needs=lanes.is_listed)))
        )
        first, below = f"{rail}{names.cell(phase.key)}", []
        if lane_columns + names.width + 2 + columns_of(canvas.clean(facts)) <= canvas.width:
            first += f"  {facts}"
        else:
            below = canvas.wrap(facts, f"{canvas.draw(row.beside):<{lane_columns}}  ")
        yield first.rstrip()
        yield from below
        if row.below:
            yield canvas.draw(row.below)


def _facts(phase: Phase, *, needs: bool) -> Iterator[str]:
    yield phase.agent
    yield counted(len(phase.gates), "gate") if phase.gates else ""
    yield f"after {', '.join(phase.needs)}" if needs and phase.needs else ""


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c in " -_.,:/()" else f"#{ord(c)};" for c in " ".join(text.split()))
