"""Random adds, edits, reopenings, collections and losses of the index, against a dictionary."""

import hashlib
import os
import tempfile
from unittest import mock

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from detent.objects import pack, segments
from detent.objects.pack import Objects
from tests.support.campaign import examples

OWNER = "owner"
contents = st.binary(max_size=60) | st.builds(
    lambda unit, times: unit * times, st.binary(max_size=8), st.integers(0, 400)
)
names = (
    st.binary(min_size=1, max_size=12)
    .map(os.fsdecode)
    .filter(lambda n: n not in (".", "..") and not {"/", "\0"} & {*n})
)


class Store(RuleBasedStateMachine):
    known = Bundle("known")

    @initialize(compress=st.booleans())
    def create(self, compress):
        self.directory = tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        self.limits = mock.patch.multiple(pack, BUFFER_BYTES=1_500, LARGE_BYTES=2_000)
        self.segment_limit = mock.patch.object(segments, "SEGMENT_BYTES", 5_000)
        self.limits.start()
        self.segment_limit.start()
        self.root = os.path.join(self.directory.name, "artifacts")
        self.compress = compress
        self.stores = [Objects(self.root, compress=compress), Objects(self.root)]
        self.model = {}

    @rule(target=known, which=st.integers(0, 1), data=st.lists(contents, max_size=5))
    def add(self, which, data):
        with self.stores[which].batch(OWNER) as filled:
            found = [filled.add(one) for one in data]
        self.model |= dict(zip(found, data, strict=True))
        return multiple(*found)

    @rule(target=known, which=st.integers(0, 1), like=known, edits=st.lists(st.tuples(contents, st.integers(0, 400))))
    def edit(self, which, like, edits):
        with self.stores[which].batch(OWNER) as filled:
            for inserted, at in edits:
                data = self.model.get(like, b"")
                data = data[:at] + inserted + data[at:]
                like = filled.add(data, like=like)
                self.model[like] = data
        return like if like in self.model else multiple()

    @rule(target=known, which=st.integers(0, 1), data=contents, name=names)
    def add_file(self, which, data, name):
        with self.stores[which].batch(OWNER) as filled:
            digest = filled.add_data_as_file(data, name=name)
        self.model[digest] = data
        return digest

    @rule(which=st.integers(0, 1), data=st.lists(contents, max_size=4))
    def give_up(self, which, data):
        try:
            with self.stores[which].batch(OWNER) as filled:
                for one in data:
                    filled.add(one)
                raise KeyError
        except KeyError:
            pass

    @rule(which=st.integers(0, 1))
    def reopen(self, which):
        self.stores[which].close()
        self.stores[which] = Objects(self.root, compress=self.compress)

    @rule(which=st.integers(0, 1), keep=st.sets(known))
    def collect(self, which, keep):
        foreseen = self.stores[which].collect(keep, dry_run=True)
        assert self.stores[which].collect(keep, dry_run=False) == foreseen
        left = set(self.stores[which].digests())
        assert keep & self.model.keys() <= left
        self.model = {digest: data for digest, data in self.model.items() if digest in left}
        assert self.stores[which].collect(keep, dry_run=True) == (0, 0)

    @rule()
    def lose_the_index(self):
        if os.path.exists(self.root + "/objects.idx"):
            os.unlink(self.root + "/objects.idx")

    @rule(size=st.integers(0, 1_000))
    def cut_the_index(self, size):
        if os.path.exists(self.root + "/objects.idx"):
            os.truncate(self.root + "/objects.idx", min(size, os.path.getsize(self.root + "/objects.idx")))

    @rule(data=st.binary(min_size=1, max_size=50))
    def tear_the_tail(self, data):
        packs = sorted(name for name in (os.listdir(self.root) if os.path.exists(self.root) else ()) if "pack" in name)
        if packs:
            with open(os.path.join(self.root, packs[-1]), "ab") as file:
                file.write(b'{"sha256":"' + data)

    @invariant()
    def agrees(self):
        for store in getattr(self, "stores", ()):
            for digest, data in self.model.items():
                assert store.read(digest) == data
                assert store.size(digest) == len(data)
                assert digest in store
            for digest in store.digests():
                assert hashlib.sha256(store.read(digest)).hexdigest() == digest
            assert list(store.verify()) == []

    def teardown(self):
        for store in getattr(self, "stores", ()):
            store.close()
        if hasattr(self, "directory"):
            self.limits.stop()
            self.segment_limit.stop()
            self.directory.cleanup()


TestStore = Store.TestCase
TestStore.settings = settings(max_examples=examples(40), stateful_step_count=25, deadline=None)
