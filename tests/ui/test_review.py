"""Review before approving: the diff, comments that become a reason, and files that change meanwhile."""

from tests.support.page_project import SESSION


def test_the_diff_is_shown_side_by_side_and_inline(look):
    tab = look(f"s/{SESSION}/review/build")
    code = tab.get_by_role("region", name="wallet.py", exact=True)
    added = code.locator("td.added.code", has_text="not enough money")
    added.wait_for()
    assert code.locator(".diff.split").count() == 1
    tab.get_by_role("button", name="Inline").click()
    assert code.locator(".diff.split").count() == 0
    assert added.count() == 1
    assert code.locator("td.removed").count() == 0


def test_a_binary_file_is_named_and_not_shown(look):
    tab = look(f"s/{SESSION}/review/document")
    binary = tab.get_by_role("region", name="picture.bin", exact=True)
    binary.get_by_text("A binary file").wait_for()
    assert "256 B after" in binary.inner_text()


def test_two_checkpoints_are_compared(look):
    tab = look(f"s/{SESSION}/checkpoints")
    rows = tab.locator(".rows li")
    rows.first.wait_for()
    tab.locator("li", has_text="POST_build").get_by_role("button", name="Compare").click()
    tab.locator("li", has_text="PRE_build").get_by_role("button", name="Compare with marked").click()
    tab.get_by_role("heading", name="→").wait_for()
    tab.locator("td.added.code", has_text="def pay").first.wait_for()


def test_comments_become_the_reason_of_a_rejection(waiting, tabs, at):
    tab = tabs().open(waiting.serve())
    (waiting.root / "wallet.py").write_text((waiting.root / "wallet.py").read_text() + "\nLIMIT = 10\n")
    at(tab, f"s/{SESSION}/review/accept")
    row = tab.locator("tr", has=tab.locator("td.added.code", has_text="LIMIT = 10"))
    row.get_by_role("button", name="Comment on line").click()
    tab.get_by_role("textbox", name="Comment on line").fill("name the currency")
    tab.get_by_role("button", name="Ask for changes").click()
    dialog = tab.get_by_role("dialog")
    assert "wallet.py:" in dialog.get_by_label("why").input_value()
    dialog.get_by_role("button", name="Ask for changes").click()
    dialog.wait_for(state="detached")
    told = waiting.detent("log", "--json")
    assert "name the currency" in told
    assert "wallet.py:" in told


def test_files_that_changed_since_are_named_and_nothing_is_approved(waiting, tabs, at):
    tab = tabs().open(waiting.serve())
    at(tab, f"s/{SESSION}/review/accept")
    tab.get_by_role("button", name="Approve").wait_for()
    (waiting.root / "wallet.py").write_text("# nothing is left\n")
    tab.get_by_role("button", name="Approve").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("why").fill("looks fine")
    dialog.get_by_role("button", name="Approve").click()
    refusal = dialog.get_by_role("alert")
    refusal.wait_for()
    assert "wallet.py" in refusal.inner_text()
    assert "PENDING" in waiting.detent("gates", "accept", "--json")
    # With the files as they are now, it is a decision about those.
    dialog.get_by_role("button", name="Look at the files as they are now").click()
    dialog.get_by_text("You decide about exactly these files").wait_for()
    dialog.get_by_role("button", name="Approve", exact=True).click()
    dialog.wait_for(state="detached")
    assert "PASS" in waiting.detent("gates", "accept", "--json")


def test_a_file_of_many_lines_is_shown_in_parts(waiting, tabs, at):
    (waiting.root / "long.txt").write_text("".join(f"line {number}\n" for number in range(3_000)))
    tab = tabs().open(waiting.serve())
    at(tab, f"s/{SESSION}/review/accept")
    long = tab.get_by_role("region", name="long.txt", exact=True)
    long.get_by_role("button", name="more line").wait_for()
    assert long.locator("tr").count() < 700
    long.get_by_role("button", name="more line").click()
    long.get_by_text("line 2999").wait_for()
