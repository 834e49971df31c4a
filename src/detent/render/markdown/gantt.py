"""The attempts of a session as a Mermaid Gantt chart."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from detent.core.session.attempts import AttemptRecord
from detent.core.session.phase_name import Named

#: More bars are slow and unreadable in Mermaid.
MOST_BARS = 300
_LEAST = timedelta(seconds=1)
_STAMP = "%Y-%m-%dT%H:%M:%S"
_SHORT, _DAY = timedelta(minutes=10), timedelta(days=1)
_TAGS = {"completed": "done, ", "": "active, "}


def gantt(title: str, attempts: Sequence[AttemptRecord], until: datetime, named: Named) -> str:
    """One section per phase, in the order of their first attempts; needs at least one attempt."""
    shown = attempts[-MOST_BARS:]
    phases = dict.fromkeys(tried.phase for tried in shown)
    first, last = min(tried.begun for tried in shown), max(tried.ended or until for tried in shown)
    lines = [
        "gantt",
        f"    title {_text(title)}",
        "    dateFormat YYYY-MM-DDTHH:mm:ss",
        f"    axisFormat {_axis(last - first)}",
    ]
    for phase in phases:
        lines.append(f"    section {_text(named(phase))}")
        lines += [_bar(tried, until) for tried in shown if tried.phase == phase]
    return "\n".join(lines)


def _axis(spread: timedelta) -> str:
    if spread > _DAY:
        return "%m-%d %H:%M"
    return "%H:%M" if spread > _SHORT else "%H:%M:%S"


def _bar(tried: AttemptRecord, until: datetime) -> str:
    tag = _TAGS.get(tried.how, "crit, ")
    end = max(tried.ended or until, tried.begun + _LEAST)
    how = "" if tried.how in ("completed", "") else f" {tried.how}"
    return f"    attempt {tried.attempt}{how} :{tag}{_stamp(tried.begun)}, {_stamp(end)}"


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime(_STAMP)


def _text(text: str) -> str:
    """The text without characters that have a meaning in Mermaid."""
    safe = "".join(c if c.isalnum() or c in " -_.,/()!?'+" else " " for c in text)
    return " ".join(safe.split())[:80] or "session"
