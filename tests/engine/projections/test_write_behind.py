import os
import signal
import threading
import weakref

import pytest

from detent.engine.projections import write_behind
from detent.engine.projections.write_behind import WriteBehind
from detent.errors import StoreFailed

SOON_S = 20.0


@pytest.fixture
def works():
    """Things to be done behind; each tells by which thread."""
    by = []
    done = threading.Semaphore(0)

    def work():
        by.append(threading.current_thread())
        done.release()

    vars(work).update(by=by, done=done)
    return work


@pytest.fixture
def late(monkeypatch):
    """Nothing is done by itself within the time of a test."""
    monkeypatch.setattr(write_behind, "DELAY_S", 3600.0)


def test_what_was_marked_several_times_is_done_once_and_by_itself(works):
    one = WriteBehind(works)
    for _ in range(5):
        one.mark()

    assert works.done.acquire(timeout=SOON_S)
    one.flush()
    assert len(works.by) == 1


def test_all_is_done_by_one_thread(works):
    several = [WriteBehind(works) for _ in range(5)]
    for one in several:
        one.mark(urgent=True)

    assert all(works.done.acquire(timeout=SOON_S) for _ in several)
    assert len(set(works.by)) == 1
    assert works.by[0] is not threading.current_thread()


@pytest.mark.usefixtures("late")
def test_what_hurries_is_done_now_although_it_was_to_be_done_later(works):
    one = WriteBehind(works)
    one.mark()
    assert not works.done.acquire(timeout=0.1)

    one.mark(urgent=True)

    assert works.done.acquire(timeout=SOON_S)


@pytest.mark.usefixtures("late")
def test_a_flush_does_what_is_due_at_once_and_nothing_if_nothing_is(works):
    one = WriteBehind(works)
    one.flush()
    one.mark()
    one.flush()
    one.flush()

    assert works.by == [threading.current_thread()]


@pytest.mark.usefixtures("late")
def test_what_failed_is_still_due():
    tries = []

    def work():
        tries.append(len(tries))
        if len(tries) == 1:
            raise StoreFailed("the disk is full")

    one = WriteBehind(work)
    one.mark()
    with pytest.raises(StoreFailed):
        one.flush()
    one.flush()

    assert tries == [0, 1]


def test_a_failure_does_not_keep_others_from_being_done(works):
    def fail():
        raise StoreFailed("the disk is full")

    kept = [WriteBehind(fail), WriteBehind(works)]
    for one in kept:
        one.mark(urgent=True)

    assert works.done.acquire(timeout=SOON_S)


@pytest.mark.usefixtures("late")
def test_what_cannot_be_done_is_not_tried_again_at_once():
    tries = threading.Semaphore(0)

    def fail():
        tries.release()
        raise StoreFailed("the disk is full")

    one = WriteBehind(fail)
    one.mark(urgent=True)
    assert tries.acquire(timeout=SOON_S)
    with pytest.raises(StoreFailed):
        one.flush()
    assert tries.acquire(timeout=SOON_S)

    one.mark(urgent=True)

    assert not tries.acquire(timeout=0.2)


def test_what_nobody_foresaw_is_told_and_does_not_keep_others_from_being_done(works, monkeypatch):
    told = []
    monkeypatch.setattr(threading, "excepthook", lambda what: told.append(what.exc_type))

    def fail():
        raise ZeroDivisionError

    kept = [WriteBehind(fail), WriteBehind(works)]
    for one in kept:
        one.mark(urgent=True)
    assert works.done.acquire(timeout=SOON_S)
    kept[1].mark(urgent=True)

    assert works.done.acquire(timeout=SOON_S)
    assert told == [ZeroDivisionError]


def test_whoever_is_dropped_is_not_kept_once_its_work_is_done(works):
    one = WriteBehind(works)
    one.mark(urgent=True)
    assert works.done.acquire(timeout=SOON_S)
    gone = threading.Event()
    weakref.finalize(one, gone.set)

    del one

    assert gone.wait(SOON_S)


@pytest.mark.usefixtures("late")
@pytest.mark.parametrize("urgent", [False, True])
def test_whoever_was_flushed_is_not_kept_until_it_would_have_been_its_time(works, urgent):
    one = WriteBehind(works)
    one.mark()
    if urgent:
        one.mark(urgent=True)
        assert works.done.acquire(timeout=SOON_S)
    one.flush()
    gone = threading.Event()
    weakref.finalize(one, gone.set)

    del one

    assert gone.wait(SOON_S)


def in_a_fork(check) -> int:
    """The exit status of a forked process: 0 if `check` is true there, 1 if not, and another if it hangs."""
    child = os.fork()
    if child == 0:
        signal.alarm(int(SOON_S))
        os._exit(0 if check() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_has_its_own_thread(works):
    WriteBehind(works).mark(urgent=True)
    assert works.done.acquire(timeout=SOON_S)

    def is_done() -> bool:
        one = WriteBehind(works)
        one.mark(urgent=True)
        return works.done.acquire(timeout=SOON_S / 2)

    assert in_a_fork(is_done) == 0


@pytest.mark.usefixtures("late")
def test_what_was_due_before_a_fork_is_the_business_of_the_one_that_forked(works):
    one = WriteBehind(works)
    one.mark()

    def is_done_only_when_marked_again() -> bool:
        one.flush()
        one.mark(urgent=True)
        return works.done.acquire(timeout=SOON_S / 2) and len(works.by) == 1

    assert in_a_fork(is_done_only_when_marked_again) == 0
    one.flush()
    assert len(works.by) == 1


def test_a_fork_in_the_middle_of_the_work_does_not_hang():
    begun, go_on = threading.Event(), threading.Event()

    def work():
        begun.set()
        go_on.wait(SOON_S)

    one = WriteBehind(work)
    one.mark(urgent=True)
    assert begun.wait(SOON_S)

    def flushes() -> bool:
        one.flush()
        return True

    assert in_a_fork(flushes) == 0
    go_on.set()
