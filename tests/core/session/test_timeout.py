"""A phase that takes longer than it was meant to is named, and nothing else happens."""

from datetime import timedelta

import pytest

from detent.core.session.obstacle import obstacles, overdue
from detent.core.session.status import Status
from detent.core.workflow.graph import Phase, Workflow
from tests.support.values import NOON, session_at

LIMITED = Workflow(name="one", phases=(Phase(key="a", title="A", agent="a-agent", timeout_minutes=90),))


@pytest.mark.parametrize(("minutes", "late"), [(0, False), (90, False), (90.9, False), (91, True)])
def test_only_more_than_the_limit_is_late(minutes, late):
    session = session_at({"a": Status.IN_PROGRESS}, graph=LIMITED)

    assert bool(overdue(session, NOON + timedelta(minutes=minutes))) is late


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.IN_PROGRESS])
def test_only_a_phase_in_progress_is_late(status):
    assert overdue(session_at({"a": status}, graph=LIMITED), NOON + timedelta(days=1)) == ()


def test_a_phase_without_a_limit_is_never_late():
    assert overdue(session_at({"a": Status.IN_PROGRESS}), NOON + timedelta(days=1)) == ()


def test_what_holds_a_session_names_a_late_phase():
    session = session_at({"a": Status.IN_PROGRESS}, graph=LIMITED)

    messages = [one.message for one in obstacles(session, now=NOON + timedelta(minutes=100))]

    assert "in progress for 100 minutes; its limit is 90" in messages
