"""The lines at the end of an agent's answer."""

import pytest

from detent.core.run.result_block import MAX_CONTEXT, MAX_DELIVERABLES, result_block


def test_all_lines_are_read():
    block = result_block(
        "I did it.\n\nStatus: done\nSummary: Wrote the parser\n  and its tests\n"
        "Deliverables: a.py, b.py\n- c.py\nContext for next:\nThe grammar is in a.py\nNo more\n"
    )

    assert block.summary == "Wrote the parser and its tests"
    assert block.deliverables == ("a.py", "b.py", "c.py")
    assert block.context == "The grammar is in a.py\nNo more"
    assert not block.failed


@pytest.mark.parametrize("line", ["**Summary:** Done", "## Summary: Done", "- summary: Done", "SUMMARY: Done"])
def test_names_may_be_marked_up(line):
    assert result_block(f"Text\n{line}").summary == "Done"


@pytest.mark.parametrize(
    ("status", "failed"),
    [("failed", True), ("FAILED: no disk", True), ("blocked", True), ("error", True), ("done", False), ("", False)],
)
def test_the_status_says_whether_it_failed(status, failed):
    assert result_block(f"Status: {status}\nSummary: x").failed is failed


def test_without_lines_the_first_is_the_summary_and_the_last_are_the_context():
    block = result_block("one\n\ntwo\nthree\nfour\n")

    assert (block.summary, block.context, block.deliverables) == ("one", "two\nthree\nfour", ())
    assert result_block("") == (False, "", (), "", False, ())


def test_everything_has_a_limit():
    names = ", ".join(f"f{number}" for number in range(MAX_DELIVERABLES + 9))
    block = result_block(f"Deliverables: {names}\nContext for next: {'x' * 2 * MAX_CONTEXT}")

    assert (len(block.deliverables), len(block.context)) == (MAX_DELIVERABLES, MAX_CONTEXT)


def test_what_is_met_is_a_line_for_each_criterion():
    block = result_block("Summary: done\nMet:\n1. the tests pass\n- Ada has seen it\nStatus: done")

    assert block.met == ("the tests pass", "Ada has seen it")
    assert result_block("Summary: done\nMet: it works").met == ("it works",)
    assert result_block("done").met == ()
