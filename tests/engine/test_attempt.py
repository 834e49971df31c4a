"""A phase as a block: begun before it, and never left in progress after it."""

import errno
from contextlib import ExitStack

import pytest

from detent.core.session.status import Status
from detent.errors import Refused
from tests.support.faults import Counter, failing, watching
from tests.support.values import row


@pytest.fixture
def handle(project):
    started = project.start(row("a", "b"), "try it")
    started.finish("a is done")
    return started


def test_the_phase_is_in_progress_inside_and_completed_after(handle):
    with handle.attempt("b") as attempt:
        assert handle.state.phases["b"].status is Status.IN_PROGRESS
        assert attempt.token == handle.state.token("b")
        assert attempt.handover.passed[0].summary == "a is done"
        attempt.finish("b is done")

    assert handle.state.phases["b"].summary == "b is done"


def test_without_a_name_the_first_ready_phase_is_meant(handle):
    with handle.attempt() as attempt:
        attempt.finish("done")

    assert attempt.phase == "b"


def test_an_error_in_the_block_fails_the_phase_and_goes_on_to_the_caller(handle):
    with pytest.raises(ZeroDivisionError), handle.attempt("b"):
        1 / 0  # noqa: B018

    assert handle.state.phases["b"].status is Status.FAILED
    assert handle.state.phases["b"].error == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interruption_fails_the_phase_too(handle, interruption):
    with pytest.raises(interruption), handle.attempt("b"):
        raise interruption

    assert handle.state.phases["b"].status is Status.FAILED


def test_a_block_that_ends_without_finishing_fails_the_phase(handle):
    with handle.attempt("b"):
        pass

    assert handle.state.phases["b"].error == "the block ended without finishing the phase"


def test_an_error_after_finishing_leaves_the_phase_completed(handle):
    def work():
        with handle.attempt("b") as attempt:
            attempt.finish("done")
            raise ValueError("too late")

    with pytest.raises(ValueError, match="too late"):
        work()

    assert handle.state.phases["b"].status is Status.COMPLETED


def test_an_attempt_that_somebody_else_took_over_is_left_to_them(handle):
    with handle.attempt("b"):
        newer = handle.redo("b", reason="it hangs")

    assert handle.state.token("b") == newer.token
    assert handle.state.phases["b"].status is Status.IN_PROGRESS


def test_finishing_an_attempt_that_somebody_else_took_over_is_refused(handle):
    def work():
        with handle.attempt("b") as attempt:
            handle.redo("b", reason="it hangs")
            attempt.finish("too late")

    with pytest.raises(Refused, match="attempt 1"):
        work()

    assert handle.state.phases["b"].status is Status.IN_PROGRESS


def test_a_session_that_was_cancelled_inside_the_block_stays_so_and_nothing_is_raised(handle):
    with handle.attempt("b"):
        handle.cancel("no longer wanted")

    assert handle.state.cancel_reason == "no longer wanted"


def test_the_error_of_the_block_is_not_hidden_when_the_session_was_cancelled_meanwhile(handle):
    def work():
        with handle.attempt("b"):
            handle.cancel("no longer wanted")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        work()


def test_a_disk_that_fails_does_not_hide_the_error_of_the_block(handle):
    full = ExitStack()

    def work():
        with handle.attempt("b"):
            full.enter_context(watching(Counter(failing(errno.ENOSPC, ("write",)), 1, lasting=True)))
            raise ValueError("mine")

    with full, pytest.raises(ValueError, match="mine") as raised:
        work()

    assert any("b is still in progress" in note and "the disk is full" in note for note in raised.value.__notes__)
    assert handle.state.phases["b"].status is Status.IN_PROGRESS


def test_an_error_that_quotes_any_bytes_fails_the_phase_all_the_same(handle):
    with pytest.raises(OSError, match="nul"), handle.attempt("b"):
        raise OSError("nul \0 and \udcff byte")

    assert handle.state.phases["b"].error == "OSError: nul ? and ? byte"


def test_a_phase_that_cannot_begin_never_enters_the_block(handle):
    with pytest.raises(Refused, match="a is completed"), handle.attempt("a"):
        pytest.fail("the block was entered")
