"""Lays out a phase graph: one phase a line, with a lane for every edge that passes it."""

from collections.abc import Iterable, Sequence

import msgspec

from detent.core.session.status import Status
from detent.core.workflow.graph import Workflow
from detent.render.terminal.canvas import Canvas

#: Larger graphs are drawn without removing redundant edges.
_MOST_REDUCED = 500


class LaneRow(msgspec.Struct, frozen=True, kw_only=True):
    """The lanes around the glyph of a phase: above, left, right, beside its details, and below."""

    phase: str
    above: str = ""
    left: str = ""
    right: str = ""
    beside: str = ""
    below: str = ""


class Lanes(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of a graph on a canvas."""

    rows: list[LaneRow]
    #: Columns of the lanes.
    width: int
    #: The graph is too wide for lanes, so the needs of each phase are listed as text.
    is_listed: bool

    def rail(self, row: LaneRow, status: Status, canvas: Canvas) -> str:
        """The glyph of a phase between its lanes, and the margin before its key."""
        margin = " " * (self.width - len(row.left) - len(row.right))
        return f"{canvas.draw(row.left)}{canvas.glyph(status)}{canvas.draw(row.right)}{margin}"


def lanes_of(workflow: Workflow, canvas: Canvas) -> Lanes:
    """The lanes of a workflow, in at most an eighth of the canvas."""
    return in_lanes(workflow, graph_lanes(workflow, canvas.width // 8))


def in_lanes(workflow: Workflow, rows: list[LaneRow]) -> Lanes:
    width = max(len(row.left) + 1 + len(row.right) for row in rows)
    return Lanes(rows=rows, width=width, is_listed=width == 1 and not is_chain(workflow))


def graph_lanes(workflow: Workflow, most_lanes: int) -> list[LaneRow]:
    """The phases in graph order; without lanes if the graph needs more than `most_lanes`."""
    drawn = list(_draw(workflow, most_lanes))
    return drawn if len(drawn) == len(workflow.order) else [LaneRow(phase=key) for key in workflow.order]


def is_chain(workflow: Workflow) -> bool:
    """Whether each phase needs exactly the phase above it."""
    order = workflow.order
    return all(workflow.by_key[key].needs == ((order[index - 1],) if index else ()) for index, key in enumerate(order))


def drawn_followers(workflow: Workflow) -> dict[str, list[str]]:
    """The phases that need a phase, in graph order, without edges that others imply."""
    followers: dict[str, list[str]] = {key: [] for key in workflow.order}
    before: dict[str, set[str]] = {}
    for key in workflow.order:
        needs = workflow.by_key[key].needs
        implied: set[str] = set()
        if len(followers) <= _MOST_REDUCED:
            implied = set().union(*(before[need] for need in needs))
            before[key] = implied.union(needs)
        for need in needs:
            if need not in implied:
                followers[need].append(key)
    return followers


def _draw(workflow: Workflow, most_lanes: int) -> Iterable[LaneRow]:
    """Stops at the first phase that needs too many lanes."""
    followed_by = drawn_followers(workflow)
    lanes: list[str | None] = []
    for key in workflow.order:
        ending = [lane for lane, target in enumerate(lanes) if target == key]
        # A phase without needs is separated from the phase above it.
        above = "" if ending or key == workflow.order[0] else _lines(lanes) or " "
        own, *merged = ending or [_free(lanes, 0)]
        lanes[own] = key
        if merged:
            above = _branch(lanes, own, merged, ("┴", "╯"))
        for lane in merged:
            lanes[lane] = None
        _trim(lanes)
        left, right = _lines(lanes[:own]), _lines(lanes[own + 1 :])
        followers = followed_by[key]
        lanes[own] = followers[0] if followers else None
        beside = _lines(lanes)
        opened = []
        for follower in followers[1:]:
            opened.append(_free(lanes, own + 1))
            lanes[opened[-1]] = follower
            if len(lanes) > most_lanes:
                return
        yield LaneRow(
            phase=key,
            above=above,
            left=left + " " if left else "",
            right=" " + right if right else "",
            beside=beside,
            below=_branch(lanes, own, opened, ("┬", "╮")) if opened else "",
        )
        _trim(lanes)


def _free(lanes: list[str | None], start: int) -> int:
    for lane in range(start, len(lanes)):
        if lanes[lane] is None:
            return lane
    lanes.append(None)
    return len(lanes) - 1


def _trim(lanes: list[str | None]) -> None:
    while lanes and lanes[-1] is None:
        lanes.pop()


def _lines(lanes: Sequence[str | None]) -> str:
    return " ".join("│" if target else " " for target in lanes)


def _branch(lanes: Sequence[str | None], own: int, others: Sequence[int], corners: tuple[str, str]) -> str:
    """The line on which `others` leave or join the lane `own`."""
    middle, last = corners
    cells = []
    for lane, target in enumerate(lanes):
        inside = own <= lane < others[-1]
        if lane == own:
            cell = "├"
        elif lane in others:
            cell = last if lane == others[-1] else middle
        elif target:
            cell = "┼" if inside else "│"
        else:
            cell = "─" if inside else " "
        cells.append(cell + ("─" if inside else " "))
    return "".join(cells).rstrip()
