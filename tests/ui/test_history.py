"""History and figures: sessions that ended, their plots, and two of them side by side."""

import pytest

from tests.support.page_project import NEEDS_A_PERSON, TASK

OTHER = "Let a wallet pay twice"


@pytest.fixture
def ended(fresh):
    """Two sessions that ended."""
    for task in (TASK, OTHER):
        fresh.detent("run", task, expect=NEEDS_A_PERSON)
        fresh.detent("approve", "accept", "--gate", "approval", "-m", "fine")
        fresh.detent("run")
    return fresh


def test_figures_and_a_comparison(ended, tabs, at):
    tab = tabs().open(ended.serve())
    at(tab, "history")
    tab.get_by_role("link", name=OTHER).wait_for()
    assert tab.locator(".plot canvas").count() == 4
    sessions = tab.get_by_role("region", name="Sessions that ended").inner_text()
    # Each had one failing check among three gates that ran at all.
    assert "%" in sessions
    assert "$0.10" in sessions
    assert "build" in tab.get_by_role("region", name="Durations by phase").inner_text()
    gates = tab.get_by_role("region", name="Gates").inner_text()
    assert "accept approval" in gates
    assert "100 %" in gates
    tab.get_by_role("button", name="Compare").nth(0).click()
    tab.get_by_role("button", name="With marked").click()
    tab.get_by_role("heading", name="Compare").wait_for()
    table = tab.get_by_role("region", name="Comparison")
    table.wait_for()
    text = table.inner_text()
    assert TASK in text
    assert OTHER in text
    assert "document" in text
