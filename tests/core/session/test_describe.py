"""Events in words."""

from detent.core.session.describe import describe
from detent.core.session.events import BaselineRecorded
from detent.core.testrun.baseline import KnownTests


def test_one_test_is_no_plural():
    recorded = BaselineRecorded(command="pytest", tests=KnownTests(count=1))

    assert describe(recorded) == "recorded 1 test as the baseline of pytest"
