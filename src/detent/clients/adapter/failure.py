"""Classifies the failure of a turn by the client's message. Used only for turns that certainly failed."""

import re
from collections.abc import Iterator

from detent.core.run.agent_event import Failed, Failure
from detent.process.conversation import Exited

_STATUS = re.compile(r"(?:status|error|code|http|rejected)\W{0,20}(\d{3})\b", re.IGNORECASE)
_PASSING = re.compile(
    r"rate.?limit|too many requests|overloaded|exhausted|usage limit|quota"
    r"|service unavailable|temporarily unavailable|internal server error|bad gateway|gateway time-?out"
    r"|econnrefused|econnreset|etimedout|enotfound|eai_again|epipe|enetunreach|socket hang up|fetch failed"
    r"|connection (?:refused|reset|closed|error|failed|timed out)|connection_failed|error sending request"
    r"|stream (?:disconnected|closed)|network error|request timed out|dns error",
    re.IGNORECASE,
)
_REFUSAL = re.compile(
    r"\brefus(?:al|ed to (?:answer|respond))|usage polic|content polic|content_filter|safety (?:settings|reasons)"
    r"|flagged (?:this|as|for)|prohibited.content",
    re.IGNORECASE,
)
_RETRY_AFTER = re.compile(
    r"(?:retry.?after|(?:try|retry)(?: again)? (?:in|after))\W{0,4}(\d{1,6}(?:\.\d{1,6})?)"
    r" ?(ms|s|seconds?|m|minutes?|h|hours?|)\b",
    re.IGNORECASE,
)
#: The first two letters of a unit, in seconds. A header has no unit.
_UNITS = {"": 1.0, "ms": 0.001, "mi": 60.0, "s": 1.0, "se": 1.0, "m": 60.0, "h": 3600.0, "ho": 3600.0}
_TAIL = 400


def failed(reason: str, *, status: int | None = None, retry_after_s: float = 0.0) -> Failed:
    """`status` is the HTTP status and `retry_after_s` the wait that was asked for, if the client reports them."""
    after_s = max(retry_after_s, _retry_after_s(reason))
    return Failed(failure=_kind(reason, status), reason=reason, retry_after_s=after_s)


def crashed(program: str, exited: Exited) -> Failed:
    """The program ended without a readable result."""
    return failed(last_words(program, exited))


def last_words(program: str, exited: Exited, output: str = "") -> str:
    """The exit of the program, with the end of its error output, or of its output without errors."""
    tail = (exited.errors or output).strip()[-_TAIL:]
    return f"{program} {_how(exited)}{f': {tail}' if tail else ' without output'}"


def _how(exited: Exited) -> str:
    if exited.exit_code is not None and exited.exit_code < 0:
        return f"was ended by signal {-exited.exit_code}"
    return f"ended with exit code {exited.exit_code}"


def _kind(reason: str, status: int | None) -> Failure:
    if any(each in (408, 409, 429) or 500 <= each <= 599 for each in _statuses(reason, status)):
        return Failure.TRANSIENT
    if _REFUSAL.search(reason):
        return Failure.REFUSED
    return Failure.TRANSIENT if status is None and _PASSING.search(reason) else Failure.ERROR


def _retry_after_s(reason: str) -> float:
    """The longest wait that the message asks for, in seconds."""
    waits = (float(number) * _UNITS[unit[:2].lower()] for number, unit in _RETRY_AFTER.findall(reason))
    return max(waits, default=0.0)


def _statuses(reason: str, status: int | None) -> Iterator[int]:
    if status is not None:
        yield status
    else:
        yield from map(int, _STATUS.findall(reason))
