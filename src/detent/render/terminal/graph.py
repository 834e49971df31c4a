"""A phase graph as a drawing for the terminal and as Mermaid, with or without what has become of each phase."""

from collections.abc import Iterator, Mapping

from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.graph_lanes import graph_lanes, is_chain
from detent.render.terminal.status import own_title

_STYLES = {
    Status.COMPLETED: "fill:#d3f9d8,stroke:#2b8a3e,color:#000",
    Status.IN_PROGRESS: "fill:#fff3bf,stroke:#e67700,color:#000",
    Status.FAILED: "fill:#ffe3e3,stroke:#c92a2a,color:#000",
    Status.SKIPPED: "fill:#f1f3f5,stroke:#adb5bd,color:#868e96,stroke-dasharray:4",
}


def statuses(session: Session) -> dict[str, Status]:
    return {key: state.status for key, state in session.phases.items()}


def graph_text(workflow: Workflow, standing: Mapping[str, Status], *, canvas: Canvas) -> str:
    """One phase a line, along rails that show what needs what."""
    return "\n".join(_drawn(workflow, standing, canvas))


def mermaid(workflow: Workflow, standing: Mapping[str, Status]) -> str:
    """A flowchart; text is escaped, so that nothing in a title can be taken for Mermaid."""
    names = {key: f"p{index}" for index, key in enumerate(workflow.order)}
    lines = ["flowchart TD"]
    for key, name in names.items():
        phase = workflow.by_key[key]
        label = "<br/>".join(_escaped(part) for part in (key, own_title(phase), phase.agent) if part)
        style = f":::{standing[key]}" if standing.get(key) in _STYLES else ""
        lines.append(f'    {name}["{label}"]{style}')
    lines += [f"    {names[need]} --> {name}" for key, name in names.items() for need in workflow.by_key[key].needs]
    used = {status for status in standing.values() if status in _STYLES}
    lines += [f"    classDef {status} {style}" for status, style in _STYLES.items() if status in used]
    return "\n".join(lines)


def _drawn(workflow: Workflow, standing: Mapping[str, Status], canvas: Canvas) -> Iterator[str]:
    tracks = graph_lanes(workflow, canvas.width // 8)
    lanes = max(len(track.left) + 1 + len(track.right) for track in tracks)
    keys = min(max(map(len, workflow.order)), canvas.width // 2)
    listed = lanes == 1 and not is_chain(workflow)
    for track in tracks:
        phase = workflow.by_key[track.phase]
        if track.above:
            yield canvas.draw(track.above).rstrip()
        glyph = canvas.glyph(standing.get(phase.key, Status.PENDING))
        margin = " " * (lanes - len(track.left) - len(track.right))
        head = f"{canvas.draw(track.left)}{glyph}{canvas.draw(track.right)}{margin}{canvas.pad(phase.key, keys)}"
        told = _told(phase, standing.get(phase.key), canvas, needs=listed)
        yield f"{head}  {canvas.cut(told, canvas.width - lanes - 1 - keys - 2)}".rstrip()
        if track.below:
            yield canvas.draw(track.below)


def _told(phase: Phase, status: Status | None, canvas: Canvas, *, needs: bool) -> str:
    stands = str(status).replace("_", " ") if status else ""
    after = f"after {', '.join(phase.needs)}" if needs and phase.needs else ""
    gates = f"{len(phase.gates)} gate{'s' if len(phase.gates) > 1 else ''}" if phase.gates else ""
    return canvas.draw(" · ").join(part for part in (stands, own_title(phase), phase.agent, gates, after) if part)


def _escaped(text: str) -> str:
    return "".join(c if c.isalnum() or c in " -_.,:/()" else f"#{ord(c)};" for c in " ".join(text.split()))
