"""What is wrong with the stored objects, and which files of which checkpoints it concerns."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from detent.core.path_text import to_text
from detent.errors import Corrupt

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.engine.checkpoints.checkpoints import Checkpoints
    from detent.engine.project import Project

Seen = Callable[[int, int], None]
_LIST = "the list of its files"
_ARCHIVE = "what the rollback replaced"


class Use(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    checkpoint: str
    #: The file, as text; or what else of the checkpoint needs the object.
    path: str


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """`digest` is None for bytes that belong to no object that is known."""

    digest: str | None
    where: str
    reason: str
    used_by: list[Use]


def find_damage(project: "Project", seen: Seen | None) -> tuple[int, list[Damage]]:
    """How many objects there are, and what is damaged or missing."""
    objects = project.checkpoints.objects
    found = [Damage(digest=one.digest, where=one.where, reason=one.reason, used_by=[]) for one in objects.verify(seen)]
    there = set(objects.digests())
    search = _Search(project.checkpoints, there, {one.digest: one for one in found if one.digest is not None})
    for session in project.store.sessions():
        try:
            for position in project.checkpoints.positions(session):
                search.look_at(session, position)
        except Corrupt as error:
            found.append(Damage(digest=None, where=f"the journal of {session}", reason=error.message, used_by=[]))
    return len(there), [*found, *(one for one in search.known.values() if one not in found)]


class _Search:
    """Goes through checkpoints and notes what each needs of the objects that are not whole."""

    def __init__(self, checkpoints: "Checkpoints", there: set[str], known: dict[str, Damage]) -> None:
        self._checkpoints = checkpoints
        self._there = there
        self.known = known
        #: What each manifest needs and does not have, because many checkpoints share one.
        self._needs: dict[str, list[tuple[str, str]]] = {}

    def look_at(self, session: str, position: "Position") -> None:
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
            # The manifest, or one that it rests on: the message names it.
            bad = [digest for digest in self.known if digest in error.message]
            yield from ((digest, _LIST) for digest in bad or [manifest])
            return
        for path, entry in files.items():
            if self._is_bad(entry.digest):
                yield entry.digest, to_text(path)

    def _is_bad(self, digest: str) -> bool:
        return digest in self.known or digest not in self._there

    def _damage(self, digest: str) -> Damage:
        missing = Damage(digest=digest, where="", reason=f"object {digest} is missing", used_by=[])
        return self.known.setdefault(digest, missing)
