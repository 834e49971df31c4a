"""Times and text lengths as the state document counts them: ISO stamps, whole minutes, UTF-16 units."""

from datetime import UTC, datetime, timedelta

MINUTE = timedelta(minutes=1)


def parse_stamp(value: object) -> datetime | None:
    """The time an ISO text names; without a zone it is UTC, so that the machine's own zone never matters."""
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
    """Whole minutes, halves rounded up; None if either stamp is unreadable or they are in the wrong order."""
    start, end = parse_stamp(started), parse_stamp(ended)
    if start is None or end is None or end < start:
        return None
    return (end - start + MINUTE / 2) // MINUTE


def cut(text: str, units: int) -> str:
    """At most that many UTF-16 units of the text, never half of a character."""
    encoded = text.encode("utf-16-le", "surrogatepass")
    if len(encoded) <= 2 * units:
        return text
    return encoded[: 2 * units].decode("utf-16-le", "ignore")
