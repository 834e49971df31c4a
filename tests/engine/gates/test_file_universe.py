"""Evidence and checkpoints share one universe: one walk for both, and no file is hashed that did not change."""

import pytest

from detent.core.gate.evidence import Verdict
from detent.engine.project import open_project
from detent.errors import GateClosed
from detent.objects import stat_cache
from tests.support.gated import UNITTEST, calculator, started, verdicts
from tests.support.project import write

GATE = f'{{ kind = "tests", command = "{UNITTEST}" }}'
FILES = 30


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Files count as unchanged for a while, so that no row is hashed again only because its file is new."""
    monkeypatch.setattr(stat_cache, "RACE_NS", -1)


@pytest.fixture(params=["tree", "off"])
def capture(request):
    return request.param


@pytest.fixture
def work(tmp_path, capture):
    """The root of a project, its universe, and a session in a phase with a tests gate."""
    calculator(tmp_path)
    write(tmp_path, ".gitignore", "__pycache__/\n")
    for number in range(FILES):
        write(tmp_path, f"src/part_{number}.py", f"PART = {number}\n")
    project, handle = started(tmp_path, GATE, more=f'[checkpoint]\ncapture = "{capture}"\n')
    with project:
        yield tmp_path, project.checkpoints.universe, handle


def counted(universe, action):
    """The walks that the action makes, and the files that it hashes."""
    walks, hashed = universe.walks, universe.hashed
    action()
    return universe.walks - walks, universe.hashed - hashed


def test_finish_walks_once_and_hashes_nothing_after_a_gate_run(work):
    root, universe, handle = work
    write(root, "calc.py", "def add(a, b):\n    return b + a\n")
    handle.gates.run("tests")

    assert counted(universe, lambda: handle.finish("done")) == (1, 0)


def test_finish_hashes_the_one_file_that_changed_since_the_gate_ran(work, capture):
    root, universe, handle = work
    handle.gates.run("tests")
    write(root, "docs/notes.md", "prose is no input, and a checkpoint takes it")

    assert counted(universe, lambda: handle.finish("done")) == (1, 1)
    if capture == "tree":
        [*_, last] = handle.checkpoints.all()
        assert "docs/notes.md" in handle._project.checkpoints.files(last.event.tree.manifest)


def test_begin_after_finish_hashes_nothing(work, capture):
    _, universe, handle = work
    handle.gates.run("tests")
    handle.finish("done")

    assert counted(universe, lambda: handle.begin("after")) == (int(capture == "tree"), 0)


def test_a_begin_that_follows_a_finish_at_once_shares_its_walk(work, capture):
    root, universe, handle = work
    handle.gates.run("tests")
    handle.finish("done")

    assert counted(universe, lambda: handle.begin("after", is_next=True)) == (0, 0)
    if capture == "tree":
        post, pre = handle.checkpoints.all()[-2:]
        assert pre.event.tree == post.event.tree
    write(root, "src/part_5.py", "PART = 'five'\n")
    assert counted(universe, lambda: handle.finish("done")) == (int(capture == "tree"), int(capture == "tree"))


@pytest.mark.parametrize("capture", ["tree"])
@pytest.mark.parametrize("is_next", [False, True])
def test_a_begin_walks_if_its_caller_does_not_vouch_or_somebody_committed(work, is_next):
    root, _, handle = work
    handle.gates.run("tests")
    handle.finish("done")
    if is_next:
        handle.checkpoints.take("a commit in between")
    write(root, "src/part_5.py", "PART = 'five'\n")
    handle.begin("after", is_next=is_next)

    before, pre = handle.checkpoints.all()[-2:]
    assert pre.event.tree.manifest != before.event.tree.manifest


def test_a_refused_finish_hashes_a_changed_file_once(work):
    root, universe, handle = work
    write(root, "calc.py", "def add(a, b):\n    return 0\n")
    handle.gates.run("tests")
    write(root, "docs/notes.md", "prose is no input")

    def refused():
        with pytest.raises(GateClosed, match="tests is FAIL"):
            handle.finish("done")

    assert counted(universe, refused) == (1, 1)
    assert counted(universe, refused) == (1, 0)


def test_the_next_process_hashes_only_what_changed(work):
    root, _, handle = work
    handle.gates.run("tests")
    handle._project.close()
    write(root, "docs/notes.md", "prose")

    with open_project(root, actor="tester") as project:
        again = project.session()
        assert counted(project.checkpoints.universe, lambda: again.finish("done")) == (1, 1)


def test_looking_leaves_no_trace(work):
    root, _, handle = work
    handle.gates.run("tests")
    handle._project.close()
    before = {path: path.stat().st_mtime_ns for path in (root / ".workflow").rglob("*")}
    write(root, "src/part_3.py", "PART = 'three'\n")

    with open_project(root, actor="tester") as project:
        assert verdicts(project.session()) == {"tests": Verdict.STALE}

    assert {path: path.stat().st_mtime_ns for path in (root / ".workflow").rglob("*")} == before


def test_contents_that_were_hashed_without_being_stored_are_stored_by_the_checkpoint(work, capture):
    root, _, handle = work
    write(root, "src/new.py", "NEW = 1\n")
    handle.gates.judgements()
    handle.gates.run("tests")
    write(root, "src/part_1.py", "PART = 'one'\n")
    handle.gates.judgements()
    handle.gates.run("tests")
    handle.finish("done")
    if capture == "tree":
        checkpoints = handle._project.checkpoints
        [*_, last] = handle.checkpoints.all()
        assert checkpoints.missing(last.event.tree.manifest, set()) == []
        files = checkpoints.files(last.event.tree.manifest)
        assert checkpoints.objects.read(files["src/part_1.py"].digest) == b"PART = 'one'\n"
