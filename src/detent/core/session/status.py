"""The statuses of a phase."""

from enum import StrEnum


class Status(StrEnum):
    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"

    @property
    def is_settled(self) -> bool:
        """Whether later phases may begin."""
        return self in (Status.COMPLETED, Status.SKIPPED)
