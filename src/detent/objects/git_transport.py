"""Snapshots as hidden refs of a git remote: `refs/detent/SESSION/CHECKPOINT`.

git works in a repository of Detent's own, which is bare and below the state directory: nothing is added to the user's
repository. A snapshot is a commit without a parent, so that removing its ref frees it. Its tree holds each object under
its SHA-256, and the manifest with the paths, modes and links. So every name and mode that a file system has survives.
"""

import os
import shlex
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from detent import process
from detent.core.redact import redact
from detent.errors import Corrupt, Refused, StoreFailed
from detent.process.git import environment, last_lines
from detent.store import disk

REFS = "refs/detent"
MANIFEST = "manifest"
#: Limits of one call of git.
TIMEOUT_S = 600.0
_MAX_BYTES = 1 << 20
#: Refs that one call removes.
_AT_ONCE = 200
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"
#: Only the ref is pushed, and no hook of the repository runs: it may expect a branch.
_PUSH = "git -c push.followTags=false -c push.recurseSubmodules=no push --quiet --no-verify --"
_COMMITTER = b"committer Detent <detent@localhost> 0 +0000\n"
_ABSENT = "couldn't find remote ref"
#: A push that meets another one of the same ref, and the pauses before it is repeated.
_TAKEN, _PAUSES_S = "cannot lock ref", (0.1, 0.5)


class _Known(NamedTuple):
    """A snapshot in the own repository: the id of its tree, and the objects in it."""

    tree: bytes
    digests: frozenset[str]


#: The snapshots that this process sent last, by the own repository and the name.
_known: dict[tuple[str, str], _Known] = {}
_MAX_KNOWN = 8


class GitTransport:
    def __init__(self, directory: str, remote: str, *, top: str, config: str | None = None) -> None:
        """`directory` is the own repository. A relative path of the remote is seen from `top`.

        `config` is that of the user's repository, which knows the remote by its name.
        """
        self._directory, self._remote, self._top = directory, remote, top
        if not os.path.exists(os.path.join(directory, "HEAD")):
            self._make(config)

    def send(
        self, name: str, manifest: bytes, digests: Collection[str], read: Callable[[str], bytes], base: str | None
    ) -> None:
        if base is not None and base.rpartition("/")[2] == name.rpartition("/")[2] and self._send_again(name, base):
            return
        known = self._known_tree(base) if base is not None else None
        for pause_s in _PAUSES_S:
            try:
                self._send(name, manifest, digests, read, known)
            except StoreFailed as error:
                if _TAKEN in error.message:
                    # Another job sends the same files at the same moment. Then they are there, or can be sent again.
                    time.sleep(pause_s)
                elif known is None:
                    raise
                # Without a base: another process may have removed its objects since.
                known = None
            else:
                return
        self._send(name, manifest, digests, read, None)

    def _send(
        self,
        name: str,
        manifest: bytes,
        digests: Collection[str],
        read: Callable[[str], bytes],
        known: "_Known | None",
    ) -> None:
        ref = _ref(name)
        with tempfile.TemporaryDirectory(prefix="send-", dir=self._directory) as scratch:
            stream = os.path.join(scratch, "stream")
            before = known.digests if known is not None else frozenset()
            with disk.failing_as("write", stream), open(stream, "wb") as file:
                file.write(b"commit %s\n%sdata 0\n\n" % (ref.encode(), _COMMITTER))
                if known is not None:
                    file.write(b'M 040000 %s ""\n' % known.tree)
                for digest in sorted(before - set(digests)):
                    file.write(b"D %s\n" % _path(digest).encode())
                for digest in sorted(set(digests) - before):
                    _write(file.write, _path(digest), read(digest))
                _write(file.write, MANIFEST, manifest)
                file.write(b"done\n")
            quoted = shlex.quote(ref)
            tree = self._ask(
                f"git fast-import --quiet --force --done <{shlex.quote(stream)}"
                f" && {_PUSH} {shlex.quote(self._remote)} +{quoted}:{quoted} && git rev-parse {quoted}^{{tree}}"
            )
            self._keep(name, _Known(tree.strip(), frozenset(digests)))

    def _send_again(self, name: str, base: str) -> bool:
        """Store a snapshot with the files of another one, without objects; False if that one is not there."""
        ref, old = shlex.quote(_ref(name)), shlex.quote(_ref(base))
        script = f"git update-ref {ref} {old} && {_PUSH} {shlex.quote(self._remote)} +{ref}:{ref}"
        try:
            self._ask(script)
        except StoreFailed:
            return False
        if known := _known.get((self._directory, base)):
            self._keep(name, known)
        return True

    def _keep(self, name: str, known: _Known) -> None:
        _known[self._directory, name] = known
        for old in list(_known)[:-_MAX_KNOWN]:
            _known.pop(old, None)

    def fetch(self, name: str) -> bytes | None:
        ref = shlex.quote(_ref(name))
        fetch = (
            f"git rev-parse --verify --quiet {ref} >/dev/null"
            f" || git fetch --quiet --no-tags --no-write-fetch-head {shlex.quote(self._remote)} +{ref}:{ref}"
        )
        try:
            return self._ask(f"{{ {fetch}; }} && git cat-file blob {ref}:{MANIFEST}", whole=True)
        except StoreFailed as error:
            if _ABSENT in error.message:
                return None
            raise

    def objects(self, name: str, digests: Iterable[str]) -> Mapping[str, bytes]:
        wanted = sorted(set(digests))
        if not wanted:
            return {}
        with tempfile.TemporaryDirectory(prefix="read-", dir=self._directory) as scratch:
            asked = os.path.join(scratch, "asked")
            with disk.failing_as("write", asked), open(asked, "w", encoding="utf-8") as file:
                file.writelines(f"{_ref(name)}:{_path(digest)}\n" for digest in wanted)
            data = self._ask(f"git cat-file --batch --buffer <{shlex.quote(asked)}", whole=True)
        return _split(data, wanted, name)

    def names(self, prefix: str = "") -> list[str]:
        listed = self._ask(f"git ls-remote --refs -- {shlex.quote(self._remote)} '{REFS}/*'", whole=True).decode()
        refs = (line.partition("\t")[2].removeprefix(f"{REFS}/") for line in listed.splitlines())
        return sorted(name for name in refs if "/" in name and name.startswith(prefix))

    def remove(self, names: Collection[str]) -> None:
        ordered = sorted(names)
        for start in range(0, len(ordered), _AT_ONCE):
            refs = [_ref(name) for name in ordered[start : start + _AT_ONCE]]
            self._ask(f"{_PUSH} {shlex.quote(self._remote)} {' '.join(shlex.quote(f':{ref}') for ref in refs)}")
            for ref in refs:
                self._ask(f"git update-ref -d {shlex.quote(ref)}")
        if ordered:
            self._ask("git gc --quiet --prune=now")

    def _known_tree(self, name: str) -> "_Known | None":
        """The tree of a snapshot in the own repository; None if it is not there."""
        if (self._directory, name) in _known:
            return _known[self._directory, name]
        ref = shlex.quote(_ref(name))
        try:
            listed = self._ask(f"git rev-parse {ref}^{{tree}} && git ls-tree -r --name-only {ref}", whole=True)
        except StoreFailed:
            return None
        tree, *lines = listed.splitlines()
        return _Known(tree, frozenset(line.decode().replace("/", "") for line in lines if line.decode() != MANIFEST))

    def _make(self, config: str | None) -> None:
        with disk.failing_as("create", self._directory):
            for part in ("objects", "refs"):
                os.makedirs(os.path.join(self._directory, part), exist_ok=True)
            included = f"[include]\n\tpath = {_quoted(config)}\n" if config is not None else ""
            disk.replace(os.path.join(self._directory, "config"), f"{included}{_CONFIG}".encode())
            disk.replace(os.path.join(self._directory, "HEAD"), b"ref: refs/heads/none\n")

    def _ask(self, script: str, *, whole: bool = False) -> bytes:
        """The output of a script of git commands. With `whole` it may have any size."""
        with tempfile.NamedTemporaryFile(dir=self._directory, prefix="output-") as output:
            ran = process.capture(
                f"{{ {script}; }} >{shlex.quote(output.name)}" if whole else script,
                cwd=self._top,
                env={**environment(), "GIT_DIR": self._directory},
                timeout_s=TIMEOUT_S,
                max_bytes=_MAX_BYTES,
                started=id,
                watch=id,
            )
            if ran.exit_code is None or ran.exit_code == 127:
                raise Refused(f"could not run git: {ran.problem or last_lines(ran)}")
            if ran.exit_code != 0:
                text = last_lines(ran)
                raise StoreFailed(
                    redact(f"the files could not travel to or from {self._remote}: {text}"),
                    way_out=f"let the remote take {REFS}/…, or name another place below [files] in detent.toml"
                    if "rejected" in text
                    else "reach the remote, and repeat the command",
                )
            return output.read() if whole else ran.output


def _ref(name: str) -> str:
    return f"{REFS}/{name}"


def _path(digest: str) -> str:
    return f"{digest[:2]}/{digest[2:]}"


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _write(write: Callable[[bytes], object], path: str, data: bytes) -> None:
    write(b"M 100644 inline %s\ndata %d\n" % (path.encode(), len(data)))
    write(data)
    write(b"\n")


def _split(data: bytes, digests: list[str], name: str) -> dict[str, bytes]:
    """The contents in the output of `git cat-file --batch`."""
    contents: dict[str, bytes] = {}
    at = 0
    for digest in digests:
        end = data.index(b"\n", at)
        parts = data[at:end].split(b" ")
        if len(parts) != 3 or parts[1] != b"blob":
            raise Corrupt(f"the snapshot {name} lacks the object {digest}")
        size = int(parts[2])
        contents[digest] = data[end + 1 : end + 1 + size]
        at = end + size + 2
    return contents
