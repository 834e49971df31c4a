"""The copy of the page opens from the file system, by double click, and holds no secret."""

import shutil

import pytest

from tests.support.page_project import SESSION

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


@pytest.fixture
def copy(waiting, tmp_path):
    """The copy, in another place than it was written to; the project is gone."""
    waiting.detent("task", "add", "Round amounts")
    waiting.detent("ask", f"May I use {SECRET}?", "--no-wait")
    waiting.detent("ui", "--export", str(tmp_path / "written"))
    shutil.move(tmp_path / "written", tmp_path / "a copy")
    shutil.rmtree(waiting.root)
    return tmp_path / "a copy"


def test_the_copy_opens_without_a_server(copy, tabs, at):
    window = tabs()
    asked = []
    window.context.on("request", lambda request: asked.append(request.url))
    tab = window.open((copy / "index.html").as_uri())
    tab.get_by_text("gate approval is PENDING").wait_for()
    assert tab.get_by_role("button", name="Approve", exact=True).count() == 0
    tab.get_by_text("Copy of").wait_for()
    at(tab, f"s/{SESSION}")
    tab.get_by_role("group", name="Phases").wait_for()
    tab.locator(".attempt", has_text="ValueError not raised").wait_for()
    at(tab, f"s/{SESSION}/log")
    tab.locator(".commit", has_text="finished 2 of 4 build").wait_for()
    at(tab, f"s/{SESSION}/gate/build/tests")
    tab.get_by_role("region", name="Receipt").wait_for()
    at(tab, f"s/{SESSION}/review/build")
    tab.locator("td.added.code", has_text="not enough money").wait_for()
    at(tab, f"s/{SESSION}/tasks")
    tab.get_by_text("Round amounts").click()
    tab.get_by_role("heading", name="Round amounts").wait_for()
    at(tab, f"s/{SESSION}/checkpoints")
    tab.locator("li", has_text="PRE_build").wait_for()
    at(tab, "history")
    tab.get_by_text("No session has ended yet.").wait_for()
    assert tab.get_by_role("alert").count() == 0
    assert [url for url in asked if not url.startswith("file://")] == []


def test_the_copy_holds_no_secret(copy):
    files = [path for path in copy.rglob("*") if path.is_file()]
    assert len(files) > 20
    assert [path.name for path in files if SECRET.encode() in path.read_bytes()] == []
    assert b"May I use" in (copy / "data.js").read_bytes()
