"""`kill -9` and a full disk at every call: what was durable before is still read, and the next batch works."""

import errno
import os
import shutil
import signal
from itertools import count

import pytest

from detent.errors import StoreFailed
from detent.objects import pack, segments
from tests.support.faults import DONE, NO_WRITE, Counter, die, die_halfway, failing, in_child, watching
from tests.support.objects import OWNER, Objects, digest_of, plain_files, stored

TEXT = b"".join(b"line %d of a text that changes\n" % number for number in range(200))
OLD = [TEXT, *(b"old %d " % number * 30 for number in range(12))]
NEW = [TEXT + b"one more\n", *(b"new %d " % number * 30 for number in range(12))]
FILES = {b"a file " * 9: "a\nb", b"another file " * 9: "-c"}
#: What is wanted after a collection: an edit, which keeps its base, some of the small ones, and one file.
KEPT = [digest_of(data) for data in (NEW[0], OLD[3], OLD[4], OLD[9], NEW[2], next(iter(FILES)))]


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(pack, "BUFFER_BYTES", 1_500)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 8_000)


def store_old(root):
    store = Objects(root)
    stored(store, *OLD)
    store.close()


def store_new(root):
    store = Objects(root)
    with store.batch(OWNER) as filled:
        filled.add(NEW[0], like=digest_of(OLD[0]))
        for data in NEW[1:]:
            filled.add(data)
        for data, name in FILES.items():
            filled.add_data_as_file(data, name=name)
    store.close()


def store_more(root):
    """Once the garbage is gone that `collect` finds."""
    store_new(root)
    store = Objects(root)
    stored(store, b"in a segment of its own " * 20)
    store.close()


def collect(root):
    store = Objects(root)
    store.collect(set(KEPT), dry_run=False)
    store.close()


def store_nothing(root):
    pass


SCENARIOS = {
    "the first batch": (store_nothing, store_old, [], OLD),
    "a batch": (store_old, store_new, OLD, [*NEW, *FILES]),
    "a collection": (
        lambda root: (store_old(root), store_more(root)),
        collect,
        [OLD[0], NEW[0], OLD[3], OLD[4], OLD[9], NEW[2], next(iter(FILES))],
        [],
    ),
}


def prepared(place, prepare):
    root = str(place / "template" / "artifacts")
    os.makedirs(os.path.dirname(root))
    prepare(root)
    return os.path.dirname(root)


def fresh(template, place):
    shutil.rmtree(place / "struck", ignore_errors=True)
    shutil.copytree(template, place / "struck")
    return str(place / "struck" / "artifacts")


def has_all(root, contents):
    store = Objects(root)
    for data in contents:
        assert store.read(digest_of(data)) == data
    store.close()


def recovers(root, act, before, after):
    """What anybody finds who comes next, and that the same once more succeeds."""
    has_all(root, before)
    store = Objects(root)
    assert list(store.verify()) == []
    stored(store, b"the next batch")
    assert list(store.verify()) == []
    store.close()
    act(root)
    has_all(root, [*before, *after])
    keep = {digest_of(data) for data in (*before, *after)}
    store = Objects(root)
    store.collect(keep, dry_run=False)
    assert {digest for digest in store.digests() if digest in keep} == keep
    assert {name.split("/")[1] for name in plain_files(root)} <= keep
    assert [name for name in os.listdir(root) if name.endswith(".tmp") or name.startswith(".new-")] == []
    store.close()
    has_all(root, [*before, *after])


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_kill_at_every_call_loses_nothing_that_was_durable(scenario, quick_path):
    prepare, act, before, after = SCENARIOS[scenario]
    template = prepared(quick_path, prepare)
    struck = 0

    for number in count(1):
        died = False
        for strike in (die, die_halfway):
            root = fresh(template, quick_path)

            def work(said, root=root):
                act(root)
                said()

            status, acknowledged = in_child(work, Counter(strike, number))
            if status not in (DONE, NO_WRITE):
                assert status == -signal.SIGKILL
                died = True
                recovers(root, act, [*before, *(after if acknowledged else ())], after)
        if not died:
            break
        struck += 1

    assert struck >= 9


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "lasting"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_full_disk_at_every_call_is_told_and_loses_nothing(scenario, quick_path, lasting):
    prepare, act, before, after = SCENARIOS[scenario]
    template = prepared(quick_path, prepare)
    needs_room = ("write", "fdatasync", "fsync", "open", "mkdir", "rename", "replace", "ftruncate")

    for number in count(1):
        root = fresh(template, quick_path)
        with watching(Counter(failing(errno.ENOSPC, needs_room), number, lasting=lasting)) as counter:
            told: str | None = None
            try:
                act(root)
            except StoreFailed as error:
                told = error.message
        assert told is None or "the disk is full" in told
        recovers(root, act, [*before, *(() if told else after)], after)
        if number > len(counter.calls):
            break

    assert number >= 9


@pytest.mark.parametrize("calls", [("write", "fdatasync"), ("write", "fdatasync", "ftruncate")])
def test_an_open_store_goes_on_after_a_full_disk(quick_path, calls):
    """If not even taking back works, what was refused may be there, and then it is whole."""
    root = str(quick_path / "artifacts")
    store_old(root)
    store = Objects(root)
    refused = 0

    for number in range(1, 6):
        with watching(Counter(failing(errno.ENOSPC, calls), number, lasting=True)):
            try:
                stored(store, b"refused %d" % number)
            except StoreFailed:
                refused += 1
                assert "ftruncate" in calls or digest_of(b"refused %d" % number) not in Objects(root)
        stored(store, b"accepted %d" % number, b"refused %d" % number)
        has_all(root, [*OLD, b"accepted %d" % number, b"refused %d" % number])

    assert refused >= 2
    assert list(store.verify()) == []


def test_a_torn_tail_is_cut(quick_path):
    root = str(quick_path / "artifacts")
    stored(Objects(root), *OLD[1:5])
    path = os.path.join(root, "objects-000001.pack")
    size = os.path.getsize(path)
    with open(path, "ab") as file:
        file.write(b'{"sha256":"%b","form":"raw","bytes":900,"size":900}\nonly the beg' % digest_of(b"x").encode())
    store = Objects(root)
    assert digest_of(b"x") not in store

    stored(store, b"next")

    with open(path, "rb") as file:
        assert file.read()[size:].startswith(b'{"sha256":"' + digest_of(b"next").encode())
    has_all(root, [*OLD[1:5], b"next"])


def test_content_of_somebody_else_is_relied_on_only_once_it_is_synced(quick_path):
    """One appended and did not come to the sync: who finds that content known has to sync it."""
    root = str(quick_path / "artifacts")
    store_old(root)
    halfway = Objects(root)
    with pytest.raises(ZeroDivisionError), halfway.batch(OWNER) as filled:  # noqa: PT012
        for number in range(4):
            filled.add(b"%d" % number * 1_000)
        raise ZeroDivisionError
    store = Objects(root)
    assert digest_of(b"0" * 1_000) in store

    with watching(Counter()) as counter:
        stored(store, b"0" * 1_000)
    assert counter.calls.count("fdatasync") == 1
    with watching(Counter()) as counter:
        stored(store, b"0" * 1_000)
    assert counter.calls == []


def test_a_plain_file_is_durable_before_its_record_is_written(quick_path):
    root = str(quick_path / "artifacts")
    store = Objects(root)
    stored(store, b"the first creates the segment")

    with watching(Counter()) as counter, store.batch(OWNER) as filled:
        filled.add_data_as_file(b"content", name="n")

    made = ["mkdir", "open", "write", "fdatasync"]
    placed = ["mkdir", "fsync", "mkdir", "replace", "fsync", "fsync"]
    assert counter.calls == [*made, *placed, "write", "fdatasync", "open", "write", "rmdir"]
