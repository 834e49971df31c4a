"""The messages of the jobs of a run, and which of them wake its loop."""

import queue
import threading

import pytest

from detent.core.run.run_event import PhaseEnded
from detent.engine.project import utc_now
from detent.run import inbox as module
from detent.run.inbox import LocalInbox
from tests.support.waiting import until


def event(phase):
    return PhaseEnded(at=utc_now(), phase=phase, attempt=1, status="completed", said="", warnings=())


@pytest.fixture
def inbox(monkeypatch):
    """An inbox in which all events are of one burst."""
    monkeypatch.setattr(module, "QUIET_S", 1e9)
    return LocalInbox()


def waiting(inbox):
    """A loop that waits for a message, and what it got."""
    got = []
    thread = threading.Thread(target=lambda: got.append(inbox.get(timeout=60)), daemon=True)
    thread.start()
    return thread, got


def test_messages_come_in_their_order():
    inbox, messages = LocalInbox(), [event("a"), None, event("b"), event("c")]
    for message in messages:
        inbox.put(message)

    assert [inbox.get(timeout=0) for _ in messages] == messages
    with pytest.raises(queue.Empty):
        inbox.get_nowait()


@pytest.mark.parametrize("waking", [None, ("job", "future")])
def test_an_event_of_a_burst_is_read_with_the_message_that_wakes_the_loop(inbox, waking):
    thread, got = waiting(inbox)

    inbox.put(early := event("early"))
    assert inbox._asleep.locked()
    inbox.put(waking)

    assert until(lambda: not thread.is_alive())
    assert (got, inbox.get_nowait()) == ([early], waking)


def test_an_event_after_a_pause_wakes_the_loop(monkeypatch):
    monkeypatch.setattr(module, "QUIET_S", 0)
    inbox = LocalInbox()
    thread, got = waiting(inbox)

    inbox.put(only := event("only"))

    assert until(lambda: not thread.is_alive())
    assert got == [only]


def test_an_event_that_woke_no_loop_is_read_when_the_tick_is_over(inbox):
    inbox.put(early := event("early"))

    assert inbox.get(timeout=0) == early


def test_several_threads_may_wake_the_loop_at_once():
    inbox = LocalInbox()
    threads = [threading.Thread(target=lambda: [inbox.put(None) for _ in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()

    assert [inbox.get(timeout=60) for _ in range(1600)] == [None] * 1600
    for thread in threads:
        thread.join()
