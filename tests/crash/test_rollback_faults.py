"""Damaged objects, a failing disk, files that change meanwhile: it is said what is wrong, and nothing has changed."""

import errno
import os
import shutil
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path

import pytest

from detent.doctor.invariants import check
from detent.engine.project import Project
from detent.errors import Conflict, Corrupt, DetentError, Invalid, StoreFailed
from detent.objects import restore
from tests.support import faults
from tests.support.campaign import struck_calls
from tests.support.faults import Counter, failing, watching
from tests.support.privilege import without_privilege
from tests.support.project import build_project
from tests.support.rollback_scenarios import (
    LEFTOVERS,
    SCENARIOS,
    Scenario,
    copy_of,
    prepare,
    put,
    quick_tree,
    tree_of,
    world,
)
from tests.support.scenarios import reopen
from tests.support.values import row

pytestmark = pytest.mark.usefixtures("watch_everything", "small_large_files")
#: Every one may fail on a broken disk; on a full one those that need room.
WRITING = ("write", "open", "mkdir", "symlink", "fdatasync", "fsync")
FAULTS = {
    "an error once": (errno.EIO, False, "the disk reported an error"),
    "errors from then on": (errno.EIO, True, "the disk reported an error"),
    "full from then on": (errno.ENOSPC, True, "the disk is full"),
}
ARTIFACTS = ".workflow/checkpoints/artifacts"
ROLLBACKS = [scenario for scenario in SCENARIOS if scenario.name not in ("a checkpoint", "finish")]


@pytest.fixture
def place(quick_path):
    """Where a rollback to PRE_a_v1 would change everything that can be changed."""
    return prepare(SCENARIOS[0], quick_path / "place")


def refused(directory: Path, error: type[DetentError], *, match: str, to: str = "PRE_a_v1", **settings) -> DetentError:
    """The rollback raises, and neither the tree nor the journal nor anything that would go on later has changed."""
    before = world(directory)
    with reopen(directory, late=True) as project:
        with pytest.raises(error, match=match) as raised:
            project.session().checkpoints.rollback(to, **{"remove_unknown": True, **settings})
        assert raised.value.way_out or isinstance(raised.value, Invalid)
    assert world(directory) == before
    assert [name for name in LEFTOVERS if (directory / ".workflow/checkpoints" / name).exists()] == []
    with reopen(directory, late=True) as project:
        project.reconcile()
        project.flush()
    assert world(directory) == before
    return raised.value


def entry_of(directory: Path, path: str, checkpoint: str = "PRE_a_v1"):
    with reopen(directory) as project:
        position = project.checkpoints.find("WFS-try-it", checkpoint)
        return project.checkpoints.files(position.event.tree.manifest)[path]


def flip(path: Path, content: bytes) -> None:
    """Change one byte in the middle of where `content` is."""
    data = path.read_bytes()
    at = data.index(content) + len(content) // 2
    path.chmod(0o644)
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


# Objects


def test_a_changed_byte_in_a_pack_names_the_object_and_changes_nothing(place):
    digest = entry_of(place, "removed later").digest
    flip(place / ARTIFACTS / "objects-000001.pack", b"gone in the second tree")

    refused(place, Corrupt, match=digest)

    with reopen(place) as project:
        assert any(finding.subject == digest for finding in check(project))


def test_a_changed_byte_in_a_plain_file_names_the_object_and_changes_nothing(place):
    digest = entry_of(place, "large").digest
    [plain] = (place / ARTIFACTS).glob(f"*/{digest}/large")
    flip(plain, plain.read_bytes())

    refused(place, Corrupt, match=digest)


def test_a_plain_file_that_is_gone_names_the_object_and_changes_nothing(place):
    digest = entry_of(place, "large").digest
    [plain] = (place / ARTIFACTS).glob(f"*/{digest}/large")
    plain.unlink()

    refused(place, Corrupt, match=digest)


def test_what_does_not_need_the_damaged_object_can_still_be_restored(place):
    flip(place / ARTIFACTS / "objects-000001.pack", b"gone in the second tree")

    with reopen(place, late=True) as project:
        project.session().checkpoints.rollback("PRE_a_v1", paths=["modified", "swapped"], remove_unknown=True)

    assert tree_of(place)["modified"] == ("file", b"one")
    assert tree_of(place)["swapped"] == ("file", b"a file that becomes a directory")


def test_a_missing_pack_names_the_manifest_and_changes_nothing(place):
    with reopen(place) as project:
        manifest = project.checkpoints.find("WFS-try-it", "PRE_a_v1").event.tree.manifest
    (place / ARTIFACTS / "objects-000001.pack").unlink()

    refused(place, Corrupt, match=manifest)


def test_a_damaged_manifest_is_named_and_changes_nothing(place):
    with reopen(place) as project:
        manifest = project.checkpoints.find("WFS-try-it", "PRE_a_v1").event.tree.manifest
        content = project.checkpoints.objects.read(manifest)
    flip(place / ARTIFACTS / "objects-000001.pack", content)

    refused(place, Corrupt, match=manifest)


def test_an_object_that_is_lost_after_a_kill_makes_the_rollback_go_back(place):
    """The intent is there, a part is restored, and what is missing cannot be got any more."""
    before = world(place)
    digest = entry_of(place, "removed later").digest

    moved = []

    def killed_at_the_second_rename(name, args):
        """The first one took a file out of the tree."""
        if name == "rename":
            moved.append(args)
        if len(moved) == 2:
            faults.die(name, args)

    def work(_said):
        with reopen(place) as project:
            project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    status, _ = faults.in_child(work, Counter(killed_at_the_second_rename, 1, lasting=True))
    assert status < 0
    assert tree_of(place) != before.tree
    flip(place / ARTIFACTS / "objects-000001.pack", b"gone in the second tree")

    with reopen(place, late=True) as project:
        project.reconcile()
        project.flush()
        assert any("was undone" in notice and digest in notice for notice in project.notices)
    assert world(place) == before


# The disk


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("scenario", ROLLBACKS, ids=str)
def test_a_disk_that_fails_at_any_call_leaves_everything_or_the_rollback_was_made(scenario, fault, quick_path, capsys):
    error, lasting, reason = FAULTS[fault]
    only = WRITING if error == errno.ENOSPC else faults.WATCHED
    template = prepare(scenario, quick_path / "template")
    before = world(template)
    whole = copy_of(template, quick_path / "whole")
    with reopen(whole) as project:
        scenario.act(project)
    after = world(whole)

    for number in struck_calls():
        place = copy_of(template, quick_path / "struck")
        with reopen(place) as project:
            counter = Counter(failing(error, only), number, lasting=lasting)
            raised = strike(project, scenario, counter)
            where = f"call {number} ({counter.calls[-1]}), {raised}"
            project.flush()
            project.reconcile()
            project.flush()
            found = world(place)
            assert found in (before, after), where
            # A disk on which nothing works any more cannot take back what it has of a commit either.
            assert found == before or "act" not in raised or lasting, f"{where}: it was made, and an error was told"
            assert found == after or "act" in raised, f"{where}: it was not made, and nothing was told"
            assert all(reason in told.message and told.way_out for told in raised.values()), where
            assert [one for one in check(project) if "unfinished write" not in one.message] == [], where
        assert not (place / ".workflow/checkpoints/rollback.json").exists(), where
        if len(counter.calls) < number:
            break

    with capsys.disabled():
        sys.stdout.write(f"\n  {scenario}, {fault}: {number - 1} calls ")
    assert number > scenario.least


def test_what_a_restore_left_behind_is_in_nobodys_way(place, quick_path):
    for number in range(30):
        put(place, f".workflow/checkpoints/restoring/{number}", b"left behind")

    with reopen(place, late=True) as project:
        project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    expected = quick_tree(quick_path)
    assert {path: tree_of(place).get(path) for path in expected} == expected
    assert not (place / ".workflow/checkpoints/restoring").exists()


def strike(project: Project, scenario: Scenario, counter: Counter) -> dict[str, StoreFailed]:
    """What the command and the writing of documents after it raised; anything but `StoreFailed` is a bug."""
    raised = {}
    with watching(counter):
        for name, work in (("act", lambda: scenario.act(project)), ("flush", project.flush)):
            try:
                work()
            except StoreFailed as failure:
                raised[name] = failure
    return raised


def test_after_one_error_nothing_is_left_for_the_next_command_to_mend(quick_path):
    """What could be taken back at once was: the tree is right before anybody settles anything."""
    template = prepare(SCENARIOS[0], quick_path / "template")
    before = tree_of(template)
    failed = 0

    for number in count(1):
        place = copy_of(template, quick_path / "struck")
        with reopen(place, late=True) as project:
            counter = Counter(failing(errno.EIO), number)
            raised = strike(project, SCENARIOS[0], counter)
            if "act" in raised:
                failed += 1
                assert tree_of(place) == before, f"call {number} ({counter.calls[-1]})"
                assert project.rollbacks.pending() is None, f"call {number} ({counter.calls[-1]})"
        if len(counter.calls) < number:
            break

    assert failed > 30


@pytest.fixture
def small_disk(tmp_path):
    disk_path = tmp_path / "disk"
    disk_path.mkdir()
    if os.getuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "t", disk_path], check=False).returncode:
        pytest.skip("mounting is not allowed here")
    yield disk_path
    subprocess.run(["umount", disk_path], check=True)


def test_a_disk_that_is_really_full_changes_nothing(small_disk):
    build_project(small_disk)
    put(small_disk, "one", b"1" * 400_000)
    put(small_disk, "two", b"2" * 400_000)
    with reopen(small_disk) as project:
        project.start(row("a", "b"), "try it")
        put(small_disk, "one", b"short")
        (small_disk / "two").unlink()
        project.session().finish("a is done")
    free = os.statvfs(small_disk)
    (small_disk / "filler").write_bytes(b"x" * (free.f_bavail * free.f_bsize - 500_000))
    (small_disk / ".gitignore").write_text("filler\n")

    refused(small_disk, StoreFailed, match="the disk is full")

    (small_disk / "filler").unlink()
    with reopen(small_disk, late=True) as project:
        project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        project.flush()
        assert check(project) == []
    assert (small_disk / "one").read_bytes() == b"1" * 400_000


# Files that change meanwhile


def meddle(monkeypatch, directory, number, edit):
    """Do `edit` right before the rename number `number`, each of which puts a file of the tree into its place."""
    rename, calls = os.rename, []

    def renamed(source, target, **settings):
        calls.append(target)
        if len(calls) == number:
            edit()
        rename(source, target, **settings)

    monkeypatch.setattr(os, "rename", renamed)
    return calls


EDITS = {
    "edited": ("swapped/deep/z", b"a person wrote this"),
    "vanished, to be removed": ("added/new", None),
    "edited, to be modified": ("modified", b"a person wrote this"),
    "vanished, to be modified": ("modified", None),
    "appeared": ("removed later", b"a person wrote this"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_file_that_changes_between_plan_and_restore_is_named_and_left_alone(edit, place, monkeypatch):
    path, content = EDITS[edit]
    before = world(place)

    def change():
        if content is None:
            (place / path).unlink()
        else:
            put(place, path, content)

    original = restore.Restore._stage

    def staged(self, steps, contents):
        monkeypatch.setattr(restore.Restore, "_stage", original)
        found = original(self, steps, contents)
        change()
        return found

    monkeypatch.setattr(restore.Restore, "_stage", staged)
    with reopen(place, late=True) as project, pytest.raises(Conflict, match=path):
        project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    expected = {name: file for name, file in before.tree.items() if name != path}
    if content is not None:
        expected[path] = ("file", content)
    assert tree_of(place) == expected
    assert world(place).standing == before.standing
    with reopen(place, late=True) as project:
        assert check(project) == []


def test_a_file_that_changes_at_any_moment_of_the_restore_keeps_what_was_written(quick_path, monkeypatch):
    template = prepare(SCENARIOS[0], quick_path / "template")
    before = world(template)
    conflicts = 0

    for number in count(1):
        place = copy_of(template, quick_path / "struck")
        with monkeypatch.context() as patch, reopen(place, late=True) as project:
            # Restored last of all: it sorts behind the others.
            calls = meddle(patch, place, number, lambda place=place: put(place, "removed later", b"a person's"))
            with suppress(Conflict):
                project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)
            found = world(place)
            if found.standing == before.standing:
                conflicts += 1
                assert found.tree == {**before.tree, "removed later": ("file", b"a person's")}
        if len(calls) < number:
            break

    assert conflicts >= 3


# Files that are in the way or out of reach


def test_an_unrecorded_file_where_a_directory_belongs_is_named_and_stays(place):
    put(place, "fresh/inner/x", b"recorded")
    (place / ".gitignore").write_text("/fresh\n!/fresh/\n")
    with reopen(place) as project:
        project.session().begin("b")
        (place / "fresh/inner/x").unlink()
        (place / "fresh/inner").rmdir()
        (place / "fresh").rmdir()
        project.session().finish("b is done")
        project.session("WFS-try-it").checkpoints.rollback("POST_a_v1", phase_only=True)
    (place / "fresh").write_text("never in any checkpoint")

    refused(place, Invalid, match="fresh is in the place of the directory of fresh/inner/x", to="PRE_b_v1")


def test_an_unrecorded_file_inside_of_what_becomes_a_file_is_named_and_stays(place):
    (place / "swapped/mine").write_text("never in any checkpoint")

    refused(place, Invalid, match="swapped/mine is in the place of swapped")


def test_a_link_in_place_of_a_directory_is_never_followed(place, quick_path):
    outside = quick_path / "outside"
    put(outside, "inner/x", b"not ours")
    put(outside, "y", b"beside it")
    (place / "directory").unlink()
    (place / "directory").symlink_to(outside)

    with reopen(place, late=True) as project:
        project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert tree_of(outside) == {"inner/x": ("file", b"not ours"), "y": ("file", b"beside it")}
    expected = quick_tree(quick_path)
    assert {path: tree_of(place).get(path) for path in expected} == expected


@pytest.mark.parametrize("path", ["swapped", "swapped/deep"])
def test_an_unrecorded_link_above_a_file_is_named_and_nothing_outside_changes(path, place, quick_path):
    outside = quick_path / "outside"
    put(outside, "z", b"not ours")
    put(outside, "deep/z", b"not ours")
    with reopen(place) as project:
        project.session().begin("b")
    shutil.rmtree(place / path)
    (place / path).symlink_to(outside)

    refused(place, Invalid, match=f"{path} is in the place of", to="POST_a_v1")
    assert set(tree_of(outside).values()) == {("file", b"not ours")}


SCRIPT = """
import sys
from pathlib import Path
from detent.errors import DetentError
from tests.support.scenarios import reopen

with reopen(Path(sys.argv[1]), late=True) as project:
    try:
        project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    except DetentError as error:
        print(error.message)
        sys.exit(3)
"""


@pytest.mark.parametrize(("path", "mode"), [("modified", 0), ("large", 0), ("swapped/deep", 0o600), ("added", 0o100)])
def test_a_file_that_may_not_be_read_is_named_and_nothing_changes(path, mode, place):
    before = world(place)
    kept = (place / path).stat().st_mode
    (place / path).chmod(mode)

    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, place],
        preexec_fn=without_privilege,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    (place / path).chmod(kept)
    assert (ran.returncode, ran.stderr) == (3, "")
    assert path in ran.stdout
    assert world(place) == before
    with reopen(place, late=True) as project:
        project.reconcile()
        project.flush()
        assert check(project) == []
    assert world(place) == before
