"""Whatever happens to the files: damaged content is never returned, and what is whole can still be read."""

import os
import shutil
import tempfile
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from detent.errors import Corrupt
from detent.objects import record, segments
from tests.support.objects import ABSENT, LARGE, OWNER, Objects, close_all, digest_of, plain_files, stored

CONTENTS = [b"first " * 50, b"second " * 50, b"third " * 50]
PACK = "objects-000001.pack"


@pytest.fixture
def root(tmp_path):
    with_contents = str(tmp_path / "artifacts")
    store = Objects(with_contents)
    stored(store, *CONTENTS)
    store.close()
    return with_contents


def tamper(root, old, new, name=PACK):
    path = os.path.join(root, name)
    with open(path, "rb") as file:
        data = file.read()
    assert data.count(old) == 1
    assert len(old) == len(new)
    with open(path, "r+b") as file:
        file.seek(data.index(old))
        file.write(new)


def check_others(root, damaged, contents=CONTENTS):
    """All but one can be read; that one is refused by everybody, and can be stored again if it is gone."""
    for store in (Objects(root), Objects(root)):
        for number, data in enumerate(contents):
            if number == damaged:
                for refused in (store.read, store.check):
                    with pytest.raises(Corrupt, match=digest_of(data)):
                        refused(digest_of(data))
            else:
                assert store.read(digest_of(data)) == data
        store.close()


def still_works(root):
    store = Objects(root)
    [digest] = stored(store, b"the next")
    assert Objects(root).read(digest) == b"the next"


@pytest.mark.parametrize("index", ["kept", "deleted"])
def test_a_changed_byte_of_content_is_noticed(root, index):
    if index == "deleted":
        os.unlink(os.path.join(root, "objects.idx"))
    tamper(root, CONTENTS[1], CONTENTS[1][:-1] + b"!")

    [damage] = Objects(root).verify()
    assert damage.digest == digest_of(CONTENTS[1])
    assert damage.where.startswith(f"{PACK} at byte ")
    check_others(root, 1)
    still_works(root)


@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("index", ["kept", "deleted"])
def test_a_changed_byte_of_a_header_is_noticed(root, index, number):
    if index == "deleted":
        os.unlink(os.path.join(root, "objects.idx"))
    start = b'{"sha256":"' + digest_of(CONTENTS[number]).encode()
    tamper(root, start, b"[" + start[1:])

    damage = list(Objects(root).verify())
    if index == "kept" and number < 2:
        assert digest_of(CONTENTS[number]) in [one.digest for one in damage]
    if number < 2:
        length = len(f'{{"sha256":"{"0" * 64}","form":"raw","bytes":300,"size":300}}\n\n') + len(CONTENTS[number])
        assert f"these {length} bytes are no record and were skipped" in [one.reason for one in damage]
    check_others(root, number)
    still_works(root)
    check_others(root, number)


def test_a_header_of_another_digest_is_noticed(root):
    digest = digest_of(CONTENTS[1])
    tamper(root, digest.encode(), ABSENT.encode())

    check_others(root, 1)
    store = Objects(root)
    assert digest not in store
    assert ABSENT not in Objects(root)
    assert ABSENT in [one.digest for one in store.verify()]
    assert stored(store, CONTENTS[1]) == [digest]
    assert store.read(digest) == CONTENTS[1]


def test_a_last_record_that_was_damaged_is_not_cut_off_as_torn(root):
    """The index says that it was whole once."""
    size = os.path.getsize(os.path.join(root, PACK))
    tamper(root, digest_of(CONTENTS[2]).encode(), b"?" * 64)

    still_works(root)

    assert os.path.getsize(os.path.join(root, PACK)) > size
    tamper(root, b"?" * 64, digest_of(CONTENTS[2]).encode())
    os.unlink(os.path.join(root, "objects.idx"))
    check_others(root, None)


@pytest.mark.parametrize("cut", [1, 50, 360])
def test_a_segment_that_was_cut_lacks_only_what_was_cut(root, cut):
    path = os.path.join(root, PACK)
    os.truncate(path, os.path.getsize(path) - cut)

    check_others(root, 2)
    still_works(root)
    check_others(root, 2)
    assert list(Objects(root).verify()) == []
    stored(Objects(root), *CONTENTS)
    check_others(root, None)


def test_content_that_was_lost_can_be_stored_again(root):
    tamper(root, CONTENTS[1], CONTENTS[1][:-1] + b"!")
    os.unlink(os.path.join(root, "objects.idx"))
    store = Objects(root)

    stored(store, *CONTENTS)

    check_others(root, None)
    assert list(store.verify()) == []
    assert store.collect({digest_of(data) for data in CONTENTS}, dry_run=False).objects == 0
    check_others(root, None)


def test_the_same_record_twice_counts_once_it_is_whole(root):
    """Bases that were stored again stand behind the edits that need them."""
    store = Objects(root)
    with store.batch(OWNER) as batch:
        edit = batch.add(CONTENTS[1] * 5 + b"!", like=batch.add(CONTENTS[1] * 5))
    tamper(root, CONTENTS[1] * 5, b"?" * len(CONTENTS[1] * 5))
    os.unlink(os.path.join(root, "objects.idx"))
    with pytest.raises(Corrupt):
        Objects(root).read(edit)

    stored(Objects(root), CONTENTS[1] * 5)
    os.unlink(os.path.join(root, "objects.idx"))

    assert Objects(root).read(edit) == CONTENTS[1] * 5 + b"!"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:30],
        lambda data: data[:-48],
        lambda data: data[:-20],
        lambda data: data + data[-48:],
        lambda data: data + b"\0" * 48,
        lambda data: data + os.urandom(480),
        lambda data: os.urandom(len(data)),
        lambda data: data[:48] + os.urandom(len(data) - 48),
        lambda data: data[:48] + data[96:],
        lambda data: data[:49] + bytes([data[49] ^ 1]) + data[50:],
        lambda data: data[:85] + bytes([data[85] ^ 1]) + data[86:],
        lambda data: data[:93] + bytes([data[93] ^ 1]) + data[94:],
        lambda data: data[:48] + data[96:144] + data[48:96],
        lambda data: data[:48] + data[48:96] * 3,
    ],
)
def test_whatever_the_index_says_content_is_right(root, damage):
    path = os.path.join(root, "objects.idx")
    with open(path, "rb") as file:
        data = file.read()
    with open(path, "wb") as file:
        file.write(damage(data))

    check_others(root, None)
    still_works(root)
    check_others(root, None)
    assert list(Objects(root).verify()) == []


def test_an_index_that_was_deleted_is_written_again(root):
    path = os.path.join(root, "objects.idx")
    with open(path, "rb") as file:
        before = file.read()
    os.unlink(path)
    store = Objects(root)

    assert all(store.read(digest_of(data)) == data for data in CONTENTS)
    stored(store, b"more")

    with open(path, "rb") as file:
        assert file.read().startswith(before)


def test_an_index_of_other_segments_is_noticed(root, tmp_path):
    other = Objects(str(tmp_path / "other"))
    contents = [os.urandom(700) for _ in range(3)]
    stored(other, *contents)
    shutil.copyfile(os.path.join(other.root, PACK), os.path.join(root, PACK))

    store = Objects(root)

    assert all(digest_of(data) in store for data in contents)
    assert not any(digest_of(data) in store for data in CONTENTS)


def test_an_index_removed_under_an_open_store_does_no_harm(root):
    store = Objects(root)
    assert digest_of(CONTENTS[0]) in store
    os.unlink(os.path.join(root, "objects.idx"))

    stored(store, b"more")

    check_others(root, None, [*CONTENTS, b"more"])


def test_what_was_written_and_never_synced_counts_only_if_it_is_whole(root):
    """The loss of power leaves the header of a record and zeros for its content."""
    path = os.path.join(root, PACK)
    header = b'{"sha256":"%b","form":"raw","bytes":5,"size":5}\n'
    with open(path, "ab") as file:
        file.write(header % digest_of(b"holes").encode() + b"\0" * 5 + b"\n")
        file.write(header % digest_of(b"whole").encode() + b"whole\n")

    store = Objects(root)
    assert digest_of(b"holes") not in store
    assert store.read(digest_of(b"whole")) == b"whole"
    stored(store, b"holes")

    check_others(root, None, [*CONTENTS, b"holes", b"whole"])
    assert list(store.verify()) == []


def test_a_removed_plain_file_is_missed_and_can_be_stored_again(root):
    store = Objects(root)
    with store.batch(OWNER) as batch:
        digest = batch.add_data_as_file(b"in a file", name="n")
    os.unlink(os.path.join(root, plain_files(root)[0]))

    assert digest not in store
    with pytest.raises(Corrupt, match=digest):
        store.read(digest)
    assert [damage.digest for damage in store.verify()] == [digest]
    with store.batch("another-owner") as batch:
        batch.add_data_as_file(b"in a file", name="m")

    for reader in (store, Objects(root)):
        assert reader.read(digest) == b"in a file"
    assert list(store.verify()) == []
    assert store.collect([digest], dry_run=False).objects == 3
    store.check(digest)


@given(
    st.lists(
        st.tuples(st.sampled_from([PACK, "objects.idx"]), st.integers(0, 3_000), st.binary(max_size=9)),
        min_size=1,
        max_size=4,
    )
)
@settings(deadline=None, max_examples=150)
def test_whatever_is_overwritten_content_is_right_or_refused(changes):
    """And nothing else happens: no error that is not expected, and the next batch works."""
    contents = [*CONTENTS, CONTENTS[2] + b"!", b"z" * 2_000, b"in a file"]
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as root:
        store = Objects(root, compress=True)
        with store.batch(OWNER) as batch:
            for data in contents[:5]:
                batch.add(data, like=digest_of(CONTENTS[2]))
            batch.add_data_as_file(contents[5], name="n")
        store.close()
        for name, at, data in changes:
            with open(os.path.join(root, name), "r+b") as file:
                file.seek(at % os.path.getsize(os.path.join(root, name)))
                file.write(data)

        store = Objects(root)
        for data in contents:
            with suppress(Corrupt):
                assert store.read(digest_of(data)) == data
        list(store.verify())
        stored(store, b"the next")
        assert Objects(root).read(digest_of(b"the next")) == b"the next"
        whole = [data for data in contents if reads(store, data)]
        store.collect({digest_of(data) for data in contents}, dry_run=False)
        after = Objects(root)
        assert [data for data in contents if reads(after, data)] == whole
        close_all()


def reads(store, data):
    try:
        store.read(digest_of(data))
    except Corrupt:
        return False
    return True


def test_a_changed_plain_file_is_noticed_before_anything_is_written(root, tmp_path):
    [digest] = stored(Objects(root), LARGE)
    path = os.path.join(root, plain_files(root)[0])
    os.chmod(path, 0o644)
    tamper(root, LARGE[:99], b"?" * 99, plain_files(root)[0])
    store = Objects(root)
    fd = os.open(tmp_path / "target", os.O_CREAT | os.O_WRONLY)

    for refused in (store.read, store.check, lambda digest: store.copy_to(digest, fd)):
        with pytest.raises(Corrupt, match=digest):
            refused(digest)

    assert os.fstat(fd).st_size == 0
    assert [damage.digest for damage in store.verify()] == [digest]
    os.close(fd)


@pytest.mark.parametrize("path", ["../{}/n", "owner/{}/n/m", "a/b/c", "/{}/n", "owner/{}/..", "owner//{}", "x\\q/{}/n"])
def test_a_record_cannot_name_a_file_elsewhere(root, path):
    """It is neither read nor removed, even if it has that content."""
    digest = digest_of(b"")
    for place in (f"../{digest}", f"owner/{digest}/n", "a/b", f"x\\q/{digest}"):
        os.makedirs(os.path.join(root, place))
    for name in (f"../{digest}/n", f"owner/{digest}/n/m", "a/b/c", f"x\\q/{digest}/n"):
        with open(os.path.join(root, name), "xb"):
            pass
    line = f'{{"sha256":"{digest}","form":"file","bytes":0,"size":0,"path":"{path.format(digest)}"}}\n\n'
    with open(os.path.join(root, PACK), "ab") as file:
        file.write(line.replace("\\", "\\\\").encode())

    store = Objects(root)
    assert digest not in store
    with pytest.raises(Corrupt, match=digest):
        store.read(digest)
    assert store.collect([digest_of(data) for data in CONTENTS], dry_run=False).objects == 1


def test_edits_that_go_round_in_circles_are_refused(root):
    one, other = digest_of(b"1"), digest_of(b"2")
    line = '{{"sha256":"{}","form":"edit","bytes":0,"size":9,"base":"{}","prefix":9,"suffix":0,"depth":1}}\n\n'
    with open(os.path.join(root, PACK), "ab") as file:
        file.write((line.format(one, other) + line.format(other, one)).encode())

    with pytest.raises(Corrupt, match=one):
        Objects(root).read(one)
    check_others(root, None)


def test_a_form_of_a_newer_version_is_kept_and_not_understood(root):
    digest = digest_of(b"from the future")
    with open(os.path.join(root, PACK), "ab") as file:
        file.write(f'{{"sha256":"{digest}","form":"brotli","bytes":3,"size":15,"window":22}}\nabc\n'.encode())
    store = Objects(root)

    stored(store, b"the next")

    assert digest in store
    with pytest.raises(Corrupt, match="the unknown form 'brotli'") as error:
        store.read(digest)
    assert "upgrade" in error.value.way_out


def test_a_damaged_base_is_named(root):
    store = Objects(root)
    base = os.urandom(3_000)
    with store.batch(OWNER) as batch:
        edit = batch.add(base + b"!", like=batch.add(base))
    tamper(root, digest_of(base).encode() + b'","form', b"0" * 64 + b'","form')

    with pytest.raises(Corrupt, match=f"(?s){edit}.*{digest_of(base)}"):
        Objects(root).read(edit)


@pytest.mark.parametrize("index", ["kept", "deleted"])
def test_an_edit_outlives_damage_to_what_it_does_not_need_of_its_base(root, index):
    store = Objects(root)
    base = b"to be replaced" + os.urandom(3_000)
    with store.batch(OWNER) as batch:
        edit = batch.add(base[14:], like=batch.add(base))
    tamper(root, b"to be replaced", b"is now replaced"[:14])
    if index == "deleted":
        os.unlink(os.path.join(root, "objects.idx"))

    for reader in (Objects(root), Objects(root)):
        assert reader.read(edit) == base[14:]
        with pytest.raises(Corrupt, match=digest_of(base)):
            reader.read(digest_of(base))
        stored(reader, b"something")
    stored(reader, base)
    if index == "deleted":
        assert Objects(root).read(digest_of(base)) == base


def test_a_compressed_object_that_claims_too_much_is_refused(root):
    import zlib

    digest, bomb = digest_of(b"\0" * 100), zlib.compress(b"\0" * 10_000_000)
    with open(os.path.join(root, PACK), "ab") as file:
        file.write(f'{{"sha256":"{digest}","form":"zlib","bytes":{len(bomb)},"size":100}}\n'.encode() + bomb + b"\n")

    with pytest.raises(Corrupt, match=digest):
        Objects(root).read(digest)
    assert len(record.inflate(digest, bomb, 100)) == 101


def test_verification_goes_on_after_damage_and_tells_how_far_it_is(root, monkeypatch):
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 1)
    store = Objects(root)
    stored(store, b"in the second segment")
    tamper(root, CONTENTS[0], b"!" + CONTENTS[0][1:])
    tamper(root, b"in the second", b"in the 2econd", "objects-000002.pack")
    seen = []

    damage = list(store.verify(lambda done, total: seen.append((done, total))))

    assert [one.digest for one in damage] == [digest_of(CONTENTS[0]), digest_of(b"in the second segment")]
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_a_damaged_segment_is_not_rewritten(root):
    """What cannot be read there may still be wanted."""
    store = Objects(root)
    with store.batch(OWNER) as batch:
        batch.add_data_as_file(b"named by a damaged header", name="n")
    stored(store, b"last")
    tamper(root, digest_of(CONTENTS[1]).encode(), b"?" * 64)
    before = os.path.getsize(os.path.join(root, PACK))

    assert Objects(root).collect((), dry_run=False) == (0, 0)

    assert os.path.getsize(os.path.join(root, PACK)) == before
    assert len(plain_files(root)) == 1
