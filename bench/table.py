"""What was measured, as rows of one table."""

from collections.abc import Iterable

import msgspec

WIDTH = 100
#: A spread of the ratio beyond this part of it says more about the machine than about what was measured.
NOISY = 0.25
_COLUMNS = "{:<47} {:>11} {:>11} {:>9} {:>9}  {}"


class Goal(msgspec.Struct, frozen=True):
    """A bound on the ratio."""

    bound: float
    at_least: bool = False

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}x"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison. Without a goal it is told for information; `skipped` or `failed` say why there are no figures."""

    what: str
    unit: str = ""
    ours: float | None = None
    theirs: float | None = None
    ratio: float | None = None
    spread: float = 0.0
    #: The bounds between which the ratio lies, if they were measured.
    interval: tuple[float, float] | None = None
    goal: Goal | None = None
    skipped: str = ""
    failed: str = ""

    @property
    def mark(self) -> str:
        if self.skipped or self.failed:
            return "skipped" if self.skipped else "FAILED"
        if self.goal is None or self.ratio is None:
            return ""
        return "ok" if self.goal.is_met(self.ratio) else "MISS"

    @property
    def is_noisy(self) -> bool:
        """Whether the figures leave open if the goal is met."""
        if self.interval is not None and self.goal is not None:
            return self.goal.is_met(self.interval[0]) != self.goal.is_met(self.interval[1])
        return self.ratio is not None and self.spread > NOISY * self.ratio


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one benchmark, and what must be known to read them."""

    name: str
    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()


def render(sections: Iterable[Section]) -> str:
    lines = [_COLUMNS.format("what", "ours", "theirs", "ratio", "goal", ""), "-" * WIDTH]
    for section in sections:
        lines += [_line(row) for row in section.rows]
        lines += [f"    {remark}" for remark in section.remarks]
    return "\n".join(lines)


def _line(row: Row) -> str:
    if row.skipped or row.failed:
        return (
            _COLUMNS.format(row.what, "-", "-", "-", str(row.goal or ""), row.mark)
            + f"\n    {row.skipped or row.failed}"
        )
    ratio = "-" if row.ratio is None else f"{row.ratio:,.0f}x" if row.ratio >= 100 else f"{row.ratio:.3g}x"
    return _COLUMNS.format(
        row.what,
        _amount(row.ours, row.unit),
        _amount(row.theirs, row.unit),
        ratio,
        str(row.goal or ""),
        row.mark + " ?" * row.is_noisy,
    ).rstrip()


def _amount(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}".rstrip()
    if value >= 1:
        return f"{value:.2f} s"
    return f"{value * 1e3:.2f} ms" if value >= 1e-3 else f"{value * 1e6:.0f} us"
