"""Files that travel: each checkpoint is sent to a place that all machines reach, before the commit that names it.

A snapshot is named by its session and by the digest of its manifest, so that checkpoints with the same files share it.
A person names the place in detent.toml ([files]); without it nothing leaves this machine.
"""

import hashlib
import os
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from detent.config.place import is_worktree, repository
from detent.core.checkpoint.checkpoint import Taken
from detent.core.checkpoint.manifest import Changes, Entry, Manifest, changes
from detent.core.session.events import CheckpointTaken
from detent.errors import Corrupt, NotFound, Refused, StoreFailed
from detent.objects.manifest_object import Manifests
from detent.objects.restore import Restore, Step
from detent.objects.transport import Transport, decode_manifest, encode_manifest, manifest_objects
from detent.store import disk
from detent.store.port import START, Cursor, Store
from detent.store.scratch import scratch_directory

if TYPE_CHECKING:
    from detent.config.settings import FileSettings
    from detent.engine.project import Project
    from detent.objects.pack import Objects

#: Below the directory of checkpoints: the own repository of git, and the name of the snapshot that was sent last.
_REPOSITORY, _LAST = "travel.git", "travel-last"
#: The manifests that came from other machines.
_BROUGHT = "travel-brought"
_WAY_OUT = 'a person sets it in detent.toml, such as [files] remote = "origin", or url = "s3://bucket/project"'
#: Part of a digest that names a snapshot.
_NAMED = 32
#: The manifests that this process sent or fetched last, by digest: jobs of a worker mostly begin with the same files.
_manifests: dict[str, Manifest] = {}
_MAX_MANIFESTS = 8
#: The owner of large contents that came from another machine, and the bytes that are held in memory on the way.
_OWNER, _AT_ONCE_BYTES = "brought", 64 * 1024 * 1024

#: Before each further try to send a snapshot, and parts of messages which say that another try cannot help.
PAUSES_S = (1.0, 4.0)
_REFUSALS = ("rejected", "denied", "Authentication", "not found", "does not appear to be", "No space left")

#: Checkpoints that are not the newest files of a session.
_NO_HEAD = (Taken.STARTED, Taken.SAFETY)


def open_transport(settings: "FileSettings", root: str, directory: str) -> Transport | None:
    """The transport that the settings name; None if they name none. `directory` is the one of checkpoints.

    A relative place is seen from the project, whichever directory a command is typed in. That of a git remote is seen
    from the top of the repository, as git does.
    """
    if settings.url is not None:
        from detent.objects.url_transport import UrlTransport  # noqa: PLC0415 - an extra

        return UrlTransport(_seen_from(root, settings.url))
    if settings.remote is None:
        return None
    from detent.objects.git_transport import GitTransport  # noqa: PLC0415 - few projects need it

    top = repository(root) or root
    config = os.path.join(top, ".git", "config")
    return GitTransport(
        os.path.join(directory, _REPOSITORY),
        settings.remote,
        top=top,
        config=config if os.path.isfile(config) else None,
    )


def _seen_from(root: str, url: str) -> str:
    """The URL with an absolute path, if it is one of files."""
    scheme, separator, path = url.partition("://")
    if separator and scheme != "file":
        return url
    return "file://" + os.path.join(root, os.path.expanduser(path if separator else url))


class Travel:
    """Sends and brings the files of checkpoints. `objects` are those of this machine."""

    def __init__(self, transport: Transport, objects: "Objects", directory: str) -> None:
        self.transport = transport
        self._objects, self._directory = objects, directory
        self._sent: set[str] = set()

    def send(self, session: str, manifest: str, files: Manifest) -> None:
        """Store the files of a checkpoint in the shared place; durable when this returns."""
        name = snapshot_name(session, manifest)
        if name in self._sent:
            return
        last = disk.read_if_there(os.path.join(self._directory, _LAST))
        base = last.decode() if last else None
        if base != name:
            digests = {entry.digest for entry in files.values()}
            chain = map(self._objects.read, Manifests(self._objects).rests_on(manifest))
            self._send(name, encode_manifest(chain), digests, base)
            # Several jobs of this machine may send at the same time.
            suffix = f".{os.getpid()}-{threading.get_ident()}{disk.TEMPORARY}"
            disk.replace(os.path.join(self._directory, _LAST), name.encode(), suffix=suffix)
        self._sent.add(name)
        _keep(manifest, files)

    def _send(self, name: str, manifest: bytes, digests: Collection[str], base: str | None) -> None:
        """Try again if the place does not answer: the work of an agent would be lost with the commit."""
        for pause_s in PAUSES_S:
            try:
                self.transport.send(name, manifest, digests, self._objects.read, base)
            except StoreFailed as error:
                if any(sign in error.message for sign in _REFUSALS):
                    raise
                time.sleep(pause_s)
            else:
                return
        self.transport.send(name, manifest, digests, self._objects.read, base)

    def files(self, session: str, manifest: str) -> Manifest:
        """The files of a checkpoint that a commit names, whichever machine took it."""
        files, name = _manifests.get(manifest), snapshot_name(session, manifest)
        if files is None:
            files = decode_manifest(self._fetched(session, manifest), name)
            _keep(manifest, files)
        # It was sent before that commit.
        self._sent.add(name)
        return files

    def bring(self, session: str, manifest: str) -> None:
        """Store the manifest of a checkpoint of another machine here."""
        data = self._fetched(session, manifest)
        note = os.path.join(self._directory, _BROUGHT)
        with disk.failing_as("write", note):
            disk.make_directory(self._directory)
            with open(note, "ab") as file:
                file.write(f"{manifest}\n".encode())
        with self._objects.batch(_OWNER) as batch:
            for each in manifest_objects(data).values():
                batch.add(each)

    def was_brought(self, manifest: str) -> bool:
        """Whether another machine took the checkpoint."""
        brought = disk.read_if_there(os.path.join(self._directory, _BROUGHT)) or b""
        return manifest not in self._objects or manifest.encode() in brought.splitlines()

    def bring_contents(self, session: str, manifest: str, entries: Iterable[Entry]) -> None:
        """Store the contents of files of a checkpoint of another machine here."""
        waiting: dict[str, int] = {entry.digest: entry.size for entry in entries if entry.digest not in self._objects}
        while waiting:
            digests: list[str] = []
            size = 0
            while waiting and size < _AT_ONCE_BYTES:
                digest, length = waiting.popitem()
                digests.append(digest)
                size += length
            contents = self.contents(session, manifest, digests)
            with self._objects.batch(_OWNER) as batch:
                for data in contents.values():
                    batch.add(data)

    def _fetched(self, session: str, manifest: str) -> bytes:
        name = snapshot_name(session, manifest)
        data = self.transport.fetch(name)
        if data is None:
            raise NotFound(
                f"the files of the checkpoint {name} are not in the shared place",
                way_out="take a checkpoint on the machine that has them: detent checkpoint create",
            )
        if next(iter(manifest_objects(data)), "") != manifest:
            raise Corrupt(f"the manifest of the snapshot {name} is damaged")
        return data

    def contents(self, session: str, manifest: str, digests: Iterable[str]) -> Mapping[str, bytes]:
        """Objects of a checkpoint, each compared with its digest."""
        name = snapshot_name(session, manifest)
        missing = {digest for digest in digests if digest not in self._objects}
        if not missing:
            return {}
        self._fetched(session, manifest)
        contents = dict(self.transport.objects(name, missing))
        for digest, data in contents.items():
            if hashlib.sha256(data).hexdigest() != digest:
                raise Corrupt(f"the object {digest} of the snapshot {name} is damaged")
        return contents


def _keep(manifest: str, files: Manifest) -> None:
    _manifests[manifest] = files
    for old in list(_manifests)[:-_MAX_MANIFESTS]:
        _manifests.pop(old, None)


def snapshot_name(session: str, manifest: str) -> str:
    return f"{session}/{manifest[:_NAMED]}"


class Head:
    """Follows the newest checkpoint of a session in its journal."""

    def __init__(self, store: Store, session: str) -> None:
        self._store, self._session = store, session
        self._cursor: Cursor = START
        self._manifest: str | None = None

    def manifest(self) -> str:
        more = True
        while more:
            commits, self._cursor, _, more = self._store.read(self._session, self._cursor)
            for event in (event for commit in commits for event in commit.events):
                if isinstance(event, CheckpointTaken) and (self._manifest is None or event.taken not in _NO_HEAD):
                    self._manifest = event.tree.manifest
        if self._manifest is None:
            raise NotFound(
                f"{self._session} has no checkpoint, so no other machine can get its files",
                way_out='set capture = "tree" below [checkpoint] in detent.toml',
            )
        return self._manifest


def differing(project: "Project", session: str) -> Changes:
    """The differences between the files here and those of the newest checkpoint, whichever machine took it."""
    newest = travel_of(project).files(session, Head(project.store, session).manifest())
    return changes(newest, project.checkpoints.capture(session, store=False).files)


def travel_of(project: "Project") -> Travel:
    """`Refused` if no shared place is set."""
    travel = project.checkpoints.travel
    if travel is None:
        raise Refused("no place is set that all machines reach", way_out=_WAY_OUT)
    return travel


def put(
    project: "Project", session: str, manifest: str, files: Manifest, only: Iterable[str] | None = None
) -> list[str]:
    """Make the files of the project those of a checkpoint, byte for byte; with `only`, these paths. Ignored files stay.

    All are changed, or none. Returns the paths that were not there before.
    """
    checkpoints = project.checkpoints
    # To undo a step needs the content that it replaced. The tree of a worker is made anew instead.
    present = checkpoints.capture(session, store=not is_worktree(project.place))
    paths = {*present.files, *files} if only is None else set(only)
    steps = [
        Step(path, before, after)
        for path in sorted(paths)
        if (before := present.files.get(path)) != (after := files.get(path))
    ]
    if not steps:
        return []
    wanted = {step.after.digest for step in steps if step.after is not None}
    contents = travel_of(project).contents(session, manifest, wanted)
    with scratch_directory("bring", checkpoints.root) as directory:
        staging = os.path.join(directory, "staging")
        Restore(project.place.base, checkpoints.objects, staging).apply(steps, present.rows, contents)
    return [step.path for step in steps if step.before is None]
