"""Where a phase can stand."""

from enum import StrEnum


class Status(StrEnum):
    """Where a phase stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def is_settled(self) -> bool:
        """Whether what follows may begin."""
        return self in (Status.COMPLETED, Status.SKIPPED)
