"""Content goes in once and comes out as it was, by every way of storing it."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.errors import Corrupt, Invalid, StoreFailed
from detent.objects import pack, plain, record, segments
from tests.support.faults import Counter, watching
from tests.support.objects import ABSENT, LARGE, OWNER, Objects, digest_of, packs, plain_files, stored


@pytest.fixture
def root(tmp_path):
    return str(tmp_path / "checkpoints" / "artifacts")


@pytest.fixture
def objects(root):
    store = Objects(root)
    yield store
    assert list(store.verify()) == []
    store.close()


@pytest.mark.parametrize("data", [b"", b"x", b"\n", b'{"sha256":"' * 9, bytes(range(256)) * 20, b"a" * (1 << 20)])
def test_what_was_stored_is_read(objects, root, data):
    [digest] = stored(objects, data)

    assert digest == digest_of(data)
    for store in (objects, Objects(root)):
        assert digest in store
        assert store.size(digest) == len(data)
        assert store.read(digest) == data
        assert list(store.digests()) == [digest]
        store.check(digest)
    assert plain_files(root) == []


def test_what_was_not_stored_is_not_there(objects, root):
    assert ABSENT not in objects
    assert objects.size(ABSENT) is None
    for missing in (objects.read, objects.check, lambda digest: objects.copy_to(digest, 1)):
        with pytest.raises(Corrupt, match=ABSENT):
            missing(ABSENT)
    assert not os.path.exists(root)
    assert objects.collect((), dry_run=False) == (0, 0)
    assert not os.path.exists(root)


def test_the_record_is_as_documented(objects, root):
    stored(objects, b"hello")

    with open(os.path.join(root, "objects-000001.pack"), "rb") as file:
        assert file.read() == b'{"sha256":"%b","form":"raw","bytes":5,"size":5}\nhello\n' % digest_of(b"hello").encode()


def test_known_content_is_not_stored_again(objects, root):
    stored(objects, b"once", b"once", b"twice")
    before = packs(root)

    stored(objects, b"once")
    stored(Objects(root), b"twice", b"once")

    assert packs(root) == before


def test_a_batch_that_fails_keeps_nothing_and_hinders_nobody(objects, root):
    with pytest.raises(ZeroDivisionError), objects.batch(OWNER) as batch:  # noqa: PT012
        batch.add(b"given up")
        batch.add_data_as_file(b"given up too", name="file")
        raise ZeroDivisionError

    assert digest_of(b"given up") not in objects
    assert digest_of(b"given up too") not in objects
    assert os.listdir(root) == [".lock"]
    [digest] = stored(objects, b"given up")
    assert objects.read(digest) == b"given up"


def test_a_small_batch_costs_one_sync(objects):
    stored(objects, b"the first creates the segment")

    with watching(Counter()) as counter:
        stored(objects, b"second")

    assert counter.calls == ["write", "fdatasync", "open", "write"]


def test_the_first_batch_makes_the_directories_durable_too(objects):
    with watching(Counter()) as counter:
        stored(objects, b"first")

    directories = ["mkdir", "fsync", "mkdir", "fsync"]
    assert counter.calls == [*directories, "open", "open", "write", "fsync", "fdatasync", "open", "write"]


def test_a_collection_is_durable_before_it_is_seen(objects):
    [keep, _] = stored(objects, b"keep", b"drop")

    with watching(Counter()) as counter:
        objects.collect({keep}, dry_run=False)

    rewritten = ["open", "write", "fdatasync", "replace", "fsync"]
    assert counter.calls == ["unlink", "fsync", *rewritten, "fsync", "fdatasync", "open", "write"]


def test_a_batch_of_known_content_touches_nothing(objects):
    stored(objects, b"known")

    with watching(Counter()) as counter:
        stored(objects, b"known")

    assert counter.calls == []


def test_many_objects_are_synced_once_and_held_in_memory_only_so_far(objects, monkeypatch):
    monkeypatch.setattr(pack, "BUFFER_BYTES", 50_000)
    contents = [b"%d" % number * 500 for number in range(200)]

    with watching(Counter()) as counter:
        digests = stored(objects, *contents)

    assert counter.calls.count("fdatasync") == 1
    assert counter.calls.count("write") > 3
    assert [objects.read(digest) for digest in digests] == contents


def test_segments_are_followed_by_others(objects, root, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 2_000)
    contents = [os.urandom(900) for _ in range(10)]

    digests = [stored(objects, data)[0] for data in contents]

    assert sorted(packs(root)) == [f"objects-00000{number}.pack" for number in range(1, 6)]
    for store in (objects, Objects(root)):
        assert [store.read(digest) for digest in digests] == contents


def test_compression_is_used_where_it_saves(root):
    text, noise = b"to be or not to be " * 100, os.urandom(1900)
    store = Objects(root, compress=True)

    digests = stored(store, text, noise)

    assert sum(packs(root).values()) < 2_500
    assert [Objects(root).read(digest) for digest in digests] == [text, noise]
    assert list(store.verify()) == []


@pytest.mark.parametrize("compress", [False, True])
def test_an_edit_stores_what_changed(root, compress):
    store = Objects(root, compress=compress)
    old = os.urandom(50_000)
    new = old[:20_000] + b"something else entirely " * 9 + old[20_100:]
    [base] = stored(store, old)
    before = sum(packs(root).values())

    with store.batch(OWNER) as batch:
        digest = batch.add(new, like=base)

    assert sum(packs(root).values()) - before < 600
    for reader in (store, Objects(root)):
        assert reader.read(digest) == new
        assert reader.size(digest) == len(new)
        reader.check(digest)


def test_an_edit_saves_by_what_is_the_same_not_by_compression(root):
    store = Objects(root, compress=True)
    with store.batch(OWNER) as batch:
        batch.add(b"x" * 2_000, like=batch.add(b"y" * 2_000))

    with open(os.path.join(root, "objects-000001.pack"), "rb") as file:
        assert file.read().count(b'"form":"zlib"') == 2


@pytest.mark.parametrize("like", [ABSENT, "unlike", "file"])
def test_content_that_is_like_nothing_useful_stands_alone(objects, like):
    with objects.batch(OWNER) as batch:
        others = {"unlike": batch.add(os.urandom(2_000)), "file": batch.add_data_as_file(b"x" * 3_000, name="f")}
        digest = batch.add(b"x" * 2_999, like=others.get(like, like))

    assert objects.read(digest) == b"x" * 2_999


def test_edits_stand_upon_each_other_up_to_the_limit(objects, root):
    versions = [os.urandom(4_000)]
    for number in range(record.MAX_DEPTH + 3):
        versions.append(versions[-1] + b"line %d\n" % number)

    digest = None
    with objects.batch(OWNER) as batch:
        for data in versions[:20]:
            digest = batch.add(data, like=digest)
    for data in versions[20:]:
        with objects.batch(OWNER) as batch:
            digest = batch.add(data, like=digest)

    with open(os.path.join(root, "objects-000001.pack"), "rb") as file:
        data = file.read()
    assert data.count(b'"form":"raw"') == 2
    assert data.count(b'"form":"edit"') == len(versions) - 2
    assert data.count(b'"depth":%d' % record.MAX_DEPTH) == 1
    assert [Objects(root).read(digest_of(data)) for data in versions] == versions


@pytest.mark.parametrize("raw", [b"plain", b"with space", b"new\nline", b"caf\xe9", b"-rf", b"back\\slash", b'"q"'])
def test_a_plain_file_keeps_its_name(objects, root, raw):
    name = os.fsdecode(raw)
    with objects.batch(OWNER) as batch:
        digest = batch.add_data_as_file(b"content", name=name)

    assert plain_files(root) == [f"{OWNER}/{digest}/{name}"]
    for store in (objects, Objects(root)):
        assert store.read(digest) == b"content"
        store.check(digest)
    assert os.stat(os.path.join(root, plain_files(root)[0])).st_mode & 0o777 == 0o400


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "nul\0"])
def test_a_name_is_one_component(objects, name):
    with pytest.raises(Invalid, match="single name"), objects.batch(OWNER) as batch:
        batch.add_data_as_file(b"x", name=name)
    with pytest.raises(Invalid, match="cannot be the owner"):
        objects.batch(name)


def test_large_content_is_a_plain_file(objects, root, tmp_path):
    (tmp_path / "large.bin").write_bytes(LARGE)

    with objects.batch(OWNER) as batch:
        found = batch.add_file(str(tmp_path / "large.bin"), name="large.bin")
        assert batch.add(LARGE) == found[0]
        other = batch.add(LARGE[1:])

    assert found == (digest_of(LARGE), len(LARGE))
    assert plain_files(root) == sorted([f"{OWNER}/{found[0]}/large.bin", f"{OWNER}/{other}/content"])
    assert sum(packs(root).values()) < 600
    assert objects.read(found[0]) == LARGE
    assert objects.size(other) == len(LARGE) - 1


def test_a_small_change_of_large_content_is_an_edit(objects, root):
    [base] = stored(objects, LARGE)

    with objects.batch(OWNER) as batch:
        digest = batch.add(LARGE[:70] + b"!" + LARGE[70:], like=base)

    assert len(plain_files(root)) == 1
    assert objects.read(digest) == LARGE[:70] + b"!" + LARGE[70:]


def test_a_file_of_known_content_is_not_kept(objects, root, tmp_path):
    (tmp_path / "file").write_bytes(b"known")
    stored(objects, b"known")

    with objects.batch(OWNER) as batch:
        assert batch.add_file(str(tmp_path / "file"), name="file") == (digest_of(b"known"), 5)

    assert plain_files(root) == []


def test_a_source_that_cannot_be_read_is_named(objects, tmp_path):
    with pytest.raises(StoreFailed, match=r"gone\.bin"), objects.batch(OWNER) as batch:
        batch.add_file(str(tmp_path / "gone.bin"), name="gone.bin")


def test_threads_share_a_batch(objects, tmp_path):
    contents = [os.urandom(300_000) for _ in range(6)] * 2
    for number, data in enumerate(contents):
        (tmp_path / str(number)).write_bytes(data)

    with objects.batch(OWNER) as batch, ThreadPoolExecutor(6) as pool:
        found = list(pool.map(lambda n: batch.add_file(str(tmp_path / str(n)), name=f"f{n}"), range(len(contents))))
        small = list(pool.map(lambda n: batch.add(b"%d" % (n // 2)), range(40)))

    assert [digest for digest, _ in found] == [digest_of(data) for data in contents]
    assert all(objects.read(digest) == data for (digest, _), data in zip(found, contents, strict=True))
    assert len(set(small)) == 20
    assert len(list(objects.digests())) == 26


@pytest.mark.parametrize("kind", ["new", "behind something", "to append", "pipe"])
@pytest.mark.parametrize("data", [b"small", LARGE])
def test_content_is_copied_to_where_a_descriptor_stands(objects, tmp_path, kind, data):
    [digest] = stored(objects, data)
    target = tmp_path / "target"

    if kind == "pipe":
        reading, fd = os.pipe()
        with ThreadPoolExecutor(1) as pool, open(reading, "rb") as file:
            collected = pool.submit(file.read)
            objects.copy_to(digest, fd)
            os.close(fd)
            assert collected.result() == data
        return
    fd = os.open(target, os.O_CREAT | os.O_WRONLY | (os.O_APPEND if kind == "to append" else 0))
    first = b"first" if kind == "behind something" else b""
    os.write(fd, first)
    objects.copy_to(digest, fd)
    os.write(fd, b"last")
    os.close(fd)

    assert target.read_bytes() == first + data + b"last"


def test_blocks_are_shared_where_the_file_system_can(objects, tmp_path, monkeypatch):
    """No file system here can; so this one is told what the call would do."""
    import fcntl

    def ioctl(writing, request, reading):
        assert request == 0x40049409
        os.pwrite(writing, os.pread(reading, 1 << 24, 0), 0)
        cloned.append(request)

    cloned = []
    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    (tmp_path / "source").write_bytes(LARGE)

    with objects.batch(OWNER) as batch:
        digest, size = batch.add_file(str(tmp_path / "source"), name="n")
    fd = os.open(tmp_path / "target", os.O_CREAT | os.O_WRONLY)
    objects.copy_to(digest, fd)
    os.write(fd, b"!")
    os.close(fd)

    assert (digest, size) == (digest_of(LARGE), len(LARGE))
    assert (tmp_path / "target").read_bytes() == LARGE + b"!"
    assert len(cloned) == 2


def test_checking_a_large_file_does_not_read_it_whole(objects, monkeypatch):
    [digest] = stored(objects, LARGE)
    monkeypatch.setattr(plain, "CHUNK", 1 << 16)
    reads = []
    pread = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: reads.append(size) or pread(fd, size, at))

    objects.check(digest)

    assert max(reads) <= 1 << 16


def test_a_full_disk_while_copying_out_is_told(objects, monkeypatch):
    [digest] = stored(objects, b"content")

    def full(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(StoreFailed, match=f"{digest}: the disk is full"):
        objects.copy_to(digest, 1)


def test_garbage_is_counted_and_removed(objects, root):
    keep, drop = stored(objects, b"keep" * 100, b"drop" * 100)
    with objects.batch(OWNER) as batch:
        kept_file, dropped_file = (batch.add_data_as_file(data, name="n") for data in (b"kept file", b"dropped file"))
    before = sum(packs(root).values())

    foreseen = objects.collect({keep, kept_file}, dry_run=True)
    assert dropped_file in objects
    done = objects.collect({keep, kept_file}, dry_run=False)

    assert foreseen == done
    assert done.objects == 2
    assert done.bytes == before - sum(packs(root).values()) + len(b"dropped file")
    assert plain_files(root) == [f"{OWNER}/{kept_file}/n"]
    for store in (objects, Objects(root)):
        assert sorted(store.digests()) == sorted([keep, kept_file])
        assert drop not in store
        assert store.read(keep) == b"keep" * 100
        store.check(kept_file)
    assert objects.collect({keep, kept_file}, dry_run=False) == (0, 0)


def test_what_a_kept_edit_stands_upon_is_kept(objects, root):
    versions = [os.urandom(4_000) + b"x"]
    for number in range(8):
        versions.append(versions[-1] + b"line %d\n" % number)
    digest = None
    with objects.batch(OWNER) as batch:
        for data in versions:
            digest = batch.add(data, like=digest)

    collected = objects.collect({digest_of(versions[5])}, dry_run=False)

    assert collected.objects == 3
    assert [Objects(root).read(digest_of(data)) for data in versions[:6]] == versions[:6]


def test_everything_is_collected_in_full_segments_too(objects, root, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 2_000)
    contents = [os.urandom(900) for _ in range(10)]
    digests = [stored(objects, data)[0] for data in contents]

    objects.collect({digests[9]}, dry_run=False)

    assert list(Objects(root).digests()) == [digests[9]]
    [again] = stored(objects, contents[0])
    assert Objects(root).read(again) == contents[0]


def test_abandoned_files_are_collected_and_those_of_a_living_batch_are_not(objects, root, tmp_path):
    stored(objects, b"x")
    for path in (".new-7", f"{OWNER}/{ABSENT}"):
        os.makedirs(os.path.join(root, path))
        (tmp_path / "checkpoints/artifacts" / path / "1").write_bytes(b"left behind")
    (tmp_path / "checkpoints/artifacts/objects-000001.pack.tmp").write_bytes(b"left behind")

    with objects.batch(OWNER) as batch:
        digest = batch.add_data_as_file(b"living", name="n")
        Objects(root).collect({digest_of(b"x")}, dry_run=False)
        assert os.listdir(root + "/.new-1") == ["1"]

    assert plain_files(root) == [f"{OWNER}/{digest}/n"]
    assert sorted(os.listdir(root)) == sorted([".lock", OWNER, "objects-000001.pack", "objects.idx"])
