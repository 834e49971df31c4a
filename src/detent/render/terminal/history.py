"""The list of sessions that have ended."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from detent.core.session.budget import usual
from detent.core.session.status import Status
from detent.render.elapsed import duration, elapsed
from detent.render.terminal.canvas import Canvas, columns_of

_ID, _WORKFLOW, _PHASES, _TIME = 10, 16, 12, 8


def history_text(entries: Sequence[Mapping[str, Any]], *, left_out: int, canvas: Canvas) -> str:
    """Oldest first. The first `left_out` entries are not shown, but compared with."""
    if not entries:
        return "no session has ended yet"
    lines = [f"{left_out} earlier left out; detent history -n 0 shows all"] if left_out else []
    for at in range(left_out, len(entries)):
        lines += _entry_lines(entries[at], _slower(entries[at], entries[:at]), canvas)
    return "\n".join(lines)


def _entry_lines(entry: Mapping[str, Any], slower: str, canvas: Canvas) -> list[str]:
    completed = entry.get("status") == "completed"
    metrics = entry.get("metrics") or {}
    ended = str(entry.get("completed_at") or entry.get("cancelled_at") or "")[:10]
    time = _time(entry)
    phases = f"{metrics.get('phases_completed', 0)}/{metrics.get('total_phases', 0)} phases"
    head = f"{canvas.glyph(Status.COMPLETED if completed else Status.SKIPPED)} {ended:<10}  "
    columns = (
        f"{canvas.pad(str(entry.get('id') or ''), _ID)}{canvas.pad(str(entry.get('type') or ''), _WORKFLOW)}"
        f"{phases:<{_PHASES}}{time:>{_TIME}}  "
    )
    name, room = canvas.clean(str(entry.get("session_id") or "")), canvas.width - 2 - 12 - len(columns)
    reason = f" (cancelled: {entry.get('reason')})" if not completed else slower
    fits = columns_of(name) <= room
    return [
        head + (columns + name if fits else columns.rstrip()),
        *([] if fits else canvas.whole(name, "  ")),
        "  " + canvas.cut(f"{entry.get('description') or ''}{reason}", canvas.width - 2),
    ]


def _slower(entry: Mapping[str, Any], earlier: Sequence[Mapping[str, Any]]) -> str:
    """The extra time compared with earlier sessions of the same workflow, if it is unusual."""
    alike = [
        other for other in earlier if other.get("type") == entry.get("type") and other.get("status") == "completed"
    ]
    before = usual([minutes for other in alike if (minutes := _minutes(other)) is not None])
    minutes = _minutes(entry)
    if before is None or minutes is None or not before.is_exceeded(minutes):
        return ""
    return f" ({before.percent_over(minutes)} % longer than the {before.count} before)"


def _time(entry: Mapping[str, Any]) -> str:
    """The duration, by its times if it has them: the metric is in whole minutes."""
    stamps = (entry.get("started_at"), entry.get("completed_at") or entry.get("cancelled_at"))
    try:
        began, ended = (datetime.fromisoformat(str(stamp)) for stamp in stamps)
        return elapsed(began, ended)
    except (ValueError, TypeError):
        minutes = _minutes(entry)
        return duration(minutes * 60) if minutes is not None else ""


def _minutes(entry: Mapping[str, Any]) -> float | None:
    minutes = (entry.get("metrics") or {}).get("total_duration_minutes")
    return minutes if isinstance(minutes, int | float) else None
