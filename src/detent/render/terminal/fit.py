"""Lines that know how much they can be done without, so that any number of them fits any height."""

from collections.abc import Sequence
from enum import IntEnum

import msgspec

from detent.render.terminal.canvas import Canvas


class Weight(IntEnum):
    """What is left out first stands last."""

    ALWAYS = 0
    LIVE = 1
    DETAIL = 2
    SPOKEN = 3
    NEAR = 4
    EARLIER = 5
    PENDING = 6
    DONE = 7
    RAIL = 8
    BLANK = 9


class Line(msgspec.Struct, frozen=True, kw_only=True):
    text: str
    weight: Weight = Weight.ALWAYS
    #: Among lines of the same weight the highest rank goes first.
    rank: int = 0
    is_phase: bool = False


def fit(head: Sequence[Line], body: Sequence[Line], foot: Sequence[Line], *, height: int, canvas: Canvas) -> list[str]:
    """At most `height` of the lines, in their order; behind the body stands how many phases were left out."""
    lines = [*head, *body, *foot]
    if len(lines) <= height:
        return [line.text for line in lines]
    order = sorted(range(len(lines)), key=lambda at: (lines[at].weight, lines[at].rank, at))
    kept = sorted(order[: height - 1])
    hidden = sum(line.is_phase for line in lines) - sum(lines[at].is_phase for at in kept)
    if not hidden:
        return [lines[at].text for at in sorted(order[:height])]
    end = len(head) + len(body)
    more = canvas.cut(f"  {canvas.draw('…')} {hidden} more phase{'s' if hidden > 1 else ''}", canvas.width)
    before, behind = [at for at in kept if at < end], [at for at in kept if at >= end]
    return [*(lines[at].text for at in before), canvas.paint(more, "dim"), *(lines[at].text for at in behind)]
