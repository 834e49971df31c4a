"""A merge happens or it does not, wherever it is interrupted."""

import os
import random
import subprocess
import sys
import time

import pytest

from detent.errors import Conflict, GateClosed
from detent.process import git as git_module
from detent.run.merging import merge
from detent.run.worktree import ensure
from tests.support.repository import (
    commit,
    git,
    hook,
    log,
    opened,
    repository,
    session,
    status,
    stop_everything_in,
    write,
)
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("nobody")
SCRIPT = """
import sys
from detent.engine.project import open_project
from detent.run.worktree import merge
print(merge(open_project(sys.argv[1]), "WFS-trial", "a").message)
"""


@pytest.fixture
def root(tmp_path):
    """With a worktree in which an agent changed, added and removed files."""
    root = repository(tmp_path / "my project é")
    commit(root, gone__txt="old\n", keep__txt="kept\n")
    with opened(root) as project:
        session(project)
        path, _ = ensure(project, "WFS-trial", "a")
    write(path, code__py="one\nTWO\nthree\n", a_new__txt="new\n", **{"añadido/ü b__txt": "new too\n"})
    os.unlink(os.path.join(path, "gone.txt"))
    return root


@pytest.fixture
def tree(root):
    return root / ".workflow/worktrees/WFS-trial.a"


def start_merge(root):
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(root)], stdout=subprocess.DEVNULL)


def merge_again(root):
    with opened(root) as project:
        return merge(project, "WFS-trial", "a")


def check_merged(root, *, merges=1):
    assert status(root) == ""
    assert (root / "code.py").read_text() == "one\nTWO\nthree\n"
    assert (root / "añadido/ü b.txt").read_text() == "new too\n"
    assert not (root / "gone.txt").exists()
    assert (root / "keep.txt").read_text() == "kept\n"
    assert sum(line.startswith("Merge ") for line in log(root)) == merges
    assert not (root / ".workflow/worktrees/.merging.json").exists()


def kill(child, root):
    """As when the machine stops: the merging process, and the git it started."""
    child.kill()
    child.wait()
    stop_everything_in(root)


def make_stale(root):
    """The lock of a git that was killed long enough ago to be stale."""
    lock, note = root / ".git/index.lock", root / ".workflow/worktrees/.merging.json"
    assert lock.exists()
    for path in (note, lock):
        os.utime(path, (time.time() - 60, time.time() - 60))


def test_a_merge_brings_everything_and_says_which_session_and_phase_it_is_of(root, tree):
    done = merge_again(root)

    check_merged(root)
    assert done.commit == git(root, "rev-parse", "HEAD")
    assert git(root, "log", "-1", "--format=%s") == "Merge WFS-trial a: try it"
    assert git(root, "log", "-1", "--format=%s", "HEAD^2") == "WFS-trial a: try it"
    assert git(root, "log", "-1", "--format=%an") == "Ada"
    assert status(tree) == ""


def test_merging_twice_is_merging_once(root):
    merge_again(root)
    again = merge_again(root)

    assert again.commit is None
    check_merged(root)


def test_what_comes_after_a_merge_is_merged_by_the_next(root, tree):
    merge_again(root)
    write(tree, more__txt="more\n")
    merge_again(root)

    assert (root / "more.txt").exists()
    check_merged(root, merges=2)


def test_it_merges_into_whatever_is_checked_out(root):
    git(root, "checkout", "--quiet", "--detach")
    merge_again(root)

    check_merged(root)
    assert git(root, "log", "-1", "--format=%s").startswith("Merge ")
    assert git(root, "log", "-1", "--format=%s", "main") == "change"


def test_what_is_merged_is_what_is_checked_out_in_the_worktree(root, tree):
    git(tree, "checkout", "--quiet", "-b", "the-agents-idea")

    merge_again(root)

    check_merged(root)


def test_the_settings_of_the_person_do_not_make_something_else_of_the_merge(root):
    for name, value in {"merge.ff": "only", "merge.autostash": "true", "branch.main.mergeOptions": "--squash"}.items():
        git(root, "config", name, value)
    write(root, keep__txt="by hand\n")
    merge_again(root)

    assert status(root) == "M keep.txt"
    assert len(git(root, "log", "-1", "--format=%P").split()) == 2


def test_a_git_environment_of_another_repository_is_not_listened_to(root, tmp_path, monkeypatch):
    """As when a hook of git started all this."""
    other = repository(tmp_path / "other")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    merge_again(root)
    monkeypatch.undo()

    check_merged(root)
    assert status(other) == ""


# Interrupted


def test_killed_while_the_worktree_is_committed(root, tree, tmp_path):
    blocking = hook(root, "pre-commit", f"touch '{tmp_path}/reached'\nexec sleep 60")
    child = start_merge(root)
    wait_until((tmp_path / "reached").exists)
    kill(child, root)
    blocking.unlink()

    merge_again(root)
    check_merged(root)


@pytest.mark.parametrize("name", ["pre-merge-commit", "commit-msg"])
def test_killed_with_git_when_only_the_commit_was_missing(root, tree, tmp_path, name):
    """Before git had noted that it is merging, and after."""
    commit(tree)
    blocking = hook(root, name, f"touch '{tmp_path}/reached'\nexec sleep 60")
    child = start_merge(root)
    wait_until((tmp_path / "reached").exists)
    kill(child, root)
    blocking.unlink()
    assert (root / "a_new.txt").exists()
    assert (root / ".git/MERGE_HEAD").exists() == (name == "commit-msg")
    write(root, keep__txt="by hand, meanwhile\n")

    merge_again(root)

    assert status(root) == "M keep.txt"
    git(root, "checkout", "--quiet", "keep.txt")
    check_merged(root)


def test_killed_without_git_which_goes_on_and_is_waited_for(root, tmp_path):
    hook(root, "pre-merge-commit", f"touch '{tmp_path}/reached'\nsleep 1")
    child = start_merge(root)
    wait_until((tmp_path / "reached").exists)
    child.kill()
    child.wait()

    again = merge_again(root)

    assert again.commit is None
    check_merged(root)


@pytest.fixture
def halfway(root, tree, tmp_path):
    """Killed with git while it put files in place: some are there, one is half there, the index is locked."""
    git(root, "config", "filter.slow.smudge", f"touch '{tmp_path}/reached'; sleep 60; cat")
    write(tree, **{".gitattributes": "z.txt filter=slow\n"}, z__txt="last\n")
    child = start_merge(root)
    wait_until((tmp_path / "reached").exists)
    kill(child, root)
    git(root, "config", "--unset", "filter.slow.smudge")
    assert (root / "a_new.txt").exists()
    assert git(root, "rev-parse", "MERGE_HEAD", check=False) == "MERGE_HEAD"
    make_stale(root)
    return root


def test_killed_with_git_while_files_were_put_in_place(halfway):
    merge_again(halfway)

    check_merged(halfway)
    assert (halfway / "z.txt").read_text() == "last\n"


def test_what_somebody_wrote_meanwhile_is_not_taken_for_a_half_written_file(halfway):
    write(halfway, a_new__txt="by hand, meanwhile\n", code__py="mine\n")

    with pytest.raises(GateClosed, match="changes that are not committed"):
        merge_again(halfway)
    assert (halfway / "a_new.txt").read_text() == "by hand, meanwhile\n"
    assert (halfway / "code.py").read_text() == "mine\n"
    assert not any(line.startswith("Merge ") for line in log(halfway))


def test_killed_anywhere_it_is_merged_in_the_end(root):
    """At moments spread over the whole of it, one after the other, until one gets through."""
    chance = random.Random(7)
    whole_s = 1.2
    for number in range(12):
        child = start_merge(root)
        time.sleep(whole_s * (number + chance.random()) / 14)
        kill(child, root)
        for lock in [root / ".git/index.lock", *root.glob(".git/worktrees/*/index.lock")]:
            if lock.exists():
                os.utime(lock, (time.time() - 60, time.time() - 60))
                note = root / ".workflow/worktrees/.merging.json"
                if note.exists():
                    os.utime(note, (time.time() - 60, time.time() - 60))
    merge_again(root)

    check_merged(root)


def test_a_lock_that_a_killed_agent_left_in_the_worktree_holds_nothing_up(root, tree):
    lock = root / ".git/worktrees" / tree.name / "index.lock"
    lock.touch()
    os.utime(lock, (time.time() - 60, time.time() - 60))

    merge_again(root)
    check_merged(root)


def test_a_lock_in_the_project_is_somebodys_and_is_named(root, monkeypatch):
    monkeypatch.setattr(git_module, "BUSY_S", 0.3)
    (root / ".git/index.lock").touch()
    os.utime(root / ".git/index.lock", (time.time() - 60, time.time() - 60))

    with pytest.raises(Conflict, match=r"index\.lock exists"):
        merge_again(root)
    assert (root / ".git/index.lock").exists()
