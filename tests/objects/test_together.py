"""Several stores on one directory, in one process or in many, see each other and do not get in each other's way."""

import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from detent.errors import Conflict, LockTimeout
from detent.objects import write_lock
from tests.support.objects import OWNER, Objects, digest_of, packs, stored


@pytest.fixture
def root(tmp_path):
    return str(tmp_path / "artifacts")


def in_processes(number, work):
    """Fork; every child has to end well."""
    children = []
    for index in range(number):
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                work(index)
                status = 0
            except BaseException:
                sys.excepthook(*sys.exc_info())
                raise
            finally:
                os._exit(status)
        children.append(pid)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * number


def test_two_stores_see_what_the_other_stored(root):
    one, other = Objects(root), Objects(root)

    for number in range(5):
        [digest] = stored(one, b"one %d" % number)
        assert digest in other
        assert other.read(digest) == b"one %d" % number
        [digest] = stored(other, b"other %d" % number)
        assert digest in one
        assert one.size(digest) == 7

    assert sorted(one.digests()) == sorted(other.digests())


def test_the_same_content_at_once_is_stored_once(root):
    one, other = Objects(root), Objects(root)

    with one.batch(OWNER) as first, other.batch("second") as second:
        for batch in (first, second):
            batch.add(b"the same")
            batch.add_data_as_file(b"the same file", name="n")

    assert len(list(Objects(root).digests())) == 2
    assert os.path.getsize(os.path.join(root, "objects-000001.pack")) < 400
    assert sorted(os.listdir(root)) == [".lock", "objects-000001.pack", "objects.idx", "second"]
    assert list(one.verify()) == list(other.verify()) == []


def test_processes_add_the_same_and_different_content_at_once(root):
    parent = Objects(root)
    stored(parent, b"from the parent")

    def add(index):
        store = parent if index % 2 else Objects(root)
        for number in range(25):
            with store.batch(f"owner-{index}") as batch:
                batch.add(b"common %d" % number)
                batch.add(b"own %d %d" % (index, number))
                if number % 10 == 0:
                    batch.add_data_as_file(b"file %d" % number, name="f")

    in_processes(4, add)

    expected = [b"common %d" % n for n in range(25)] + [b"own %d %d" % (i, n) for i in range(4) for n in range(25)]
    for store in (parent, Objects(root)):
        assert all(store.read(digest_of(data)) == data for data in expected)
        assert len(list(store.digests())) == len(expected) + 3 + 1
        assert list(store.verify()) == []
    with open(os.path.join(root, "objects-000001.pack"), "rb") as file:
        assert file.read().count(b'"sha256"') == len(expected) + 4


def test_processes_add_while_others_collect(root):
    always = [b"always %d" % number * 20 for number in range(20)]
    keep = {digest_of(data) for data in always}
    stored(Objects(root), *always)

    def work(index):
        store = Objects(root)
        for number in range(15):
            if index == 0:
                store.collect(keep, dry_run=False)
            else:
                stored(store, b"passing %d %d" % (index, number))
            assert all(store.read(digest_of(data)) == data for data in always)

    in_processes(3, work)

    store = Objects(root)
    assert list(store.verify()) == []
    store.collect(keep, dry_run=False)
    assert set(store.digests()) == keep


def test_an_open_store_notices_that_segments_were_replaced(root):
    one, other = Objects(root), Objects(root)
    keep, drop = stored(one, b"keep" * 50, b"drop" * 50)

    other.collect({keep}, dry_run=False)

    assert one.read(keep) == b"keep" * 50
    assert stored(one, b"drop" * 50) == [drop]
    for store in (one, other, Objects(root)):
        assert store.read(drop) == b"drop" * 50
        assert store.read(keep) == b"keep" * 50


def test_a_batch_whose_known_content_was_collected_meanwhile_is_refused(root):
    one, other = Objects(root), Objects(root)
    [known] = stored(one, b"known")

    with pytest.raises(Conflict, match=known), one.batch(OWNER) as batch:  # noqa: PT012
        assert batch.add(b"known") == known
        other.collect((), dry_run=False)

    assert stored(one, b"known") == [known]
    assert other.read(known) == b"known"


def test_a_batch_whose_base_was_collected_meanwhile_is_refused(root):
    one, other = Objects(root), Objects(root)
    base = os.urandom(2_000)
    [known] = stored(one, base)

    with pytest.raises(Conflict, match=known), one.batch(OWNER) as batch:  # noqa: PT012
        batch.add(base + b"!", like=known)
        other.collect((), dry_run=False)

    with one.batch(OWNER) as batch:
        digest = batch.add(base + b"!", like=known)
    assert Objects(root).read(digest) == base + b"!"
    assert list(one.verify()) == []


def test_a_child_does_not_write_by_the_lock_of_its_parent(root):
    """A lock that is held is held by the descriptor, which a child has too."""
    parent = Objects(root)
    stored(parent, b"parent")

    def child(index):
        write_lock.WAIT_S = 0.05
        with pytest.raises(LockTimeout):
            stored(parent, b"child")

    with parent._segments.locked():
        in_processes(1, child)
    in_processes(1, lambda index: stored(parent, b"child"))

    assert parent.read(digest_of(b"child")) == b"child"


def test_a_child_has_a_lock_of_its_own(root, monkeypatch):
    parent = Objects(root)
    stored(parent, b"parent")
    monkeypatch.setattr(write_lock, "WAIT_S", 0.05)
    (held, holds), (ended, ends) = os.pipe(), os.pipe()

    def child(index):
        with parent._segments.locked():
            os.write(holds, b"!")
            os.read(ended, 1)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(in_processes, 1, child)
        os.read(held, 1)
        try:
            with pytest.raises(LockTimeout):
                stored(parent, b"too early")
        finally:
            os.write(ends, b"!")
        done.result()
    stored(parent, b"now")
    for fd in (held, holds, ended, ends):
        os.close(fd)


def test_a_child_does_not_wait_for_the_threads_of_its_parent(root):
    parent = Objects(root)
    [digest] = stored(parent, b"parent")

    def child(index):
        signal.alarm(5)
        parent.read(digest)

    with ThreadPoolExecutor(1) as pool, parent._segments._guard:
        pool.submit(in_processes, 1, child).result()


def test_a_directory_that_was_removed_is_made_again(root):
    import shutil

    store = Objects(root)
    [digest] = stored(store, b"gone")
    shutil.rmtree(root)

    assert stored(store, b"new") == [digest_of(b"new")]

    assert digest not in store
    assert list(packs(root)) == ["objects-000001.pack"]
    assert Objects(root).read(digest_of(b"new")) == b"new"
