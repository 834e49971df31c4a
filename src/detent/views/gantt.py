"""The attempts of a session as a Mermaid Gantt chart, which shows what went on at the same time."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from detent.core.attempts import Tried

#: Mermaid draws no more than this in reasonable time and size.
MOST_BARS = 300
_LEAST = timedelta(seconds=1)
_STAMP = "%Y-%m-%dT%H:%M:%S"
_DAY = timedelta(days=1)
_TAGS = {"completed": "done, ", "": "active, "}


def gantt(title: str, attempts: Sequence[Tried], until: datetime) -> str:
    """One section a phase, in the order in which they began; bars that are not done are marked."""
    shown = attempts[-MOST_BARS:]
    phases = dict.fromkeys(tried.phase for tried in shown)
    spread = max((tried.ended or until for tried in shown), default=until) - min(
        (tried.begun for tried in shown), default=until
    )
    lines = [
        "gantt",
        f"    title {_text(title)}",
        "    dateFormat YYYY-MM-DDTHH:mm:ss",
        f"    axisFormat {'%m-%d %H:%M' if spread > _DAY else '%H:%M'}",
    ]
    for phase in phases:
        lines.append(f"    section {_text(phase)}")
        lines += [_bar(tried, until) for tried in shown if tried.phase == phase]
    return "\n".join(lines)


def _bar(tried: Tried, until: datetime) -> str:
    tag = _TAGS.get(tried.how, "crit, ")
    end = max(tried.ended or until, tried.begun + _LEAST)
    how = "" if tried.how in ("completed", "") else f" {tried.how}"
    return f"    attempt {tried.attempt}{how} :{tag}{_stamp(tried.begun)}, {_stamp(end)}"


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime(_STAMP)


def _text(text: str) -> str:
    """Letters, digits and what means nothing to Mermaid; the rest, and how a line could end, becomes a blank."""
    kept = "".join(c if c.isalnum() or c in " -_.,/()!?'+" else " " for c in text)
    return " ".join(kept.split())[:80] or "session"
