"""Draws the diagrams of the concept pages as SVG, the states of a phase from the code: `python -m book.diagrams`."""

import sys
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape

from detent.core.session.events import PhaseReset
from detent.core.session.transition import TRANSITIONS

IMAGES = Path(__file__).parents[1] / "docs" / "images"
_BOX_W, _BOX_H, _GAP_X, _GAP_Y, _MARGIN = 150, 46, 110, 58, 20
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" style="marker-end:none;stroke:none;fill:#5b6472"/></marker></defs>'
)
_STYLE = """
  text { font: 14px system-ui, sans-serif; fill: #1f2430; text-anchor: middle; dominant-baseline: middle }
  .note { font-size: 12px; fill: #5b6472 }
  rect { fill: #eef0fd; stroke: #4b4fd8; rx: 8 } .truth { fill: #fff3d6; stroke: #b7791f }
  path { fill: none; stroke: #5b6472; stroke-width: 1.5; marker-end: url(#arrow) }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6e8ee } .note { fill: #a2abba } rect { fill: #262a44; stroke: #8b8ff5 }
    .truth { fill: #3a3016; stroke: #e3b341 } path { stroke: #a2abba } #arrow path { fill: #a2abba }
  }
"""


class Node(NamedTuple):
    label: str
    column: float
    row: float
    is_truth: bool = False


class Edge(NamedTuple):
    start: str
    end: str
    label: str = ""


class Diagram(NamedTuple):
    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


JOURNAL = Diagram(
    "A command is decided, its events are appended to the journal, and documents are computed from it",
    (
        Node("command", 0, 0),
        Node("decide", 1, 0),
        Node("events", 2, 0),
        Node("journal", 3, 0, is_truth=True),
        Node("session", 2, 1),
        Node("documents, views", 4, 0),
    ),
    (
        Edge("command", "decide"),
        Edge("decide", "events"),
        Edge("events", "journal", "append, sync"),
        Edge("journal", "session", "replay"),
        Edge("session", "decide"),
        Edge("journal", "documents, views"),
    ),
)
GATES = Diagram(
    "Detent runs a check and records a receipt; the judge compares it with the files and gives a verdict",
    (
        Node("check", 0, 0),
        Node("receipt", 1, 0, is_truth=True),
        Node("judge", 2, 0),
        Node("PASS", 3, -0.75),
        Node("FAIL, PENDING", 3, 0),
        Node("STALE", 3, 0.75),
        Node("files now", 1, 1),
    ),
    (
        Edge("check", "receipt", "Detent runs it"),
        Edge("receipt", "judge"),
        Edge("files now", "judge"),
        Edge("judge", "PASS"),
        Edge("judge", "FAIL, PENDING"),
        Edge("judge", "STALE"),
    ),
)
DECISIONS = Diagram(
    "A person decides at a terminal, with a key or with a touched key; the proof is verified on another machine",
    (
        Node("terminal", 0, -0.75),
        Node("SSH key", 0, 0),
        Node("touched key", 0, 0.75),
        Node("engine", 1, 0),
        Node("journal", 2, 0, is_truth=True),
        Node("detent verify", 3, 0),
        Node("approvers.toml", 3, 1),
    ),
    (
        Edge("terminal", "engine", "attended"),
        Edge("SSH key", "engine", "signed"),
        Edge("touched key", "engine", "hardware"),
        Edge("engine", "journal", "proof"),
        Edge("journal", "detent verify", "bundle"),
        Edge("approvers.toml", "detent verify"),
    ),
)
CHECKPOINTS = Diagram(
    "Each attempt has a checkpoint before and after it; a rollback goes back and keeps what it replaced",
    (
        Node("PRE plan", 0, 0),
        Node("POST plan", 1, 0),
        Node("PRE build", 2, 0),
        Node("POST build", 3, 0),
        Node("safety", 3, 1, is_truth=True),
    ),
    (
        Edge("PRE plan", "POST plan", "work"),
        Edge("POST plan", "PRE build"),
        Edge("PRE build", "POST build", "work"),
        Edge("POST build", "safety", "rollback"),
        Edge("safety", "POST plan", "to here"),
    ),
)
MACHINES = Diagram(
    "Your checkout starts a run; Temporal gives its jobs to workers; all use one Postgres and one git remote",
    (
        Node("your checkout", 0, 1),
        Node("Temporal", 1, 0),
        Node("Postgres", 1, 1, is_truth=True),
        Node("git remote", 1, 2),
        Node("workers", 2, 1),
    ),
    (
        Edge("your checkout", "Temporal", "run --on"),
        Edge("your checkout", "Postgres", "decisions"),
        Edge("git remote", "your checkout", "files"),
        Edge("Temporal", "workers", "jobs"),
        Edge("workers", "Postgres", "commits"),
        Edge("workers", "git remote", "files"),
    ),
)
#: Where each state of a phase is drawn.
_STATES = {
    "pending": (0, 0),
    "in_progress": (1.1, 0),
    "completed": (2.2, 0),
    "failed": (2.2, 1.3),
    "skipped": (0, 1.3),
}


def phase_states() -> Diagram:
    """The states of a phase and the steps between them, as the table of the engine has them.

    Left out: a phase that is pending again because an earlier one is redone.
    """
    steps: dict[tuple[str, str], list[str]] = {}
    for (before, step), after in TRANSITIONS.items():
        if before != after and step is not PhaseReset:
            steps.setdefault((before.value, after.value), []).append(step.__name__.removeprefix("Phase").lower())
    nodes = tuple(Node(name.replace("_", " "), *place) for name, place in _STATES.items())
    edges = tuple(
        Edge(before.replace("_", " "), after.replace("_", " "), ", ".join(sorted(set(names))))
        for (before, after), names in steps.items()
    )
    return Diagram("The states of a phase", nodes, edges)


def drawn(diagram: Diagram) -> str:
    """The diagram as an SVG."""
    places = {node.label: node for node in diagram.nodes}
    left, top = min(node.column for node in diagram.nodes), min(node.row for node in diagram.nodes)
    width = (max(node.column for node in diagram.nodes) - left) * (_BOX_W + _GAP_X) + _BOX_W + 2 * _MARGIN
    height = (max(node.row for node in diagram.nodes) - top) * (_BOX_H + _GAP_Y) + _BOX_H + 2 * _MARGIN

    def centre(node: Node) -> tuple[float, float]:
        x = _MARGIN + (node.column - left) * (_BOX_W + _GAP_X) + _BOX_W / 2
        return x, _MARGIN + (node.row - top) * (_BOX_H + _GAP_Y) + _BOX_H / 2

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img"',
        f'     aria-label="{escape(diagram.title)}">',
        f"<style>{_STYLE}</style>",
        _ARROW,
    ]
    pairs = {(edge.start, edge.end) for edge in diagram.edges}
    for edge in diagram.edges:
        is_paired = (edge.end, edge.start) in pairs
        lines += _arrow(centre(places[edge.start]), centre(places[edge.end]), edge.label, aside=9 if is_paired else 0)
    for node in diagram.nodes:
        x, y = centre(node)
        kind = ' class="truth"' if node.is_truth else ""
        lines.append(
            f'<rect{kind} x="{x - _BOX_W / 2:.0f}" y="{y - _BOX_H / 2:.0f}" width="{_BOX_W}" height="{_BOX_H}"/>'
        )
        lines.append(f'<text x="{x:.0f}" y="{y:.0f}">{escape(node.label)}</text>')
    return "\n".join((*lines, "</svg>\n"))


def _arrow(start: tuple[float, float], end: tuple[float, float], label: str, *, aside: float) -> list[str]:
    """An arrow between the borders of two boxes, beside the arrow of the other direction if there is one."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = (dx * dx + dy * dy) ** 0.5
    shift = (-dy / length * aside, dx / length * aside)
    out, into = _share(dx, dy, shift), _share(-dx, -dy, shift)
    x1, y1 = start[0] + dx * out + shift[0], start[1] + dy * out + shift[1]
    x2, y2 = end[0] - dx * into + shift[0], end[1] - dy * into + shift[1]
    lines = [f'<path d="M{x1:.0f} {y1:.0f} L{x2:.0f} {y2:.0f}"/>']
    if label:
        # Beside the arrow: on the outer side of a pair, above a single one.
        side = 1 if aside else -1 if dx > 0 else 1
        normal = (-dy / length * side, dx / length * side)
        space = 9 + 22 * abs(normal[0])
        at = (x1 + x2) / 2 + normal[0] * space, (y1 + y2) / 2 + normal[1] * space
        lines.append(f'<text class="note" x="{at[0]:.0f}" y="{at[1]:.0f}">{escape(label)}</text>')
    return lines


def _share(dx: float, dy: float, shift: tuple[float, float]) -> float:
    """The share of the way from the centre of a box, moved aside by `shift`, at which the border is reached."""
    across = (_BOX_W / 2 - shift[0] * (1 if dx > 0 else -1)) / abs(dx) if dx else 1
    down = (_BOX_H / 2 - shift[1] * (1 if dy > 0 else -1)) / abs(dy) if dy else 1
    return min(across, down)


def diagrams() -> dict[str, str]:
    """Every diagram, by its file name."""
    return {
        "concept-journal.svg": drawn(JOURNAL),
        "concept-phases.svg": drawn(phase_states()),
        "concept-gates.svg": drawn(GATES),
        "concept-decisions.svg": drawn(DECISIONS),
        "concept-checkpoints.svg": drawn(CHECKPOINTS),
        "machines.svg": drawn(MACHINES),
    }


def main() -> int:
    """Write the diagrams."""
    for name, text in diagrams().items():
        (IMAGES / name).write_text(text, "utf-8")
        print(f"wrote docs/images/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
