"""The checkpoints of a project: takes them, finds them, and restores the session at each of them."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from detent.clients.registry import client_files
from detent.config.place import CHECKPOINTS, INTENT, Place, is_worktree
from detent.config.settings import CheckpointSettings
from detent.core.checkpoint.checkpoint import Taken, Tree
from detent.core.checkpoint.manifest import Entry, Manifest
from detent.core.counted import listed
from detent.core.path_text import to_text
from detent.core.session.events import CheckpointTaken, Commit, RolledBack
from detent.core.session.evolve import apply, evolve
from detent.core.session.phase_state import is_of_worker
from detent.core.session.session import Session
from detent.documents.checkpoint import Position
from detent.errors import Conflict, Invalid, NotFound, Refused
from detent.objects.capture import Captured, Captures
from detent.objects.pack import Objects
from detent.objects.universe import MAY_HOLD_SECRETS, Moment, Progress, Scope, Universe
from detent.store.port import PROJECT, START, Store, all_commits

if TYPE_CHECKING:
    from detent.engine.checkpoints.travel import Travel
    from detent.objects.maintenance import Collected
    from detent.objects.manifest_object import Contents

ARTIFACTS = "artifacts"
#: Names the present files where a checkpoint is expected.
NOW = "now"
_SHORTEST_ID = 6
#: Files that one notice names.
_MAX_NAMED = 5
#: The commits among which the checkpoint of a session's start is.
_FIRST_COMMITS = 20
#: Age at which a look is no longer shared. A capture may be as old when its commit has waited for the lock.
_FRESH_S = 0.1


class Checkpoints:
    """The objects and captures that all sessions of a project share."""

    def __init__(self, store: Store, place: Place, settings: CheckpointSettings) -> None:
        self._store = store
        self.settings = settings
        self.root = store.directory(CHECKPOINTS)
        self.base = place.base
        self.objects = Objects(os.path.join(self.root, ARTIFACTS), compress=settings.compress)
        self.universe = Universe(self.root, scope_of(place, settings), cache=_cache_name(place))
        self.captures = Captures(self.universe, self.objects)
        self._latest: tuple[Moment, str, int, float] | None = None
        #: Gets the number of captured files and of all files.
        self.progress: Progress | None = None
        #: For a person; none of them stopped anything.
        self.notices: list[str] = []
        #: Sends the files of each checkpoint to a place that other machines reach, if a person set one.
        self.travel: Travel | None = None

    def close(self) -> None:
        self.universe.save()
        self.objects.close()

    def moment(self, owner: str | None = None) -> Moment:
        """A look at the files for evidence and a checkpoint; with an owner it stores the contents that it reads."""
        if owner is not None:
            self.universe.is_lasting = True
        if owner is None or self.settings.capture == "off":
            return Moment(self.universe)
        return Moment(self.universe, lambda: self.captures.storing(owner))

    def remember(self, moment: Moment, session: str, version: int) -> None:
        """A checkpoint of the moment was committed as this version of the session."""
        self._latest = moment, session, version, time.monotonic()

    def recall(self, session: str, version: int) -> Moment | None:
        """The moment of the checkpoint that was committed last, if nothing was committed since and it is fresh."""
        if self._latest is None:
            return None
        moment, *committed, since_s = self._latest
        return moment if committed == [session, version] and time.monotonic() - since_s < _FRESH_S else None

    def tree(
        self,
        owner: str,
        session: Session | None = None,
        artifacts: Iterable[str] = (),
        *,
        moment: Moment | None = None,
    ) -> Tree:
        """Store the present files, or those of `moment`; the files of a session are durable on other machines too."""
        captured = self.capture(owner, session, artifacts, moment=moment)
        if self.travel is not None and session is not None:
            self.travel.send(session.id, captured.tree.manifest, captured.files)
        return captured.tree

    def send(self, session: str, tree: Tree) -> None:
        """Send the files of a checkpoint that is stored here, if a place is set."""
        if self.travel is not None:
            self.travel.send(session, tree.manifest, self.files(tree.manifest))

    def capture(
        self,
        owner: str,
        session: Session | None = None,
        artifacts: Iterable[str] = (),
        *,
        also: Iterable[str] = (),
        store: bool = True,
        moment: Moment | None = None,
    ) -> Captured:
        declared = {*(session.declared if session else ()), *artifacts}
        captured = self.captures.take(
            owner, declared=declared, also=also, progress=self.progress, store=store, moment=moment
        )
        if store:
            self._tell_secrets(captured.left_out, captured.left_out_before)
        return captured

    def _tell_secrets(self, left_out: Mapping[str, str], before: Mapping[str, str]) -> None:
        """Say once of each file that may hold secrets that no checkpoint has it."""
        new = sorted(
            to_text(path) for path, reason in left_out.items() if reason == MAY_HOLD_SECRETS and path not in before
        )
        if new:
            self.notices.append(
                f"not in checkpoints, because they may hold secrets: {listed(new, _MAX_NAMED)}; "
                "let git ignore them, or name them in secrets of [checkpoint] in detent.toml"
            )

    def bring(
        self, session: str, manifest: str, wanted: Callable[[Manifest], Iterable[Entry]] = lambda _: ()
    ) -> Manifest:
        """The files of a checkpoint, whichever machine took it. The contents of the wanted ones can be read then."""
        if not self._store.is_shared:
            return self.files(manifest)
        if manifest not in self.objects:
            self._travel(session).bring(session, manifest)
        files = self.files(manifest)
        if missing := [entry for entry in wanted(files) if entry.digest not in self.objects]:
            self._travel(session).bring_contents(session, manifest, missing)
        return files

    def newest_elsewhere(self, session: Session, phase: str) -> Position | None:
        """The newest checkpoint of an attempt whose files another machine has; None if they are here, or nowhere else.

        The files of a job of a worker are in a tree of its own, on whichever machine.
        """
        if not self._store.is_shared or self.travel is None:
            return None
        own = [position for position in self.positions(session.id) if position.event.phase == phase]
        if not own or own[-1].event.taken is Taken.STARTED:
            return None
        state = session.phases[phase]
        by_worker = any(is_of_worker(delegation.agent_id) for delegation in state.delegations)
        return own[-1] if by_worker or self.travel.was_brought(own[-1].event.tree.manifest) else None

    def _travel(self, session: str) -> "Travel":
        if self.travel is None:
            raise Refused(
                f"another machine took this checkpoint of {session}, and its files are not in a shared place",
                way_out='do it there; or set [files] in detent.toml of both, such as remote = "origin": '
                "later checkpoints can then be used everywhere",
            )
        return self.travel

    def contents(self, digest: str) -> "Contents":
        return self.captures.manifests.read(digest)

    def files(self, digest: str) -> Manifest:
        return self.contents(digest).files

    def missing(self, manifest: str, seen: set[str]) -> list[str]:
        """The paths of the checkpoint whose objects are missing. Objects in `seen` were checked before."""
        paths: list[str] = []
        if manifest in seen:
            return paths
        for path, entry in self.files(manifest).items():
            if entry.digest not in seen:
                seen.add(entry.digest)
                if entry.digest not in self.objects:
                    paths.append(f"{to_text(path)} (object {entry.digest})")
        seen.add(manifest)
        return paths

    def named(self) -> set[str]:
        """Every object that a checkpoint, an archive or an unfinished rollback of any session names."""
        objects: set[str] = set()
        manifests: set[str] = set()
        for session in self._store.sessions():
            for commit in all_commits(self._store, session):
                for event in commit.events:
                    if isinstance(event, CheckpointTaken):
                        manifests.add(event.tree.manifest)
                    elif isinstance(event, RolledBack) and event.archive is not None:
                        objects.add(event.archive)
        for manifest in manifests:
            if manifest in self.objects or not self._store.is_shared:
                objects.update(self.captures.manifests.named(manifest))
        return objects

    def collect(self, *, dry_run: bool) -> "Collected":
        """Remove objects that no session names: those of refused commands and of removed sessions."""
        if dry_run:
            return self.objects.collect(self.named(), dry_run=True)
        with self._store.lock(PROJECT):
            if self._store.get(INTENT) is not None:
                raise Refused(
                    "a rollback was interrupted and must be finished first", way_out="detent adopt finishes it"
                )
            epoch = self.captures.epoch() // 2 * 2
            # Odd: captures from here on are not committed. Those that were checked before are in the journal as soon
            # as the lock of their session is free.
            self.captures.set_epoch(epoch + 1)
            for session in self._store.sessions():
                with self._store.lock(session):
                    pass
            try:
                return self.objects.collect(self.named(), dry_run=False)
            finally:
                self.captures.set_epoch(epoch + 2)

    def epoch(self) -> int:
        """The epoch to capture in. Waits for a running collection, and ends an interrupted one."""
        epoch = self.captures.epoch()
        if epoch % 2:
            with self._store.lock(PROJECT):
                epoch = self.captures.epoch()
                if epoch % 2:
                    epoch += 1
                    self.captures.set_epoch(epoch)
        return epoch

    def check_current(self, epoch: int) -> None:
        """`Conflict` if objects were collected since `epoch`: those of an earlier capture may be gone."""
        if self.captures.epoch() != epoch:
            raise Conflict("unused objects were removed meanwhile", way_out="repeat the command")

    def stored_bytes(self) -> int:
        """The size of all objects on disk."""
        sizes = (
            os.lstat(os.path.join(directory, name)).st_size
            for directory, _, names in os.walk(self.objects.root)
            for name in names
        )
        return sum(sizes)

    # Positions

    def positions(self, session: str) -> list[Position]:
        """Every checkpoint of the session, oldest first."""
        return [position for commit in all_commits(self._store, session) for position in positions_of(commit)]

    def first(self, session: str) -> Position | None:
        """The checkpoint of the session's start, if one was taken. Reads only the beginning of the journal."""
        commits = self._store.read(session, START, limit=_FIRST_COMMITS).commits
        return next((position for commit in commits for position in positions_of(commit)), None)

    def find(self, session: str, name: str, known: list[Position] | None = None) -> Position:
        """The checkpoint by its id, the start of its id, or its name. `known` saves reading the journal."""
        if known is None:
            known = self.positions(session)
        wanted = name.strip()
        for position in known:
            if wanted in (position.event.id, position.event.name):
                return position
        close = [
            position
            for position in known
            if (len(wanted) >= _SHORTEST_ID and position.event.id.startswith(wanted.lower()))
            or position.event.name.lower() == wanted.lower()
        ]
        if len(close) == 1:
            return close[0]
        if close:
            listed = ", ".join(f"{position.event.id[:12]} ({position.event.name})" for position in close[:5])
            raise Invalid(f"{wanted!r} may be any of {len(close)} checkpoints: {listed}")
        raise NotFound(
            f"{session} has no checkpoint {wanted[:80]!r}{_suggestion(wanted, known)}",
            way_out="detent checkpoint list",
        )

    def past(self, session: str, position: Position) -> Session:
        """The session at the checkpoint."""
        before: Session | None = None
        for commit in all_commits(self._store, session):
            if commit.version == position.version:
                return next(then for at, then in sessions_at(before, commit) if at.event.id == position.event.id)
            before = evolve(before, commit)
        raise NotFound(f"the journal of {session} has no commit {position.version}")


def positions_of(commit: Commit) -> Iterator[Position]:
    rollback = next((event for event in commit.events if isinstance(event, RolledBack)), None)
    for event in commit.events:
        if isinstance(event, CheckpointTaken):
            yield Position(event, commit.version, commit.at, commit.actor, rollback)


def sessions_at(before: Session | None, commit: Commit) -> Iterator[tuple[Position, Session]]:
    """Each checkpoint of the commit with the session at it; `before` is the session before the commit."""
    positions = {position.event.id: position for position in positions_of(commit)}
    session = before
    for event in commit.events if positions else ():
        session = apply(session, event, at=commit.at, version=commit.version, actor=commit.actor)
        if isinstance(event, CheckpointTaken):
            yield positions[event.id], session


def _cache_name(place: Place) -> str:
    """The stat cache of a tree; each worktree has its own."""
    return ".stat-cache" + (f"-{os.path.basename(place.base)}" if is_worktree(place) else "")


def scope_of(place: Place, settings: CheckpointSettings) -> Scope:
    """The rules for the files of a project."""
    return Scope(
        base=place.base,
        exclude=settings.exclude,
        own=frozenset(client_files()) if place.project is None else frozenset(),
        declared_only=settings.capture == "declared",
        secrets=settings.secrets,
        max_bytes=settings.max_file_mb * 1024 * 1024,
    )


def _suggestion(wanted: str, known: list[Position]) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a misspelling needs it

    close = get_close_matches(wanted, [position.event.name for position in known], n=1)
    return f"; did you mean {close[0]}?" if close else ""
