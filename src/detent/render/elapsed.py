"""Durations and times, for people."""

from datetime import datetime

_MINUTE, _HOUR, _DAY = 60, 3_600, 86_400


def elapsed(since: datetime | None, until: datetime | None) -> str:
    """3m, 2h 05m, 4d 01h; empty if an end is unknown."""
    if since is None or until is None:
        return ""
    return duration((until - since).total_seconds())


def duration(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02d}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR:02d}h"


def moment(at: datetime, now: datetime) -> str:
    """The time in the time zone of `now`, with the day if it differs."""
    local = at.astimezone(now.tzinfo)
    return f"{local:%H:%M}" if local.date() == now.date() else f"{local:%Y-%m-%d %H:%M}"
