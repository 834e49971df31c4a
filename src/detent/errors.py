"""Every error a caller can act on. Each says what is wrong, with the values, and the way out where there is one."""

from collections.abc import Sequence


class DetentError(Exception):
    """Base of all expected errors; anything else that escapes is a bug."""

    kind = "refused"
    exit_code = 1

    def __init__(self, message: str, *, way_out: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.way_out = way_out


class Refused(DetentError):
    """The rules of the workflow do not allow the command in the present state."""


class NotFound(DetentError):
    """A project, session, workflow or file that was named does not exist."""

    kind = "not_found"


class NoPackage(NotFound):
    """The directory belongs to no package of a monorepo."""

    def __init__(self, message: str, packages: Sequence[str], *, way_out: str | None = None) -> None:
        super().__init__(message, way_out=way_out)
        self.packages = tuple(packages)


class Invalid(DetentError):
    """Input that can never be right; every problem is listed."""

    kind = "invalid"

    def __init__(self, message: str, problems: Sequence[str] = (), *, way_out: str | None = None) -> None:
        super().__init__("\n  - ".join([message, *problems]), way_out=way_out)
        self.problems = tuple(problems)


class GateClosed(DetentError):
    """The phase has gates that have not passed."""

    kind = "gate_closed"
    exit_code = 3


class CheckRunning(DetentError):
    """The check of a gate runs and has not ended; it goes on."""

    kind = "check_running"
    exit_code = 6


class Conflict(DetentError):
    """Another command moved the session on since it was read."""

    kind = "conflict"
    exit_code = 4


class LockTimeout(DetentError):
    """Another process held the lock for longer than we were willing to wait."""

    kind = "lock_timeout"
    exit_code = 4


class Corrupt(DetentError):
    """Stored data that cannot be what was written; it is never skipped or guessed."""

    kind = "corrupt"
    exit_code = 5


class UnknownFormat(Corrupt):
    """A journal in a format that this version cannot read. It is whole; another version can."""

    kind = "unknown_format"


class StoreFailed(DetentError):
    """The file system refused (full, read-only, no permission); nothing was committed."""

    kind = "store_failed"
