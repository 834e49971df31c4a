"""The page of one machine shows a run of another, and decides for it. Both have their journals in one Postgres."""

import subprocess

import pytest

from tests.support.page_project import SESSION, SETTINGS, TASK, PageProject
from tests.support.postgres import new_project, server_url, with_table


@pytest.fixture
def machines(tmp_path):
    """Two machines: each has a checkout, a state of the user and a server of its own."""
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    url = server_url()
    settings = with_table(f'{SETTINGS}\n[files]\nremote = "{tmp_path}/remote.git"\n', url, new_project(url))
    made = [PageProject(tmp_path / name, settings=settings) for name in ("here", "there")]
    yield made
    for each in made:
        each.stop()


def test_a_run_of_another_machine_is_followed_reviewed_and_approved(machines, tabs):
    here, there = machines
    there.hold("document")
    run = there.begin_run(TASK, "--wait", "--yes")
    there.wait_for_commits(2)
    tab = tabs().open(here.serve())

    tab.get_by_role("link", name=TASK).first.click()
    # What the agent of the other machine says, while it works.
    tab.get_by_text("reading what document is about").first.wait_for()
    there.release("document")
    tab.get_by_role("button", name="Approve").first.click()

    dialog = tab.get_by_role("dialog")
    dialog.get_by_text("You decide about exactly these files").wait_for()
    dialog.get_by_label("why").fill("read on another machine")
    dialog.get_by_role("button", name="Approve").click()

    assert run.wait(60) == 0
    assert "read on another machine" in there.detent("log", "--json", "--session", SESSION)
