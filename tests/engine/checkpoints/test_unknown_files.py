"""New files at a rollback: those of the session go, those that a person or another program made stay."""

import pytest

from tests.support.values import row


@pytest.fixture
def handle(project, tmp_path):
    """Two phases by hand. A file appears while the first is in progress, and one between the two."""
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "declared.md").write_text("of a")
    (tmp_path / "notes.txt").write_text("of a person")
    handle.finish("a is done", artifacts=["declared.md"])
    (tmp_path / "between.txt").write_text("of a person")
    handle.begin("b")
    return handle


def left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir() if path.is_file() and path.suffix in (".md", ".txt"))


def test_a_file_that_the_session_is_not_known_to_have_made_stays_and_is_listed(handle, tmp_path):
    handle.fail("broke", phase="b")

    plan = handle.checkpoints.rollback("PRE_a_v1").plan

    assert left(tmp_path) == ["between.txt", "notes.txt"]
    assert plan.unknown == ("between.txt", "notes.txt")


def test_unknown_files_go_on_request_and_undo_brings_them_back(handle, tmp_path):
    handle.fail("broke", phase="b")

    plan = handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True).plan

    assert (left(tmp_path), plan.unknown) == ([], ())
    handle.checkpoints.undo()
    assert left(tmp_path) == ["between.txt", "declared.md", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "of a person"


def test_a_path_that_is_named_goes(handle, tmp_path):
    handle.checkpoints.rollback("PRE_a_v1", paths=["notes.txt"])

    assert left(tmp_path) == ["between.txt", "declared.md"]


def test_a_directory_that_is_named_keeps_its_unknown_files(handle, tmp_path):
    plan = handle.checkpoints.rollback("PRE_a_v1", paths=["."]).plan

    assert plan.unknown == ("between.txt", "notes.txt")
    assert left(tmp_path) == ["between.txt", "notes.txt"]
