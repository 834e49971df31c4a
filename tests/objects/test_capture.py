"""Taking the files of a tree: what is read, what is trusted, what is left out."""

import os
import subprocess
import sys
import time

import pytest

from detent.objects import stat_cache
from detent.objects import universe as universes
from detent.objects.capture import Captures
from detent.objects.pack import Objects
from detent.objects.universe import Scope, Universe
from tests.support.privilege import without_privilege

MIB = 1 << 20


@pytest.fixture
def base(tmp_path):
    directory = tmp_path / "tree"
    directory.mkdir()
    return directory


@pytest.fixture
def take(base, tmp_path):
    """A capture as a new process would take it, with what earlier ones left on the disk."""

    def taken(*, declared=(), also=(), store=True, **scope):
        root = str(tmp_path / "checkpoints")
        objects = Objects(os.path.join(root, "artifacts"))
        universe = Universe(root, Scope(base=str(base), **scope))
        captures = Captures(universe, objects)
        captured = captures.take("owner", declared=declared, also=also, store=store)
        universe.save()
        if store:
            for entry in captured.files.values():
                objects.check(entry.digest)
            assert captures.manifests.read(captured.tree.manifest).files == captured.files
        objects.close()
        return captured

    return taken


def read_by(monkeypatch):
    """The paths that are read, as they are."""
    seen, read = [], universes._content
    monkeypatch.setattr(universes, "_content", lambda path, *rest: seen.append(path) or read(path, *rest))
    return seen


def test_files_links_and_modes_are_told_apart(base, take):
    (base / "file").write_text("x")
    (base / "script").write_text("x")
    (base / "script").chmod(0o755)
    (base / "link").symlink_to("file")
    (base / "to directory").symlink_to(".")
    (base / "dangling").symlink_to(b"\xff".decode("utf-8", "surrogateescape"))

    files = take().files

    assert {path: (entry.kind, entry.size) for path, entry in files.items()} == {
        "file": ("f", 1),
        "script": ("x", 1),
        "link": ("l", 4),
        "to directory": ("l", 1),
        "dangling": ("l", 1),
    }
    assert files["file"].digest == files["script"].digest


@pytest.mark.parametrize("name", [b"a b", b"new\nline", b"-dash", b"caf\xe9", "ünï".encode(), b"\\xe9", b"back\\slash"])
def test_names_of_any_bytes_are_taken_and_known_the_next_time(base, take, name, monkeypatch):
    path = os.fsdecode(name)
    (base / path).write_text("x")
    monkeypatch.setattr(stat_cache, "RACE_NS", 0)
    time.sleep(0.02)
    first = take()
    seen = read_by(monkeypatch)

    again = take()

    assert set(first.files) == {path}
    assert again == first
    assert seen == []


def test_a_file_that_looks_the_same_is_not_read_again(base, take, monkeypatch):
    (base / "x").write_text("x")
    time.sleep(stat_cache.RACE_NS / 1e9 + 0.02)
    take()
    seen = read_by(monkeypatch)

    assert take().files["x"].size == 1
    assert seen == []
    (base / "x").chmod(0o755)
    assert take().files["x"].kind == "x"
    assert len(seen) == 1


def test_a_file_that_was_changed_shortly_before_is_read_again(base, take, monkeypatch):
    (base / "x").write_text("one")
    take()
    seen = read_by(monkeypatch)

    take()

    assert len(seen) == 1


@pytest.mark.parametrize("wait", [0, stat_cache.RACE_NS / 1e9 + 0.02])
def test_a_change_that_keeps_size_and_time_is_noticed(base, take, wait):
    (base / "x").write_text("one")
    time.sleep(wait)
    status = (base / "x").stat()
    before = take()
    with (base / "x").open("r+") as file:
        file.write("two")
    os.utime(base / "x", ns=(status.st_atime_ns, status.st_mtime_ns))

    after = take()

    assert before.files["x"].digest != after.files["x"].digest


def test_without_the_cache_or_with_a_damaged_one_the_capture_is_the_same(base, take, tmp_path):
    for number in range(20):
        (base / str(number)).write_text(str(number))
    first = take()
    cache = tmp_path / "checkpoints/.stat-cache"
    for damage in (cache.unlink, lambda: cache.write_bytes(b"\xff\x00"), lambda: cache.write_bytes(b"")):
        damage()
        assert take().files == first.files


@pytest.mark.parametrize("in_its_place", ["nothing", "directory", "pipe", "link"])
def test_the_capture_after_the_loss_of_a_segment_is_whole(base, take, tmp_path, in_its_place):
    (base / "x").write_text("x")
    take()
    segment = tmp_path / "checkpoints/artifacts/objects-000001.pack"
    segment.unlink()
    put = {"directory": segment.mkdir, "pipe": lambda: os.mkfifo(segment), "link": lambda: segment.symlink_to("none")}
    put.get(in_its_place, bool)()
    (base / "y").write_text("y")

    assert take().files.keys() == {"x", "y"}


def test_only_looking_stores_nothing_and_finds_the_same(base, take, tmp_path):
    (base / "x").write_text("x")
    (base / "large").write_bytes(b"0" * (MIB + 1))

    looked = take(store=False)

    assert not (tmp_path / "checkpoints").exists()
    assert take()[:3] == looked[:3]


def test_manifests_that_rest_on_each_other_stay_readable(base, take):
    for number in range(50):
        (base / f"file {number}").write_text(str(number))
    pictures = []
    for number in range(80):
        path = base / f"file {number % 50}"
        path.unlink() if number % 7 == 3 and path.exists() else path.write_text(f"change {number}")
        pictures.append((take(), {path.name: path.read_bytes() for path in base.iterdir()}))

    objects = Objects(str(base.parent / "checkpoints/artifacts"))
    captures = Captures(Universe(str(base.parent / "checkpoints"), Scope(base=str(base))), objects)
    for captured, tree in pictures:
        files = captures.manifests.read(captured.tree.manifest).files
        assert {path: objects.read(entry.digest) for path, entry in files.items()} == tree


def test_what_is_left_out_is_named_with_the_reason(base, take):
    (base / "big").write_bytes(b"0" * 11)
    os.mkfifo(base / "pipe")
    os.mkfifo(os.fsencode(base) + b"/\xff")

    captured = take(max_bytes=10)

    assert captured.left_out == {
        "big": "larger than 10 bytes",
        "pipe": "neither a file nor a link",
        "\udcff": "neither a file nor a link",
    }
    assert captured.tree.left_out == 3
    assert "big" in take(max_bytes=10, also=["big"]).files


def test_a_link_above_a_named_path_is_not_followed(base, take):
    (base / "real").mkdir()
    (base / "real/x").write_text("x")
    (base / "link").symlink_to("real")

    captured = take(also=["link/x"], declared=["link/y", "link/x"])

    assert set(captured.files) == {"real/x", "link"}


@pytest.mark.parametrize("named", ["sub", "sub/x", ".", "nothing"])
def test_a_file_that_is_gone_is_noticed_whatever_else_is_named(base, take, named):
    """A path that a checkpoint has as a file may be a directory by now, whose files are met anyway."""
    (base / "sub").mkdir()
    (base / "sub/x").write_text("x")
    (base / "a.txt").write_text("a")
    time.sleep(stat_cache.RACE_NS / 1e9 + 0.02)
    take()
    (base / "a.txt").unlink()

    assert set(take(also=[named], store=False).files) == {"sub/x"}
    assert set(take(also=[named]).files) == {"sub/x"}
    assert set(take().files) == {"sub/x"}


def test_the_directories_that_are_never_taken_are_not_even_if_named(base, take):
    for name in (".git/config", ".workflow/state.json", "sub/.git/config"):
        (base / name).parent.mkdir(parents=True)
        (base / name).write_text("x")

    assert take(declared=[".git/config", ".workflow/state.json"], also=["sub/.git/config", ".workflow"]).files == {}


TAKING = """
import json, sys
from detent.objects.capture import Captures
from detent.objects.pack import Objects
from detent.objects.universe import Scope, Universe
captures = Captures(Universe(sys.argv[2], Scope(base=sys.argv[1])), Objects(sys.argv[2] + "/artifacts"))
captured = captures.take("owner")
print(json.dumps([sorted(captured.files), captured.left_out]))
"""


def test_what_may_not_be_read_is_left_out_large_or_small(base, tmp_path):
    (base / "small").write_text("x")
    (base / "large").write_bytes(b"0" * (MIB + 1))
    (base / "closed").mkdir()
    (base / "closed/x").write_text("x")
    (base / "fine").write_text("x")
    for name in ("small", "large", "closed"):
        (base / name).chmod(0)

    ran = subprocess.run(
        [sys.executable, "-c", TAKING, base, tmp_path / "checkpoints"],
        preexec_fn=without_privilege,
        capture_output=True,
        text=True,
        check=False,
    )

    (base / "closed").chmod(0o755)
    assert ran.stderr == ""
    assert ran.stdout.startswith('[["fine"], {')
    assert {name for name in ("small", "large", "closed") if f'"{name}' in ran.stdout} == {"small", "large", "closed"}


@pytest.mark.parametrize("size", [3, MIB + 1])
def test_a_file_that_vanishes_while_it_is_taken_is_as_if_it_had_never_been(base, take, monkeypatch, size):
    (base / "x").write_bytes(b"0" * size)
    (base / "y").write_bytes(b"1" * size)
    read = Universe._read

    def vanishing(self, *arguments):
        (base / "x").unlink(missing_ok=True)
        return read(self, *arguments)

    monkeypatch.setattr(Universe, "_read", vanishing)
    captured = take()

    assert set(captured.files) == {"y"}
    assert captured.left_out == {}


def test_what_grows_while_it_is_read_is_stored_as_it_was_read(base, take, monkeypatch):
    (base / "x").write_bytes(b"0" * 100)
    fstat = os.fstat

    def growing(fd):
        found = fstat(fd)
        monkeypatch.setattr(os, "fstat", fstat)
        with (base / "x").open("ab") as file:
            file.write(b"1" * 50)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, "fstat", growing)
        first = take()
    second = take()

    assert first.files["x"].size in (100, 150)
    assert second.files["x"].size == 150
