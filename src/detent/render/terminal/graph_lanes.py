"""A phase graph as rails: one phase a line, with a lane for every edge that passes beside it."""

from collections.abc import Iterable, Sequence

import msgspec

from detent.core.workflow.graph import Workflow

#: In larger graphs lines that only repeat others are drawn too.
_MOST_REDUCED = 500


class LaneRow(msgspec.Struct, frozen=True, kw_only=True):
    """How one phase is drawn: lines above it, what stands left and right of its glyph, and what goes on below."""

    phase: str
    above: str = ""
    left: str = ""
    right: str = ""
    beside: str = ""
    below: str = ""


def graph_lanes(workflow: Workflow, most_lanes: int) -> list[LaneRow]:
    """In graph order. A graph that needs more lanes is drawn without any."""
    drawn = list(_draw(workflow, most_lanes))
    return drawn if len(drawn) == len(workflow.order) else [LaneRow(phase=key) for key in workflow.order]


def is_chain(workflow: Workflow) -> bool:
    """Whether each phase just follows the one drawn above it."""
    order = workflow.order
    return all(workflow.by_key[key].needs == ((order[index - 1],) if index else ()) for index, key in enumerate(order))


def drawn_followers(workflow: Workflow) -> dict[str, list[str]]:
    """Phase key to those that need it, in graph order, without what other lines already say."""
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
    """Stops at the first phase that would need one lane too many."""
    followed_by = drawn_followers(workflow)
    lanes: list[str | None] = []
    for key in workflow.order:
        ending = [lane for lane, target in enumerate(lanes) if target == key]
        # A phase that needs nothing stands apart from what is drawn above it.
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
    """The line on which `others` leave or join the lane `own`, across the lanes between."""
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
