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
_TAIL = 400


def failed(reason: str, *, status: int | None = None) -> Failed:
    """`status` is the HTTP status, if the client reports it separately."""
    return Failed(failure=_kind(reason, status), reason=reason)


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


def _statuses(reason: str, status: int | None) -> Iterator[int]:
    if status is not None:
        yield status
    else:
        yield from map(int, _STATUS.findall(reason))
