"""Work by hand: what to do is said, and nothing is done until a person stopped it."""

import threading

from detent.config.settings import AgentSettings
from detent.core.run.agent_event import Failed, Failure, Said
from detent.run.agents import make_agent
from tests.support.turns import turn, work

MANUAL = make_agent(AgentSettings(adapter="manual"))


def test_it_is_said_what_to_do_and_waited_until_it_is_stopped(tmp_path):
    stopped = threading.Event()
    threading.Timer(0.3, stopped.set).start()

    events = work(MANUAL, turn(tmp_path, prompt="p" * 5_000), stopped.is_set)

    assert events == [Said(text="p" * 5_000), Failed(failure=Failure.STOPPED, reason="stopped")]
    assert stopped.is_set()


def test_nobody_is_waited_for_longer_than_the_turn_may_take(tmp_path):
    events = work(MANUAL, turn(tmp_path, timeout_s=0.2))

    assert events[-1] == Failed(failure=Failure.TIMEOUT, reason="no person ended it within 0.2 s")
