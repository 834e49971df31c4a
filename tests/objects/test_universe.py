"""Which files belong to a project's universe: the same for every caller."""

import os
import shutil
import subprocess

import pytest

from detent.config.settings import CheckpointSettings
from detent.objects.git_index import tracked
from detent.objects.universe import Request, Scope, Universe

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not there")


def write(base, *names):
    for name in names:
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)


def git(base, *arguments):
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *arguments], cwd=base, check=True)


def files(base, cache, named=(), **scope):
    look = Universe(str(cache), Scope(str(base), **scope)).look(Request(named=frozenset(named)))
    return {path for path in look.rows if look.has(path)}


@pytest.fixture
def base(tmp_path):
    directory = tmp_path / "tree"
    directory.mkdir()
    return directory


def test_what_the_settings_exclude_is_in_only_for_a_look_that_names_it(base, tmp_path):
    write(base, "a.py", "node_modules/x/y.js", "web/node_modules/z.js", "__pycache__/a.pyc")
    exclude = CheckpointSettings().exclude
    assert files(base, tmp_path / "1", exclude=exclude) == {"a.py"}
    assert files(base, tmp_path / "1", exclude=exclude, named=["web"]) == {"a.py", "web/node_modules/z.js"}
    assert files(base, tmp_path / "1", exclude=exclude) == {"a.py"}


@needs_git
@pytest.mark.parametrize("version", ["2", "4"])
def test_a_file_that_git_tracks_is_in_although_it_is_ignored(base, tmp_path, version):
    git(base, "init", "-q")
    git(base, "config", "index.version", version)
    write(base, "lib/kept.py", "lib/deep/kept.py", "lib/loose.py", "node_modules/kept.js", "x.log", "y.log", "é.log")
    write(base, "pkg/lib/kept.py", "pkg/lib/loose.py")
    (base / ".gitignore").write_text("lib/\n*.log\n")
    git(
        base,
        "add",
        "-f",
        "lib/kept.py",
        "lib/deep/kept.py",
        "node_modules/kept.js",
        "x.log",
        "é.log",
        "pkg/lib/kept.py",
    )

    expected = {
        "pkg/lib/kept.py",
        ".gitignore",
        "lib/kept.py",
        "lib/deep/kept.py",
        "node_modules/kept.js",
        "x.log",
        "é.log",
    }
    assert files(base, tmp_path / "1") == expected
    git(base, "rm", "-q", "--cached", "x.log")
    assert files(base, tmp_path / "1") == expected - {"x.log"}
    assert files(base / "pkg", tmp_path / "2") == {"lib/kept.py"}
    assert "x.log" in files(base, tmp_path / "1", named=["x.log"])
    assert files(base, tmp_path / "3", exclude=("/lib/",)) == {
        path for path in expected - {"x.log"} if not path.startswith("lib/")
    }


@needs_git
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_the_index_is_read_as_git_lists_it(base, version):
    git(base, "init", "-q")
    git(base, "config", "index.version", version)
    names = [f"{'d' * (number % 11)}/{'n' * number}/f{number}" for number in range(1, 40)] + ["z" * 200, "a", "ab c"]
    write(base, *names, *(f"{'long/' * 60}{number}" for number in range(5)))
    git(base, "add", "-A")
    if version == "3":
        write(base, "intended")
        git(base, "add", "-N", "intended")

    listed = subprocess.run(["git", "ls-files", "-z"], cwd=base, capture_output=True, check=True).stdout
    index = tracked(str(base))
    assert index.files == set(filter(None, listed.split(b"\0")))
    assert index.directories == {
        name[:at] for name in index.files for at in range(len(name)) if name[at : at + 1] == b"/"
    }


@needs_git
def test_the_index_of_a_worktree_is_its_own(base, tmp_path):
    git(base, "init", "-q")
    write(base, "a")
    git(base, "add", "a")
    git(base, "commit", "-qm", "a")
    git(base, "worktree", "add", "-q", str(tmp_path / "other"))
    write(tmp_path / "other", "b")
    git(tmp_path / "other", "add", "b")
    assert tracked(str(tmp_path / "other")).files == {b"a", b"b"}


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\2\0\0\0\5short", os.urandom(300)])
def test_an_index_that_cannot_be_read_tracks_nothing(base, data):
    (base / ".git").mkdir()
    (base / ".git/index").write_bytes(data)
    assert tracked(str(base)).files <= {b""}


def test_a_repository_inside_the_tree_is_a_directory_like_any_other(base, tmp_path):
    write(base, "inner/.git/config", "inner/code.py", "code.py")
    assert files(base, tmp_path / "1") == {"code.py", "inner/code.py"}
