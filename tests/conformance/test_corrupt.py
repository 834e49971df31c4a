"""Documents on disk that cannot be read: refused by every reader, kept, and never taken for absent ones.

V8-035 and COMP-020 of the recorded cases, which see a corrupt document and let everything pass.
"""

import pytest

from detent.doctor.invariants import check
from detent.engine.project import Project
from tests.support.disk import Disk


@pytest.mark.parametrize("text", ["{{", "", "[]", "null", '"text"'])
def test_a_corrupt_state_document_is_refused_and_rebuilt(project: Project, disk: Disk, text: str) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()
    before = disk.state_path.read_bytes()
    disk.state_path.write_text(text)

    [adoption] = project.reconcile()

    assert not adoption.adopted
    assert adoption.reasons
    assert disk.state_path.read_bytes() == before
    assert (disk.directory / str(adoption.kept)).read_text() == text


def test_the_end_is_recorded_although_the_state_document_is_corrupt(project: Project, disk: Disk) -> None:
    handle = project.start("test-run", "run the tests")
    project.flush()
    disk.state_path.write_text("{")

    handle.cancel("not now")
    project.flush()

    [entry] = disk.history()
    assert (entry["session_id"], len(entry["phase_snapshots"])) == (handle.id, 2)
    assert disk.state()["active_workflow"] is None
    assert (disk.directory / "state.json.rejected-1").read_text() == "{"


def test_a_damaged_history_line_is_named_and_hides_no_other(project: Project, disk: Disk) -> None:
    project.start("test-run", "run the tests").cancel("not now")
    project.flush()
    path = disk.directory / "history.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"session_id":')

    assert len(project.history()) == 1
    assert "line 2 of history.jsonl cannot be read" in check(project)[0].message

    path.write_bytes(whole)
