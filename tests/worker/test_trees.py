"""A worker's tree is made from the newest checkpoint byte for byte, and its result comes back the same way."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier

import pytest

from detent.engine.session import SessionHandle
from detent.errors import Conflict
from detent.objects.restore import Restore
from detent.run.job import FilesConflict
from detent.store.memory import MemoryStore
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
