"""The transition table of a phase: every legal transition. `decide` refuses the others.

Rows may be added. Removing one makes existing journals unreadable and needs a new journal format. The diagram in the
documentation is generated from this table.
"""

from detent.core.session.events import (
    PhaseBegun,
    PhaseEvent,
    PhaseFailed,
    PhaseFinished,
    PhaseRedone,
    PhaseReset,
    PhaseSkipped,
)
from detent.core.session.status import Status

TRANSITIONS: dict[tuple[Status, type[PhaseEvent]], Status] = {
    (Status.PENDING, PhaseBegun): Status.IN_PROGRESS,
    (Status.PENDING, PhaseSkipped): Status.SKIPPED,
    (Status.IN_PROGRESS, PhaseFinished): Status.COMPLETED,
    (Status.IN_PROGRESS, PhaseFailed): Status.FAILED,
    (Status.IN_PROGRESS, PhaseRedone): Status.IN_PROGRESS,
    (Status.IN_PROGRESS, PhaseSkipped): Status.SKIPPED,
    (Status.IN_PROGRESS, PhaseReset): Status.PENDING,
    (Status.FAILED, PhaseRedone): Status.IN_PROGRESS,
    (Status.FAILED, PhaseSkipped): Status.SKIPPED,
    (Status.FAILED, PhaseReset): Status.PENDING,
    (Status.COMPLETED, PhaseRedone): Status.IN_PROGRESS,
    (Status.COMPLETED, PhaseReset): Status.PENDING,
    (Status.SKIPPED, PhaseRedone): Status.IN_PROGRESS,
}
