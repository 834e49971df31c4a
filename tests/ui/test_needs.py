"""Needs you: the first screen, and the decision on the spot."""

import pytest

BOTH = pytest.mark.parametrize("width", [1280, 390])


@BOTH
def test_what_waits_for_a_person_is_the_first_screen(look, width):
    tab = look(width=width)
    entry = tab.get_by_role("article")
    entry.wait_for()
    text = entry.inner_text()
    assert "Approval" in text
    assert "Let a wallet pay" in text
    assert "gate approval is PENDING" in text
    assert tab.title().startswith("(1) ")
    # Nothing is wider than the window.
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@BOTH
def test_an_approval_is_given_on_the_spot_and_names_its_files(waiting, tabs, width):
    tab = tabs(width=width).open(waiting.serve())
    tab.get_by_role("button", name="Approve").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("You decide about exactly these files").wait_for()
    assert dialog.get_by_role("button", name="Approve").is_disabled()
    dialog.get_by_label("why").fill("read it, the overdraft is covered")
    dialog.get_by_role("button", name="Approve").click()
    tab.get_by_text("Nothing needs you.").wait_for()
    told = waiting.detent("log", "--json")
    assert "read it, the overdraft is covered" in told


def test_a_question_of_an_agent_is_answered_with_one_of_its_choices(fresh, tabs):
    fresh.detent("start", "trial", "Ask me")
    fresh.detent("ask", "Which colour?", "--choice", "red", "--choice", "blue", "--no-wait")
    tab = tabs().open(fresh.serve())
    tab.get_by_role("button", name="blue").click()
    tab.get_by_role("dialog").get_by_role("button", name="blue").click()
    tab.get_by_text("Nothing needs you.").wait_for()
    assert "blue" in fresh.detent("log", "--json")
