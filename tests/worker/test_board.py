"""The board of a session: messages that come twice or from an earlier loop change nothing."""

import pytest

from detent.errors import Invalid, Refused
from detent.run.job import JobOutcome
from detent.worker.address import parse_address
from detent.worker.board import Assignment, Board, Ended, Order, flow_name, is_later_loop, job_run, loop_run, order_of

JOB = Assignment(id="run-f-1-1", phase="a", version=1)
END = Ended(id=JOB.id, outcome=JobOutcome.FINISHED)


def test_a_job_is_open_until_it_ends():
    board = Board()
    assert board.attach("one") == []
    assert board.submit("one", JOB)
    assert not board.submit("one", JOB)
    assert board.attach("two") == [JOB]
    assert board.end(END)
    assert not board.end(END)
    assert (board.ended, board.attach("three")) == ([END], [])


def test_a_job_that_ended_is_not_begun_again():
    board = Board()
    board.attach("one")
    board.submit("one", JOB)
    board.end(END)
    assert not board.submit("one", JOB)


def test_workflows_that_begin_at_the_same_moment_have_different_names():
    # Temporal gives ids of version 7: the time, then random bits. A worker ends the processes of a run by its id.
    ids = ("01a1ed0a-6994-7c6c-b37d-b7c9bdd9341f", "01a1ed0a-6994-7c6c-b37d-2ad05f17c0e4")
    first, second = (order_of(job_run(f"{loop_run(flow_name(each), 1)}-1", 1)) for each in ids)
    assert first is not None
    assert second is not None
    assert first.flow != second.flow


def test_an_earlier_loop_is_not_heard():
    board = Board()
    board.attach("one")
    board.attach("two")
    assert not board.submit("one", JOB)
    board.submit("two", JOB)
    assert not board.stop("one", JOB.id, "why")
    assert board.stop("two", JOB.id, "why")
    assert not board.stop("two", JOB.id, "why")


def order(term: int, tries: int, flow: str = "f") -> Order:
    known = order_of(job_run(f"{loop_run(flow, term)}-1", tries) + "/sh/1")
    assert known is not None
    return known


def test_the_order_of_runs_is_in_their_ids():
    assert order(2, 1).is_after(order(1, 3))
    assert order(1, 3).is_after(order(1, 2))
    assert not order(1, 3).is_after(order(2, 1))
    assert not order(2, 1).is_after(order(1, 1, "g"))
    assert order_of("run-1a2b3c4d/sh/1") is None


def test_a_later_loop_is_of_the_same_workflow():
    assert is_later_loop(loop_run("f", 10), loop_run("f", 9))
    assert not is_later_loop(loop_run("f", 1), loop_run("f", 1))
    assert not is_later_loop(loop_run("g", 2), loop_run("f", 1))
    assert not is_later_loop("run-1a2b3c4d", loop_run("f", 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("temporal://h", "temporal://h:7233/default"),
        ("temporal://h:1/n", "temporal://h:1/n"),
        ("temporal://[::1]:1/n", "temporal://[::1]:1/n"),
    ],
)
def test_addresses(text, expected):
    assert str(parse_address(text)) == expected


@pytest.mark.parametrize("text", ["http://h", "temporal://", "temporal://h:x/n", "temporal://h/n/m", "h:7233"])
def test_an_address_that_is_none_is_refused_with_the_form(text):
    with pytest.raises(Invalid, match="no address"):
        parse_address(text)


def test_an_address_holds_no_secret():
    with pytest.raises(Refused, match="no secrets"):
        parse_address("temporal://me:secret@h/n")
