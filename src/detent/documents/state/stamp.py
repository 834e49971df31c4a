"""Times and text lengths of the state document: ISO stamps, whole minutes, UTF-16 units."""

from datetime import UTC, datetime, timedelta

MINUTE = timedelta(minutes=1)


def parse_stamp(value: object) -> datetime | None:
    """The time of an ISO text, UTC if it has no zone; None if it is no time."""
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def format_stamp(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def minutes_between(started: object, ended: object) -> int | None:
    """Whole minutes, halves rounded up; None if a stamp is unreadable or the order is wrong."""
    start, end = parse_stamp(started), parse_stamp(ended)
    if start is None or end is None or end < start:
        return None
    return (end - start + MINUTE / 2) // MINUTE


def cut(text: str, units: int) -> str:
    """At most `units` UTF-16 units of the text, without splitting a character."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    if len(encoded) <= 2 * units:
        return text
    return encoded[: 2 * units].decode("utf-16-le", "ignore")
