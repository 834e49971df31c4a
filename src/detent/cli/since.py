"""The option `--since`: a date, a time, or a duration before now."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"(\d{1,5})([mhdw])")


class Since(click.ParamType[datetime]):
    """A point in time; without a zone it is local."""

    name = "when"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        if duration := _DURATION.fullmatch(value):
            return datetime.now(UTC) - timedelta(**{_UNITS[duration[2]]: int(duration[1])})
        try:
            return datetime.fromisoformat(value).astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value[:40]!r} is no date, time or duration, such as 2026-02-09 or 30d", param, ctx)


since_option = click.option(
    "--since", type=Since(), metavar="WHEN", help="Only sessions that started since then: 2026-02-09, 12h, 30d, 8w."
)
