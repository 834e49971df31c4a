"""Captures a tree for a checkpoint: stores the contents of its files and a manifest of them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import NamedTuple

from detent.core.checkpoint.checkpoint import Tree
from detent.core.checkpoint.manifest import Entry
from detent.objects import manifest_object
from detent.objects.manifest_object import Contents, Manifests
from detent.objects.pack import Hashing, Objects
from detent.objects.stat_cache import NAMED, Recorded, Row
from detent.objects.universe import EPOCH, Look, Moment, Progress, Request, Sink, Universe
from detent.store import disk


class Captured(NamedTuple):
    tree: Tree
    files: Mapping[str, Entry]
    left_out: Mapping[str, str]
    #: The stat of each file, by which a later change is detected.
    rows: Mapping[str, Row]
    #: What the checkpoint before it left out.
    left_out_before: Mapping[str, str]


class Captures:
    """Captures one universe into one store."""

    def __init__(self, universe: Universe, objects: Objects) -> None:
        self._universe = universe
        self._objects = objects
        self.manifests = Manifests(objects)

    def take(
        self,
        owner: str,
        *,
        declared: Iterable[str] = (),
        also: Iterable[str] = (),
        progress: Progress | None = None,
        store: bool = True,
        moment: Moment | None = None,
    ) -> Captured:
        """Capture the present tree, or that of `moment`; durable unless `store` is off.

        `declared` and `also` name files that are taken even if the rules leave them out. Declared files are stored as
        plain files; the others may have any size.
        """
        universe = self._universe
        only_declared = universe.scope.declared_only
        request = Request(declared=frozenset(declared), also=frozenset(also), whole=not only_declared)
        moment = moment or Moment(universe)
        with ExitStack() as stack:
            sink = _opened_once(stack, lambda: self.storing(owner) if store else _hashing())
            look = moment.look(request, sink, progress=progress)
            cache = universe.cache()
            recorded = cache.recorded
            if store and recorded.manifest and recorded.manifest not in self._objects:
                # The segments are gone: nothing of the last capture counts as stored.
                recorded = Recorded()
            left_out_before = recorded.left_out
            is_comparable = recorded.manifest and recorded.rules == self._rules(look)
            before = recorded.files
            # Only these paths can differ from the last manifest.
            paths = cache.dirty | look.forced | (cache.named & before.keys())
            if not is_comparable:
                paths = paths.union(look.rows, before)
            taken = _selection(look, request)
            now = {path: look.rows[path].entry for path in paths if taken(path)}
            changed = {path: entry for path, entry in now.items() if before.get(path) != entry}
            unstored = [path for path, entry in changed.items() if not sink().knows(entry.digest)]
            if unstored:
                look = universe.read_again(look, unstored, request.declared, sink)
                moment.update(look)
                changed |= {path: look.rows[path].entry for path in unstored if path in look.rows}
                for path in unstored:
                    if path not in look.rows:
                        del now[path], changed[path]
            gone = {path for path in paths if path in before and path not in now}
            left_out = look.left_out
            if only_declared:
                left_out = {path: reason for path, reason in left_out.items() if _is_inside(path, request.paths)}
            if changed or gone or left_out != recorded.left_out or not recorded.manifest:
                files = {**before, **changed}
                for path in gone:
                    del files[path]
                base = (recorded.manifest, recorded.depth) if recorded.manifest else None
                digest, depth = manifest_object.write(sink(), files, changed, gone, left_out, base=base)
                size = recorded.bytes + sum(
                    entry.size - (before[path].size if path in before else 0) for path, entry in changed.items()
                )
                size -= sum(before[path].size for path in gone)
                recorded = Recorded(digest, depth, left_out, self._rules(look), files, size)
            elif not is_comparable:
                recorded = recorded._replace(rules=self._rules(look))
        if store:
            universe.record(recorded, look)
        self.manifests.keep(recorded.manifest, Contents(recorded.files, recorded.left_out))
        tree = Tree(
            manifest=recorded.manifest, files=len(recorded.files), bytes=recorded.bytes, left_out=len(recorded.left_out)
        )
        return Captured(tree, recorded.files, recorded.left_out, look.rows, left_out_before)

    def store_manifest(self, owner: str, files: dict[str, Entry], like: Captured, listing: bytes) -> tuple[Tree, str]:
        """Store a manifest of files whose contents are stored already, and a listing."""
        recorded = self._universe.cache().recorded
        base = (recorded.manifest, recorded.depth) if recorded.manifest == like.tree.manifest else None
        changed = {path: entry for path, entry in files.items() if like.files.get(path) != entry}
        with self.storing(owner) as batch:
            gone = like.files.keys() - files.keys()
            digest, _ = manifest_object.write(batch, files, changed, gone, like.left_out, base=base)
            archive = batch.add(listing)
        size = sum(entry.size for entry in files.values())
        self.manifests.keep(digest, Contents(files, like.left_out))
        return Tree(manifest=digest, files=len(files), bytes=size, left_out=len(like.left_out)), archive

    def set_epoch(self, epoch: int) -> None:
        """Begin another epoch: objects of an earlier one may be gone."""
        root = self._universe.root
        path = os.path.join(root, EPOCH)
        with disk.failing_as("write", path):
            disk.make_directory(root)
            disk.replace(path, b"%d" % epoch, durable=True)
        self._universe.forget()

    def epoch(self) -> int:
        return self._universe.epoch()

    @contextmanager
    def storing(self, owner: str) -> Iterator[Sink]:
        root = self._universe.root
        with disk.failing_as("create", root):
            disk.make_directory(root)
        with self._objects.batch(owner) as batch:
            yield batch

    def _rules(self, look: Look) -> str:
        return look.rules + ("-declared" if self._universe.scope.declared_only else "")


def _selection(look: Look, request: Request) -> Callable[[str], bool]:
    """A test whether a path of the look belongs to the request: a moment may hold files of other requests."""
    named = request.paths

    def is_taken(path: str) -> bool:
        row = look.rows.get(path)
        if row is None or (row.origin == NAMED and path not in look.forced):
            return False
        return (row.origin != NAMED and request.whole) or _is_inside(path, named)

    return is_taken


def _is_inside(path: str, named: frozenset[str]) -> bool:
    return path in named or any(name == "." or path.startswith(f"{name.rstrip('/')}/") for name in named)


def _opened_once(stack: ExitStack, opening: Callable[[], AbstractContextManager[Sink]]) -> Callable[[], Sink]:
    opened: list[Sink] = []

    def sink() -> Sink:
        if not opened:
            opened.append(stack.enter_context(opening()))
        return opened[0]

    return sink


@contextmanager
def _hashing() -> Iterator[Sink]:
    yield Hashing()
