"""What Detent writes is for its owner alone, whatever the umask says."""

import os
import stat
from pathlib import Path

import pytest

from detent.doctor.invariants import check
from detent.engine.bundles.exporting import export_session
from detent.engine.project import open_project
from detent.objects.pack import Objects
from detent.store.files import FileStore
from tests.support.project import build_project, write
from tests.support.run_process import Scene
from tests.support.values import row

PASSWORD = b"hunter2 of the private file\n"


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(*tops: str | Path) -> list[str]:
    """Every file and directory at and below the given ones that another account may read, write or search."""
    paths = [path for top in map(Path, tops) for path in (top, *top.rglob("*")) if not path.is_symlink()]
    assert len(paths) > 5
    return [f"{stat.S_IMODE(path.stat().st_mode):o} {path.name}" for path in paths if path.stat().st_mode & 0o077]


def copies() -> str:
    return os.path.join(os.environ["XDG_STATE_HOME"], "detent")


@pytest.mark.usefixtures("open_umask")
def test_state_and_second_copies_are_closed_to_others(tmp_path):
    build_project(tmp_path, files={"notes.txt": "one", "big.bin": "x" * (2 << 20)})
    write(tmp_path, "key", PASSWORD).chmod(0o600)
    with open_project(tmp_path, actor="tester") as project:
        session = project.start(row("a", "b"), "try it")
        session.checkpoints.take("here")
        write(tmp_path, "notes.txt", "two")
        session.finish("a is done", artifacts=["notes.txt"])
        session.checkpoints.rollback("PRE_a_v1")
        export_session(project, session.id, tmp_path / "bundle")
        project.flush()
        assert check(project) == []

    assert open_to_others(tmp_path / ".workflow", copies()) == []
    assert stat.S_IMODE((tmp_path / "bundle").stat().st_mode) == 0o600


@pytest.mark.usefixtures("open_umask", "nobody")
def test_files_of_a_run_are_closed_to_others(tmp_path):
    scene = Scene(
        tmp_path, '"a", "b"', "cat > /dev/null; echo hello > made.txt", agent='prompt = "file"', run="tests = 'true'"
    )
    ran = scene.run()

    assert ran.exit_code == 0, ran.errors
    assert open_to_others(scene.state, copies()) == []


def test_state_directory_that_others_may_enter_is_closed_by_the_next_change(tmp_path):
    build_project(tmp_path)
    state = tmp_path / ".workflow"
    state.chmod(0o755)
    with open_project(tmp_path, actor="tester") as project:
        project.start(row("a"), "try it")

    assert stat.S_IMODE(state.stat().st_mode) == 0o700


@pytest.mark.usefixtures("open_umask")
def test_objects_and_documents_are_closed_to_others_wherever_they_are(tmp_path):
    """The directory above may be opened by a person; what is in it stays closed."""
    with Objects(str(tmp_path / "objects")).batch("owner") as batch:
        batch.add(PASSWORD)
        batch.add_data_as_file(PASSWORD, name="key")
    FileStore(str(tmp_path / "state")).put("deep/down/document.json", b"{}")

    assert open_to_others(tmp_path / "objects", tmp_path / "state") == []
