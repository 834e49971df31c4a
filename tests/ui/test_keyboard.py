"""The keyboard alone: review and approve, the palette, the list of keys."""

from tests.support.page_project import SESSION


def test_a_review_and_an_approval_by_keyboard_alone(waiting, tabs):
    tab = tabs().open(waiting.serve())
    tab.get_by_role("article").wait_for()
    press = tab.keyboard.press
    press("g")
    press("d")
    tab.get_by_role("heading", name="Changes of accept").wait_for()
    # Back, to the changes of another phase by the palette, and to the decision again.
    press("Control+k")
    tab.keyboard.type("build")
    tab.get_by_role("option", name="build").first.wait_for()
    press("Enter")
    tab.get_by_role("heading", name="build").wait_for()
    press("g")
    press("d")
    tab.get_by_role("heading", name="Changes of build").wait_for()
    tab.locator("td.added").first.wait_for()
    press("j")
    press("v")
    assert tab.locator(".diff.split").count() == 0
    press("g")
    press("n")
    tab.get_by_role("heading", name="Needs you", level=1).wait_for()
    tab.get_by_role("article").wait_for()
    press("Enter")
    tab.get_by_role("heading", name="Changes of accept").wait_for()
    tab.get_by_role("button", name="Approve").wait_for()
    press("a")
    tab.get_by_role("dialog").wait_for()
    tab.keyboard.type("read every line")
    press("Control+Enter")
    tab.get_by_role("dialog").wait_for(state="detached")
    assert "PASS" in waiting.detent("gates", "accept", "--json")
    assert "read every line" in waiting.detent("log", "--json")


def test_a_rejection_by_keyboard(waiting, tabs):
    tab = tabs().open(waiting.serve())
    tab.get_by_role("article").wait_for()
    tab.keyboard.press("r")
    tab.get_by_role("dialog").wait_for()
    tab.keyboard.type("no test for zero")
    tab.keyboard.press("Control+Enter")
    tab.get_by_role("dialog").wait_for(state="detached")
    assert "no test for zero" in waiting.detent("log", "--json")


def test_letters_in_a_field_are_letters(look):
    tab = look(f"s/{SESSION}/log")
    field = tab.get_by_label("Filter the log by text")
    field.focus()
    tab.keyboard.type("gnatr?")
    assert field.input_value() == "gnatr?"
    assert tab.get_by_role("dialog").count() == 0


def test_the_list_of_keys_and_switching_single_keys_off(look):
    tab = look()
    tab.get_by_role("article").wait_for()
    tab.keyboard.press("?")
    keys = tab.get_by_role("dialog")
    keys.wait_for()
    for label in ("Next row", "Approve, or the first decision", "Reject", "Go to the diff", "Command palette"):
        assert keys.get_by_text(label).count() == 1
    keys.get_by_label("Single keys work").uncheck()
    tab.keyboard.press("Escape")
    tab.keyboard.press("a")
    assert tab.get_by_role("dialog").count() == 0


def test_tab_moves_through_the_page_and_the_dialog_keeps_the_focus(look):
    tab = look()
    tab.get_by_role("article").wait_for()
    tab.keyboard.press("Shift+Tab")
    tab.get_by_role("button", name="Approve").focus()
    tab.keyboard.press("Enter")
    dialog = tab.get_by_role("dialog")
    dialog.wait_for()
    for _ in range(12):
        tab.keyboard.press("Tab")
        assert tab.evaluate("['BODY', 'DIALOG'].includes(document.activeElement.closest('dialog, body').tagName)")
        assert not tab.evaluate("Boolean(document.activeElement.closest('main > *:not(dialog)'))")
    tab.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert tab.evaluate("document.activeElement.textContent") == "Approve"


def test_every_object_has_an_address(look):
    tab = look(f"s/{SESSION}/gate/build/tests")
    tab.get_by_role("region", name="Receipt").wait_for()
    tab.reload()
    tab.get_by_role("region", name="Receipt").wait_for()
    tab.go_back()
    tab.get_by_role("heading", name="Needs you", level=1).wait_for()
