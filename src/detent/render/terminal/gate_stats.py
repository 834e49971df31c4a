"""The quality figures of gates, as a table for people."""

from collections.abc import Iterable, Sequence

from detent.core.counted import counted
from detent.core.history.gate_stats import GateStats
from detent.render.elapsed import duration
from detent.render.terminal.canvas import Canvas

#: The columns, each with its width.
_COLUMNS = {"passes": 8, "first try": 10, "retries": 8, "opens in": 9, "by hand": 8, "escapes": 8, "flaky": 7}
_LEAST_NAME = 16
_BARS = "▁▂▃▄▅▆▇█"
_MOST_BARS = 26


def stats_text(sessions: int, gates: Sequence[GateStats], canvas: Canvas) -> str:
    if not gates:
        return f"no gate has figures yet ({counted(sessions, 'session')})"
    room = canvas.width - sum(_COLUMNS.values())
    widest = max(len(f"{row.phase} {row.gate}") for row in gates)
    # On a narrow terminal the name of a gate has a line of its own.
    is_narrow = room < _LEAST_NAME or widest >= room
    name = 2 if is_narrow else max(widest + 1, _LEAST_NAME)
    head = " " * name + "".join(f"{column:>{width}}" for column, width in _COLUMNS.items())
    lines = [f"{counted(sessions, 'session')}", "", canvas.paint(head.rstrip(), "dim")]
    for row in gates:
        first = canvas.cut(f"{row.phase} {row.gate}", canvas.width)
        cells = "".join(f"{cell:>{width}}" for cell, width in zip(_cells(row), _COLUMNS.values(), strict=True))
        lines += [first, "  " + cells] if is_narrow else [canvas.pad(first, name) + cells]
        lines += [f"{'':<{name}}{note}" for note in _notes(row, canvas)]
    return "\n".join(lines)


def _cells(row: GateStats) -> tuple[str, ...]:
    return (
        f"{row.opened}/{row.passages}",
        _percent(row.first_try_rate),
        str(row.retries),
        duration(row.open_s) if row.open_s is not None else "-",
        str(row.by_hand),
        str(row.escapes),
        f"{row.flaky}/{row.repeated}" if row.repeated else "-",
    )


def _notes(row: GateStats, canvas: Canvas) -> Iterable[str]:
    """The trend of the first tries by week, and the times that say why a gate is slow."""
    rates = [week.first_try / week.tried for week in row.weeks[-_MOST_BARS:]]
    if len(rates) > 1 and canvas.has_glyphs:
        bars = "".join(_BARS[round(rate * (len(_BARS) - 1))] for rate in rates)
        yield canvas.paint(f"first tries by week {bars}", "dim")
    parts = []
    if row.checks:
        parts.append(f"{counted(row.checks, 'run')} of {row.check_s or 0:g} s")
    if row.stuck_s:
        parts.append(f"closed for {duration(row.stuck_s)} after a failure")
    if row.escalated:
        parts.append(f"{row.escalated} stopped for a person")
    if row.accepted:
        parts.append(f"{row.accepted} with a loss that was accepted")
    if parts:
        yield canvas.paint(canvas.cut(", ".join(parts), max(canvas.width - _LEAST_NAME, _LEAST_NAME)), "dim")


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"
