"""The record of a session, for verifying it: the session of a project, or a bundle."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

from detent.core.session.events import Commit
from detent.engine.bundles import contents, exporting
from detent.engine.bundles.bundle_file import FILES, GitTree, Reader
from detent.engine.gates.stored import EVIDENCE

if TYPE_CHECKING:
    from detent.engine.project import Project
    from detent.objects.manifest_object import Readable


class Record(Protocol):
    session: str
    #: The files that the record is about, as git names them; None if that is not known.
    git: GitTree | None
    #: The objects of manifests.
    objects: "Readable"

    def lines(self) -> Iterator[tuple[Commit, str]]:
        """The commits, each with the sum of its line. Raises `Corrupt` at the first that is damaged."""
        ...

    def evidence(self, digest: str) -> bytes | None:
        """The stored evidence of that name, as it is; None if there is none."""
        ...


class BundleRecord:
    """A bundle whose every byte was verified."""

    def __init__(self, reader: Reader) -> None:
        header = reader.header
        self.session, self.git = header.session, header.git
        self.objects: Readable = contents.BundledObjects(reader)
        self._reader = reader

    def lines(self) -> Iterator[tuple[Commit, str]]:
        return contents.lines(self._reader)

    def evidence(self, digest: str) -> bytes | None:
        name = f"{FILES}{EVIDENCE}/{digest}"
        return self._reader.read(name) if name in self._reader.parts else None


class StoreRecord:
    """A session of a project."""

    git: GitTree | None = None

    def __init__(self, project: "Project", session: str) -> None:
        self.session = session
        self.objects: Readable = project.checkpoints.objects
        self._store = project.store

    def lines(self) -> Iterator[tuple[Commit, str]]:
        return ((line.commit, line.sum) for line in exporting.lines(self._store, self.session))

    def evidence(self, digest: str) -> bytes | None:
        return self._store.get(f"{self.session}/{EVIDENCE}/{digest}")
