"""Checkpoints: back to one after a dry run, and back again."""

from tests.support.page_project import SESSION


def test_a_rollback_is_shown_first_then_done_then_undone(waiting, tabs, at):
    code = waiting.root / "wallet.py"
    built = code.read_text()
    tab = tabs().open(waiting.serve())
    at(tab, f"s/{SESSION}/checkpoints")
    tab.locator("li", has_text="PRE_build").get_by_role("button", name="Go back").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("Nothing was changed yet").wait_for()
    assert "wallet.py" in dialog.inner_text()
    assert "pay" in code.read_text()
    dialog.get_by_role("button", name="Go back").click()
    dialog.wait_for(state="detached")
    assert "pay" not in code.read_text()
    tab.get_by_role("button", name="Undo it").click()
    dialog.get_by_text("Nothing was changed yet").wait_for()
    dialog.get_by_role("button", name="Undo it").click()
    dialog.wait_for(state="detached")
    assert code.read_text() == built


def test_leaving_the_dry_run_changes_nothing(waiting, tabs, at):
    commits = waiting.commits()
    tab = tabs().open(waiting.serve())
    at(tab, f"s/{SESSION}/checkpoints")
    tab.locator("li", has_text="PRE_build").get_by_role("button", name="Go back").click()
    tab.get_by_text("Nothing was changed yet").wait_for()
    tab.keyboard.press("Escape")
    tab.get_by_role("dialog").wait_for(state="detached")
    assert waiting.commits() == commits
