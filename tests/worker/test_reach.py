"""A worker knows whether it reaches the journals, also while a question to them does not return."""

import threading
from contextlib import contextmanager

from detent.errors import StoreFailed
from detent.store.memory import MemoryStore
from detent.worker.reach import Reach
from tests.support.waiting import wait_until


class SharedStore(MemoryStore):
    """Answers while `answers` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = threading.Event()
        self.answers.set()
        self.fails = False

    @property
    def is_shared(self):
        return True

    def now(self):
        self.answers.wait()
        if self.fails:
            raise StoreFailed("gone")


class Opened:
    def __init__(self, store) -> None:
        self.store = store


def reach_of(store, heartbeat_s=0.4) -> Reach:
    @contextmanager
    def opened():
        yield Opened(store)

    return Reach(opened, heartbeat_s)


def test_a_store_that_does_not_answer_is_out_of_reach_until_it_does():
    store = SharedStore()
    reach = reach_of(store)
    try:
        wait_until(reach.is_there)
        store.answers.clear()
        wait_until(lambda: not reach.is_there())
        store.fails = True
        store.answers.set()
        wait_until(lambda: not reach.is_there())
        store.fails = False
        wait_until(reach.is_there)
    finally:
        store.answers.set()
        reach.close()


def test_files_of_this_machine_are_always_there():
    reach = reach_of(MemoryStore(), heartbeat_s=0.0)
    wait_until(reach.is_there)
    reach.close()
