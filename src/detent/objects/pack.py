"""Content by its SHA-256, stored once, never changed: to content what the journal is to events.

Small objects share segments, so that ten thousand of them cost one sync; large ones are plain files. Knows nothing
of checkpoints: who wants what is told when garbage is collected.
"""

from collections.abc import Callable, Container, Iterator

from detent.errors import Corrupt
from detent.objects import collection, content, inspection, plain
from detent.objects.batch import Batch
from detent.objects.collection import Collected
from detent.objects.inspection import Damaged
from detent.objects.record import FILE
from detent.objects.segments import Segments
from detent.store import disk

__all__ = ["Batch", "Collected", "Damaged", "Objects"]


class Objects:
    """Threads may share it, and processes the directory: what one stored the others see."""

    def __init__(self, root: str, *, compress: bool = False) -> None:
        self.root = root
        self._compress = compress
        self._segments = Segments(root)

    def __contains__(self, digest: str) -> bool:
        """Whether it is where it should be. That it is whole shows only when it is read."""
        return self._segments.header(digest) is not None

    def size(self, digest: str) -> int | None:
        """The length of the content; None if there is no such object."""
        header = self._segments.header(digest)
        return None if header is None else header.size

    def read(self, digest: str) -> bytes:
        """Corrupt if it is missing or damaged."""
        return content.resolve(digest, self._segments.fetch, self.root)

    def check(self, digest: str) -> None:
        """Corrupt if it is missing or damaged. A plain file is never in memory as a whole."""
        header, _ = self._segments.fetch(digest)
        if header.form != FILE:
            self.read(digest)
            return
        with plain.opened(header, self.root):
            pass

    def copy_to(self, digest: str, fd: int) -> None:
        """Write the content to an open descriptor; nothing of it if it is missing or damaged."""
        header, _ = self._segments.fetch(digest)
        if header.form != FILE:
            data = self.read(digest)
            with disk.failing_as("write", f"the content of {digest}"):
                disk.write_all(fd, data)
            return
        with plain.opened(header, self.root) as reading, disk.failing_as("write", f"the content of {digest}"):
            plain.copy_out(reading, fd, header.size)

    def batch(self, owner: str) -> Batch:
        """On leaving it without an exception, everything that was added is durable."""
        return Batch(self._segments, owner, compress=self._compress)

    def digests(self) -> Iterator[str]:
        self._segments.refresh()
        return (key.hex() for key in list(self._segments.places))

    def verify(self, seen: Callable[[int, int], None] | None = None) -> Iterator[Damaged]:
        """Hash every object; `seen` is told how many were looked at, and of how many."""
        return inspection.inspect(self._segments, self._fault, seen)

    def collect(self, keep: Container[str], *, dry_run: bool) -> Collected:
        """Remove what is not in `keep`, nor needed by what is."""
        return collection.collect(self._segments, keep, dry_run=dry_run)

    def close(self) -> None:
        self._segments.close()

    def _fault(self, digest: str) -> str | None:
        try:
            self.check(digest)
        except Corrupt as error:
            return error.message
        return None
