"""A runner repeats the attempt that it saw failing, and no other."""

import pytest

from detent.core.gate.evidence import Facts
from detent.core.session.commands import Redo
from detent.core.session.decide import decide
from detent.core.session.events import PhaseRedone
from detent.core.session.status import Status
from detent.errors import Refused
from tests.support.values import NOON, row, session_at


def redo(status: Status, *, failed: int | None):
    session = session_at({"a": status}, graph=row("a", "b"))
    return decide(session, Redo(phase="a", failed=failed), Facts(now=NOON))


def test_the_attempt_that_failed_is_repeated():
    assert [type(event) for event in redo(Status.FAILED, failed=1)] == [PhaseRedone]


@pytest.mark.parametrize("status", [Status.COMPLETED, Status.IN_PROGRESS])
def test_a_phase_that_moved_on_since_is_left_alone(status):
    with pytest.raises(Refused, match="attempt 1 was to be repeated"):
        redo(status, failed=1)


def test_a_later_failure_is_left_to_those_who_saw_it():
    with pytest.raises(Refused):
        redo(Status.FAILED, failed=2)


def test_a_person_may_repeat_a_completed_phase():
    assert [type(event) for event in redo(Status.COMPLETED, failed=None)] == [PhaseRedone]
