"""Snapshots of files in a git remote, and below a URL: one contract for both."""

import hashlib
import subprocess
import sys
import types
from pathlib import Path

import pytest

from detent.core.checkpoint.manifest import Entry
from detent.errors import Corrupt, StoreFailed
from detent.objects.git_transport import GitTransport
from detent.objects.transport import Transport, decode_manifest, encode_files
from detent.objects.url_transport import UrlTransport

FILES = {"a": b"one", "b/c d": b"two\n", "link": b"a", "\udcff\n\\": b"odd", "empty": b""}
KINDS = {"link": "l", "b/c d": "x"}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def manifest(files: dict[str, bytes]) -> dict[str, Entry]:
    return {path: Entry(KINDS.get(path, "f"), digest(data), len(data), 0o600) for path, data in files.items()}


def send(place: Transport, name: str, files: dict[str, bytes], base: str | None = None) -> list[str]:
    """Send the files. Returns the digests that were read for it."""
    asked: list[str] = []
    contents = {digest(data): data for data in files.values()}

    def read(wanted: str) -> bytes:
        asked.append(wanted)
        return contents[wanted]

    place.send(name, encode_files(manifest(files)), contents, read, base)
    return asked


def read(place: Transport, name: str) -> dict[str, bytes]:
    data = place.fetch(name)
    assert data is not None
    files = decode_manifest(data, name)
    contents = place.objects(name, {entry.digest for entry in files.values()})
    return {path: contents[entry.digest] for path, entry in files.items()}


@pytest.fixture(params=["git", "url"])
def places(request, tmp_path):
    """The shared place as two machines see it."""
    if request.param == "url":
        url = f"file://{tmp_path / 'shared'}"
        return UrlTransport(url), UrlTransport(url)
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    one, two = (GitTransport(str(tmp_path / name), str(remote), top=str(tmp_path)) for name in ("one", "two"))
    return one, two


def test_another_machine_reads_the_same_bytes_names_and_modes(places):
    here, there = places
    send(here, "WFS-a/1", FILES)
    assert read(there, "WFS-a/1") == FILES
    assert decode_manifest(there.fetch("WFS-a/1"), "WFS-a/1") == manifest(FILES)


def test_only_objects_that_the_base_lacks_are_sent(places):
    here, there = places
    send(here, "WFS-a/1", FILES)
    changed = {**FILES, "a": b"three"}
    del changed["empty"]
    assert send(here, "WFS-a/2", changed, base="WFS-a/1") == [digest(b"three")]
    assert (read(there, "WFS-a/2"), read(there, "WFS-a/1")) == (changed, FILES)


def test_the_same_files_of_another_session_are_not_sent_again(places):
    here, there = places
    send(here, "WFS-a/1", FILES)
    assert send(here, "WFS-b/1", FILES, base="WFS-a/1") == []
    here.remove(["WFS-a/1"])
    assert read(there, "WFS-b/1") == FILES
    changed = {**FILES, "a": b"three"}
    assert send(here, "WFS-b/2", changed, base="WFS-b/1") == [digest(b"three")]
    assert read(there, "WFS-b/2") == changed


def test_a_base_whose_objects_another_process_removed_is_no_problem(places):
    here, there = places
    send(here, "WFS-a/1", FILES)
    if isinstance(here, GitTransport):
        # As `detent files clean` of the same machine does; this process believes that it has the objects.
        for command in (["update-ref", "-d", "refs/detent/WFS-a/1"], ["gc", "--quiet", "--prune=now"]):
            subprocess.run(["git", "--git-dir", here._directory, *command], check=True)
    send(here, "WFS-a/2", {**FILES, "a": b"three"}, base="WFS-a/1")
    assert read(there, "WFS-a/2") == {**FILES, "a": b"three"}


def test_a_ref_that_another_push_holds_is_pushed_again(tmp_path):
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    place = GitTransport(str(tmp_path / "own"), str(remote), top=str(tmp_path))
    lock = remote / "refs/detent/S/one.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    # The other push ends while this one waits.
    hook = remote / "hooks/pre-receive"
    hook.write_text(f"#!/bin/sh\n[ -e tried ] && rm -f {lock}; touch tried; exit 0\n")
    hook.chmod(0o755)

    send(place, "S/one", FILES)

    assert read(place, "S/one") == FILES


def test_a_base_that_is_gone_is_no_problem(places):
    here, there = places
    send(here, "WFS-a/2", FILES, base="WFS-a/1")
    assert read(there, "WFS-a/2") == FILES


def test_a_snapshot_that_is_not_there(places):
    assert places[0].fetch("WFS-a/1") is None


def test_names_and_removal(places):
    here, there = places
    for name in ("WFS-a/1", "WFS-a/2", "WFS-b/1"):
        send(here, name, {**FILES, name: name.encode()})
    assert there.names() == ["WFS-a/1", "WFS-a/2", "WFS-b/1"]
    assert there.names("WFS-a/") == ["WFS-a/1", "WFS-a/2"]
    there.remove(["WFS-a/1", "WFS-b/1"])
    assert here.names() == ["WFS-a/2"]
    assert read(there, "WFS-a/2") == {**FILES, "WFS-a/2": b"WFS-a/2"}


def test_a_manifest_that_leads_outside_is_refused():
    with pytest.raises(Corrupt, match="outside"):
        decode_manifest(encode_files(manifest({"../x": b""})), "n")


def test_a_remote_that_cannot_be_reached_is_named(tmp_path):
    place = GitTransport(str(tmp_path / "own"), str(tmp_path / "nothing.git"), top=str(tmp_path))
    with pytest.raises(StoreFailed, match=r"nothing\.git"):
        send(place, "WFS-a/1", FILES)


def test_an_error_of_a_remote_holds_no_secret_of_its_url(tmp_path):
    place = GitTransport(str(tmp_path / "own"), "https://ada:hunter2-secret@127.0.0.1:1/x.git", top=str(tmp_path))

    with pytest.raises(StoreFailed, match=r"127\.0\.0\.1:1/x\.git") as failure:
        send(place, "WFS-a/1", FILES)
    assert "hunter2" not in failure.value.message


def test_an_error_of_the_library_of_a_place_is_no_defect_of_detent(tmp_path, monkeypatch):
    class BotoCoreError(Exception):
        """As botocore has it: no OSError."""

    def fail(*_arguments, **_options):
        raise BotoCoreError("Unable to locate credentials")

    library = types.ModuleType("botocore.exceptions")
    vars(library).update(BotoCoreError=BotoCoreError, ClientError=BotoCoreError)
    monkeypatch.setitem(sys.modules, library.__name__, library)
    place = UrlTransport(f"file://{tmp_path / 'shared'}")
    monkeypatch.setattr(place._fs, "exists", fail)
    with pytest.raises(StoreFailed, match="Unable to locate credentials"):
        place.names()


def test_the_repository_of_the_user_gets_nothing(tmp_path):
    remote, user = tmp_path / "remote.git", tmp_path / "user"
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    subprocess.run(["git", "init", "-q", user], check=True)
    subprocess.run(["git", "-C", user, "remote", "add", "origin", remote], check=True)
    before = sorted(str(path) for path in Path(user).rglob("*"))
    place = GitTransport(str(tmp_path / "own"), "origin", top=str(user), config=str(user / ".git" / "config"))
    send(place, "WFS-a/1", FILES)
    listed = subprocess.run(["git", "-C", remote, "for-each-ref"], capture_output=True, text=True, check=True).stdout
    assert listed.split()[-1] == "refs/detent/WFS-a/1"
    assert sorted(str(path) for path in Path(user).rglob("*")) == before
