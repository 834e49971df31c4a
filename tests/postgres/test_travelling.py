"""A machine compares, shows and restores the checkpoints that another machine took, from the shared place."""

import os
import stat
import subprocess

import pytest

from detent.doctor.invariants import check
from detent.engine.project import open_project
from tests.support.command import Tool
from tests.support.project import write
from tests.support.values import row

SETTINGS = 'gates = "off"\n[files]\n'
ODD = "odd \udcff\n\\name"


@pytest.fixture(params=["git", "url"])
def place(request, tmp_path):
    """The settings of a place that both machines reach."""
    if request.param == "url":
        pytest.importorskip("fsspec")
        return f'{SETTINGS}url = "file://{tmp_path}/shared"\n'
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    return f'{SETTINGS}remote = "{tmp_path}/remote.git"\n'


def fill(root):
    """Files of every kind, and those that git would not keep."""
    write(root, "plain.txt", "one\n")
    write(root, "empty", "")
    write(root, ODD, b"\x00\xff binary")
    write(root, "sub/dir/deep.txt", "deep\n")
    os.chmod(write(root, "run.sh", "#!/bin/sh\n"), 0o755)
    os.chmod(write(root, "private", "mine\n"), 0o600)
    (root / "link").symlink_to("sub/dir/deep.txt")
    (root / "dangling").symlink_to("nowhere at all")
    write(root, "large.bin", os.urandom(3 * 1024 * 1024))


def tree(root):
    """Every file with its kind, mode and content."""
    found: dict[bytes, tuple[int | str, bytes]] = {}
    for directory, names, files in os.walk(os.fsencode(root)):
        names[:] = [name for name in names if name not in (b".workflow", b".git")]
        for name in (*files, *(each for each in names if os.path.islink(os.path.join(directory, each)))):
            path = os.path.join(directory, name)
            inside = os.path.relpath(path, os.fsencode(root))
            if inside == b"detent.toml":
                continue
            if os.path.islink(path):
                found[inside] = ("link", os.readlink(path))
            else:
                with open(path, "rb") as file:
                    found[inside] = (stat.S_IMODE(os.stat(path).st_mode), file.read())
    return found


def worked(there):
    """A session on one machine whose first phase changes files; the files before and after it."""
    fill(there)
    with open_project(there, actor="bob") as project:
        handle = project.start(row("a", "b"), "try it")
        before = tree(there)
        write(there, "plain.txt", "two\n")
        os.chmod(there / "run.sh", 0o644)
        (there / "link").unlink()
        (there / "link").symlink_to("plain.txt")
        os.unlink(os.fsencode(there / ODD))
        write(there, "new.txt", "new\n")
        handle.finish("done", artifacts=["new.txt"])
        after = tree(there)
    return before, after


def test_a_checkpoint_of_another_machine_is_restored_byte_for_byte(machines, place):
    here, there = machines(2, settings=place)
    before, after = worked(there)
    write(here, "plain.txt", "something else\n")

    with open_project(here, actor="ada") as project:
        handle = project.session()
        rolled = handle.checkpoints.rollback("POST_a_v1")
        assert tree(here) == after
        handle.checkpoints.rollback("PRE_a_v1")
        assert tree(here) == before
        assert check(project) == []
    assert rolled.session.id == "WFS-try-it"
    # It is on this machine now: the shared place is not asked again.
    with open_project(here, actor="ada") as project:
        project.checkpoints.travel = None
        project.session().checkpoints.rollback("POST_a_v1", remove_unknown=True)
        assert tree(here) == after


def test_checkpoints_of_another_machine_are_shown_and_compared(machines, place, nobody):
    here, there = machines(2, settings=place)
    worked(there)
    tool = Tool(here)

    shown = tool("checkpoint", "show", "POST_a_v1", "--files", "--json").ok().json()
    compared = tool("diff", "PRE_a_v1", "POST_a_v1").ok().out
    present = tool("diff", "POST_a_v1", "now", "--json").ok().json()

    assert "new.txt" in {file["path"] for file in shown["files"]}
    assert "-one" in compared
    assert "+two" in compared
    assert "run.sh: was an executable file, is a file" in compared
    assert "new.txt" in present["diffs"]
    # Only what is shown was brought here.
    with open_project(here, actor="ada") as project:
        assert not any(project.checkpoints.objects.size(each) == 3 * 1024 * 1024 for each in stored(project))


def stored(project):
    return list(project.checkpoints.objects.digests())


def test_a_rollback_of_another_machine_is_undone_here(machines, place):
    here, there = machines(2, settings=place)
    before, _ = worked(there)
    write(there, "plain.txt", "in no checkpoint yet\n")
    after = tree(there)
    with open_project(there, actor="bob") as project:
        project.session().checkpoints.rollback("PRE_a_v1")
    assert tree(there) == before

    with open_project(here, actor="ada") as project:
        project.session().checkpoints.undo()
        assert tree(here) == after
        project.checkpoints.collect(dry_run=False)


def test_without_a_shared_place_it_is_said_how_to_get_the_files(machines, nobody):
    here, there = machines(2)
    worked(there)
    tool = Tool(here)

    for words in (["diff", "PRE_a_v1", "POST_a_v1"], ["checkpoint", "show", "PRE_a_v1"]):
        code, message, way_out = tool(*words).error()
        assert code == 1
        assert "another machine took this checkpoint" in message
        assert "[files]" in way_out
    with open_project(here, actor="ada") as project:
        # Objects of other machines are no reason to keep garbage, or to fail.
        project.checkpoints.collect(dry_run=False)
        assert {found.severity for found in check(project)} == {"warning"}
