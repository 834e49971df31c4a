"""What an agent hears when the record of its project is gone, cut or rewritten."""

import shutil

import pytest

from tests.support.hooked_project import Place

SHELL = ("Bash", {"stdout": "ok"})


@pytest.fixture
def place(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (root / "notes.txt").write_text("older than the session")
    place = Place(root, settings='gates = "off"\n[checkpoint]\ncapture = "off"\n')
    place.detent("start", "feature", "Add search")
    place.detent("finish", "-m", "Wrote it down")
    return place


def test_an_agent_hears_that_the_record_is_gone(place):
    shutil.rmtree(place.root / ".workflow")

    started = place.hook("SessionStart", source="startup")
    after = place.after(*SHELL, command="rm -rf .workflow")

    for answer in (started, after):
        assert "had 1 session, and the record is gone" in answer.text
        assert "detent doctor --restore" in answer.text


def test_nothing_is_delegated_without_the_record(place):
    shutil.rmtree(place.root / ".workflow")

    assert "the record is gone" in str(place.before("Agent", subagent_type="developer", prompt="go").denied)
    assert place.before("Bash", command="ls").text == ""


def test_nothing_is_delegated_on_a_journal_that_lacks_commits(place):
    journal = place.root / ".workflow" / "WFS-add-search" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    # The document is made to fit the cut journal, as a careful forger would do.
    shutil.copytree(place.root / ".workflow", place.root / "before")
    place.detent("begin")
    shutil.rmtree(place.root / ".workflow")
    (place.root / "before").rename(place.root / ".workflow")
    assert journal.read_bytes() == b"".join(lines)

    denied = place.before("Agent", subagent_type="developer", prompt="go").denied
    heard = place.after(*SHELL, command="ls")

    assert "is not what Detent wrote" in str(denied)
    assert "WFS-add-search" in heard.text


def test_outside_of_projects_nothing_is_said(place, tmp_path):
    assert place.hook("SessionStart", cwd=str(tmp_path)).text == ""
