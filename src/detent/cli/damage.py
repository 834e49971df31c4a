"""Finds damaged and missing objects, and the checkpoints and files that use them."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from detent.core.path_text import to_text
from detent.errors import Corrupt
from detent.render.terminal.damage import Damage, Use

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.engine.checkpoints.checkpoints import Checkpoints
    from detent.engine.project import Project

_LIST = "the list of its files"
_ARCHIVE = "the files that the rollback replaced"


def find_damage(project: "Project", progress: Callable[[int, int], None] | None) -> tuple[int, list[Damage]]:
    """The number of objects, and those that are damaged or missing."""
    objects = project.checkpoints.objects
    damaged = [
        Damage(digest=bad.digest, where=bad.where, reason=bad.reason, used_by=[]) for bad in objects.verify(progress)
    ]
    present = set(objects.digests())
    search = _Search(project.checkpoints, present, {bad.digest: bad for bad in damaged if bad.digest is not None})
    for session in project.store.sessions():
        try:
            for position in project.checkpoints.positions(session):
                search.inspect(session, position)
        except Corrupt as error:
            damaged.append(Damage(digest=None, where=f"the journal of {session}", reason=error.message, used_by=[]))
    return len(present), [*damaged, *(missing for missing in search.known.values() if missing not in damaged)]


class _Search:
    """Records which checkpoints use objects that are damaged or missing."""

    def __init__(self, checkpoints: "Checkpoints", present: set[str], known: dict[str, Damage]) -> None:
        self._checkpoints = checkpoints
        self._present = present
        self.known = known
        #: Bad objects by manifest, because many checkpoints share a manifest.
        self._needs: dict[str, list[tuple[str, str]]] = {}

    def inspect(self, session: str, position: "Position") -> None:
        manifest = position.event.tree.manifest
        if manifest not in self._needs:
            self._needs[manifest] = list(self._needed(manifest))
        archive = position.rollback.archive if position.rollback else None
        needs = [*self._needs[manifest], *([(archive, _ARCHIVE)] if archive and self._is_bad(archive) else [])]
        for digest, path in needs:
            self._damage(digest).used_by.append(Use(session=session, checkpoint=position.event.name, path=path))

    def _needed(self, manifest: str) -> Iterator[tuple[str, str]]:
        try:
            files = self._checkpoints.files(manifest)
        except Corrupt as error:
            # The manifest, or a manifest it builds on: the message names it.
            bad = [digest for digest in self.known if digest in error.message]
            yield from ((digest, _LIST) for digest in bad or [manifest])
            return
        for path, entry in files.items():
            if self._is_bad(entry.digest):
                yield entry.digest, to_text(path)

    def _is_bad(self, digest: str) -> bool:
        return digest in self.known or digest not in self._present

    def _damage(self, digest: str) -> Damage:
        missing = Damage(digest=digest, where="", reason=f"object {digest} is missing", used_by=[])
        return self.known.setdefault(digest, missing)
