"""A worker's tree is made from the newest checkpoint byte for byte, and its result comes back the same way."""

import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from detent.core.actor import Channel
from detent.engine.actor import identify
from detent.engine.session import SessionHandle
from detent.errors import Conflict
from detent.objects.restore import Restore
from detent.run.job import FilesConflict
from detent.store.memory import MemoryStore
from detent.worker.ended_trees import remove_ended
from detent.worker.trees import JobTree, lent_tree
from tests.support.machines import bare_remote, listing, machine, odd_files


@pytest.fixture(params=["git", "url"])
def where(request, tmp_path):
    return bare_remote(tmp_path / "remote.git") if request.param == "git" else f'url = "file://{tmp_path / "shared"}"'


class Machines:
    def __init__(self, directory: Path, where: str) -> None:
        self.directory, self.where, self.store = directory, where, MemoryStore()
        self.own = directory / "own"
        self.own.mkdir()
        odd_files(self.own)
        self.project = machine(self.own, self.store, where)
        self.session = self.project.start("w", "travel").id

    def end(self) -> None:
        """A person cancels the session."""
        person = identify({}, Channel.LIBRARY, name="own", lineage=())
        self.project.beside(self.project.place, person).session(self.session).cancel("no longer needed")

    def tree(self, name: str) -> tuple[JobTree, Path, SessionHandle]:
        """The tree of a job on the machine of that name."""
        root = self.directory / name
        root.mkdir(exist_ok=True)
        (root / ".workflow").mkdir(exist_ok=True)
        with lent_tree(str(root), self.session, None) as place:
            project = machine(root, self.store, self.where, place.base)
        handle = project.session(self.session)
        files = JobTree(project, handle)
        files.make()
        return files, Path(place.base), handle


@pytest.fixture
def machines(tmp_path, where):
    return Machines(tmp_path, where)


def test_another_machine_has_the_same_files_and_gives_its_own_back(machines):
    files, tree, handle = machines.tree("b")
    assert listing(tree) == listing(machines.own)
    (tree / "plain.txt").write_text("changed")
    (tree / "link").unlink()
    (tree / "new").write_text("new")
    (tree / "new").chmod(0o700)
    handle.checkpoints.take("work", then=files.settle())
    assert listing(machines.tree("c")[1]) == listing(tree)


def test_two_jobs_of_a_worker_make_their_trees_at_the_same_time(machines, monkeypatch):
    root, both_have_staged, stage = machines.directory / "b", Barrier(2, timeout=60), Restore._stage

    def staged(*arguments):
        contents = stage(*arguments)
        both_have_staged.wait()
        return contents

    monkeypatch.setattr(Restore, "_stage", staged)
    (root / ".workflow").mkdir(parents=True)
    with ExitStack() as lent, ThreadPoolExecutor(2) as threads:
        places = [lent.enter_context(lent_tree(str(root), machines.session, None)) for _ in range(2)]
        projects = [machine(root, machines.store, machines.where, place.base) for place in places]
        jobs = [JobTree(project, project.session(machines.session)) for project in projects]
        for made in [threads.submit(job.make) for job in jobs]:
            made.result()

    assert [listing(Path(place.base)) == listing(machines.own) for place in places] == [True, True]


def test_parallel_jobs_lose_nothing(machines):
    (one, tree_one, by_one), (two, tree_two, by_two) = machines.tree("b"), machines.tree("c")
    (tree_one / "one").write_text("1")
    (tree_two / "two").write_text("2")
    check = two.settle()
    by_one.checkpoints.take("one", then=one.settle())
    with pytest.raises(Conflict):
        by_two.checkpoints.take("two", then=check)
    by_two.checkpoints.take("two", then=two.settle())
    last = machines.tree("d")[1]
    assert ((last / "one").read_text(), (last / "two").read_text()) == ("1", "2")


def test_a_file_that_both_changed_is_a_conflict_that_names_it(machines):
    (one, tree_one, by_one), (two, tree_two, _) = machines.tree("b"), machines.tree("c")
    (tree_one / "plain.txt").write_text("1")
    (tree_two / "plain.txt").write_text("2")
    by_one.checkpoints.take("one", then=one.settle())
    with pytest.raises(FilesConflict, match=r"plain\.txt"):
        two.settle()


def test_a_tracked_file_that_an_ignore_rule_covers_travels_on(tmp_path):
    import subprocess

    own = tmp_path / "own"
    own.mkdir()
    (own / ".gitignore").write_text("*.log\n")
    (own / "kept.log").write_text("kept")
    (own / "left.log").write_text("left")
    for arguments in (["init", "-q"], ["add", "-f", "kept.log", ".gitignore"]):
        subprocess.run(["git", "-C", own, *arguments], check=True)
    machines = Machines.__new__(Machines)
    machines.directory, machines.store, machines.own = tmp_path, MemoryStore(), own
    machines.where = bare_remote(tmp_path / "remote.git")
    machines.session = machine(own, machines.store, machines.where).start("w", "travel").id
    files, tree, handle = machines.tree("b")
    assert sorted(path.name for path in tree.iterdir() if path.name != ".git") == [".gitignore", "kept.log"]
    handle.checkpoints.take("work", then=files.settle())
    assert (machines.tree("c")[1] / "kept.log").read_text() == "kept"


def test_what_a_dead_job_left_is_removed(machines):
    _, tree, _ = machines.tree("b")
    before = listing(tree)
    (tree / "half").write_text("half")
    (tree / "plain.txt").unlink()
    assert listing(machines.tree("b")[1]) == before


def swept(machines: Machines, name: str, kept: set[str] | None = None) -> list[str]:
    """What a worker of the machine says when it removes trees. `kept` is that of its process."""
    root, notes = machines.directory / name, list[str]()
    remove_ended(machine(root, machines.store, machines.where), set() if kept is None else kept, notes.append)
    return notes


def left(machines: Machines, name: str) -> list[str]:
    """The files of trees on the machine: the directories, their locks and their caches."""
    state = machines.directory / name / ".workflow"
    caches = Path(machines.store.directory("checkpoints")).glob(".stat-cache-*")
    return sorted([*(path.name for path in (state / "worktrees").iterdir()), *(path.name for path in caches)])


def test_the_tree_of_a_session_that_ended_is_removed_with_its_ignored_files(machines):
    files, tree, handle = machines.tree("b")
    (tree / "new").write_text("new")
    handle.checkpoints.take("work", then=files.settle())
    Path(machines.store.directory("checkpoints"), f".stat-cache-{tree.name}").touch()
    later, own, by_later = machines.tree("c")
    (own / "new").write_text("newer")
    by_later.checkpoints.take("later", then=later.settle())
    (tree / ".git" / "info").mkdir()
    (tree / ".git" / "info" / "exclude").write_text("cache/\n")
    (tree / "cache").mkdir()
    (tree / "cache" / "module").write_text("big")
    (tree / "cache").chmod(0o500)

    assert swept(machines, "b") == []
    assert tree.exists(), "the session goes on"
    machines.end()
    assert swept(machines, "b") == []
    assert left(machines, "b") == []


def test_a_tree_that_a_job_has_stays_until_the_job_ends(machines):
    machines.tree("b")
    machines.end()
    with lent_tree(str(machines.directory / "b"), machines.session, None) as place:
        assert swept(machines, "b") == []
        assert Path(place.base, "plain.txt").exists()
    assert swept(machines, "b") == []
    assert left(machines, "b") == []


@pytest.mark.parametrize("name", ["half", ".env"])
def test_a_tree_with_a_file_that_no_checkpoint_has_stays_and_is_told_of_once(machines, name):
    _, tree, _ = machines.tree("b")
    (tree / name).write_text("half")
    machines.end()
    kept: set[str] = set()
    (said,) = swept(machines, "b", kept)
    assert f"{tree} was kept: no checkpoint has its {name}" in said
    assert swept(machines, "b", kept) == []
    assert (tree / name).read_text() == "half"
    (tree / name).unlink()
    assert swept(machines, "b") == []
    assert not tree.exists()


def test_a_tree_stays_if_the_shared_place_lost_its_checkpoint(machines, monkeypatch):
    _, tree, _ = machines.tree("b")
    travel = machines.project.checkpoints.travel
    travel.transport.remove(travel.transport.names())
    monkeypatch.setattr("detent.engine.checkpoints.travel._manifests", {})
    machines.end()
    assert "was kept" in swept(machines, "b")[0]
    assert (tree / "plain.txt").exists()


def test_a_worktree_of_git_and_directories_of_people_stay(machines):
    machines.tree("b")
    trees = machines.directory / "b" / ".workflow" / "worktrees"
    for name in (f"{machines.session}.worker2", f"{machines.session}.phase", "WFS-unknown.worker1"):
        (trees / name).mkdir()
        (trees / name / ".git").write_text("gitdir: elsewhere")
        (trees / f"{name}.lock").touch()
    machines.end()
    assert swept(machines, "b") == []
    assert len(left(machines, "b")) == 6


def test_no_job_gets_a_tree_that_is_being_removed(machines, monkeypatch):
    machines.tree("b")
    machines.end()
    flock, seen = fcntl.flock, list[str]()

    def late(lock: int, kind: int) -> None:
        """The job has opened the lock, and the tree is removed before the job locks it."""
        monkeypatch.setattr(fcntl, "flock", flock)
        assert swept(machines, "b") == []
        seen.append("removed")
        flock(lock, kind)

    monkeypatch.setattr(fcntl, "flock", late)
    root = str(machines.directory / "b")
    with lent_tree(root, machines.session, None) as one, lent_tree(root, machines.session, None) as two:
        assert seen == ["removed"]
        assert one.base != two.base


def test_what_a_killed_process_staged_is_removed_by_the_next(machines):
    staging = Path(machines.store.directory("checkpoints"))
    left = staging / "detent-bring-killed"
    (left / "staging").mkdir(parents=True)
    (left / "staging" / "1").write_text("half")
    os.utime(left, (0, 0))
    machines.tree("b")
    assert not list(staging.glob("*bring*"))
