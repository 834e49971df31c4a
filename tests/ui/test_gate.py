"""A gate: what proved it, and why that no longer counts."""

from tests.support.page_project import SESSION, TASK


def test_the_receipt_tells_what_was_run_on_what(look):
    tab = look(f"s/{SESSION}/gate/build/tests")
    receipt = tab.get_by_role("region", name="Receipt")
    receipt.wait_for()
    text = receipt.inner_text()
    assert "-m unittest -q test_wallet" in text
    assert "OK" in text
    receipt.locator("summary").click()
    assert "wallet.py" in receipt.inner_text()


def test_the_history_has_the_run_that_failed(look):
    tab = look(f"s/{SESSION}/gate/build/tests")
    history = tab.locator(".history li")
    history.first.wait_for()
    assert "passed" in history.nth(0).inner_text()
    assert "failed" in history.nth(1).inner_text()


def test_a_stale_receipt_names_the_file(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    fresh.detent("finish", "plan", "-m", "planned")
    fresh.detent("begin", "build")
    fresh.detent("gate", "run", "tests", "--phase", "build")
    (fresh.root / "wallet.py").write_text((fresh.root / "wallet.py").read_text() + "\n# changed\n")
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/gate/build/tests")
    tab.get_by_text("STALE").first.wait_for()
    assert "wallet.py" in tab.locator(".receipt .failure").inner_text()


def test_who_approved_and_with_which_proof(waiting, tabs, at):
    waiting.detent("approve", "accept", "--gate", "approval", "-m", "fine")
    tab = tabs().open(waiting.serve())
    at(tab, f"s/{SESSION}/gate/accept/approval")
    votes = tab.locator("section", has=tab.get_by_role("heading", name="Votes"))
    votes.wait_for()
    assert "fine" in votes.inner_text()
    assert "attended" in votes.inner_text()
