"""Names a phase for people."""

from collections.abc import Callable

from detent.core.session.session import Session
from detent.core.workflow.phase_title import titled

#: Names a phase by its key; `str` leaves the key.
Named = Callable[[str], str]


def phase_name(session: Session, key: str) -> str:
    """Its position and its title before the key, `3 of 8 Architecture (03-architecture)`.

    The numbers in keys are no positions.
    """
    phase = session.workflow.by_key.get(key)
    if phase is None:
        return key
    order = session.active_order
    return f"{order.index(key) + 1} of {len(order)} {titled(phase)}" if key in order else titled(phase)
