"""What is usual, and how long it will take."""

from datetime import timedelta

import pytest

from detent.core.run.estimate import minutes_left, usual_minutes
from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from detent.documents.state import history_entry
from tests.support import story
from tests.support.values import NOON, diamond, session_at

DONE, LIVE = Status.COMPLETED, Status.IN_PROGRESS


def entry(minutes: object, *, status: str = "completed", kind: str = "trial", phase_status: str = "completed"):
    snapshot = {"key": "a", "status": phase_status, "duration_minutes": minutes}
    return {"type": kind, "status": status, "phase_snapshots": [snapshot]}


def test_the_mean_of_the_last_five_is_usual():
    assert usual_minutes([entry(minutes) for minutes in (900, 10, 20, 30, 40, 50)], "trial") == {"a": 30.0}


@pytest.mark.parametrize(
    "other",
    [
        entry(8, status="cancelled"),
        entry(8, kind="fix"),
        entry(8, phase_status="skipped"),
        entry(None),
        {"type": "trial", "status": "completed"},
        {"type": "trial", "status": "completed", "phase_snapshots": "none"},
    ],
)
def test_what_cannot_be_compared_does_not_count(other):
    assert usual_minutes([entry(4), other], "trial") == {}
    assert usual_minutes([entry(4), other, entry(6)], "trial") == {"a": 5.0}


def test_the_history_of_a_project_is_understood():
    entries = [history_entry(story.ended().session)] * 2

    assert usual_minutes(entries, "adhoc") == {"phase_0": 90.0, "phase_1": 1560.0}


def test_phases_in_a_row_add_up_and_what_is_done_does_not_count():
    session = session_at({"a": DONE, "b": LIVE})

    assert minutes_left(session, {"b": 10, "c": 5}, NOON + timedelta(minutes=4)) == pytest.approx(11)


def test_phases_at_once_take_as_long_as_the_longer_one():
    session, usual = session_at({"a": DONE}, graph=diamond()), {"b": 10.0, "c": 4.0, "d": 1.0}

    assert minutes_left(session, usual, NOON, parallel=1) == pytest.approx(15)
    assert minutes_left(session, usual, NOON, parallel=2) == pytest.approx(11)


def test_nothing_is_said_while_one_phase_is_unknown():
    assert minutes_left(session_at({"a": DONE}), {"b": 10}, NOON) is None


def test_a_skipped_phase_need_not_be_known():
    assert minutes_left(session_at({"a": DONE, "b": Status.SKIPPED}), {"c": 3}, NOON) == pytest.approx(3)


def test_a_phase_that_takes_longer_than_usual_counts_for_nothing():
    late = NOON + timedelta(hours=1)

    assert minutes_left(session_at({"a": DONE, "b": LIVE}), {"b": 10, "c": 5}, late) == pytest.approx(5)
    assert minutes_left(session_at({"a": DONE, "b": DONE, "c": LIVE}), {"c": 5}, late) is None


def test_a_session_that_ended_takes_no_longer():
    ended = story.cancelled().session
    assert ended.status is SessionStatus.CANCELLED

    assert minutes_left(ended, dict.fromkeys(ended.workflow.order, 5.0), NOON) is None
