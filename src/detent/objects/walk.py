"""Walks a project's tree and applies the rules for the files of its universe. It does not run git.

The same rules hold for evidence and for checkpoints:

- `.git`, `.workflow` and files that Detent writes for a client are never part of it, even if named.
- `exclude` of the settings leaves files out, by default installed packages and compiled code.
- `.gitignore` files and `.git/info/exclude` leave files out, but not those that git tracks.
- A look may name files that the rules leave out: only that look has them.
- Links are entries of their own and are never followed. A repository inside the tree is a plain directory.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from detent.core.checkpoint.ignore import Ignored, Rules
from detent.core.checkpoint.manifest import Manifest
from detent.objects.git_index import Tracked, tracked
from detent.objects.stat_cache import RULED, Row, key_of

#: Directories of version control and of Detent, anywhere in the tree. The last holds published bundles: they are about
#: the files, and no part of them.
NEVER = frozenset({".git", ".workflow", ".detent"})
#: Prefix of files that a restore has not moved into place yet.
UNFINISHED = ".detent-restore-"
IGNORE_FILE = ".gitignore"
#: Files that hold secrets by their names. Examples of them hold none.
_SECRET_FILES = (
    *(
        ".env",
        ".env.*",
        "*.env",
        ".envrc",
        "*.pem",
        "*.key",
        "*.ppk",
        "*.p12",
        "*.pfx",
        "*.jks",
        "*.keystore",
        "*.kdbx",
    ),
    *("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".pgpass", ".pypirc", ".htpasswd", "*.tfvars"),
    *(".aws/credentials", ".docker/config.json", "credentials.json", "service-account*.json", ".git-credentials"),
    *("!.env.example", "!.env.sample", "!.env.template", "!.env.dist", "!example.env", "!sample.env", "!*.pub.pem"),
)
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IGNORE_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_BYTES = 64 * 1024


class Seen(NamedTuple):
    """A file or a link, with its `lstat`."""

    path: str
    status: os.stat_result


@lru_cache(maxsize=8)
def _excluded(patterns: tuple[str, ...]) -> Ignored:
    return Ignored().with_rules(Rules(patterns))


@lru_cache(maxsize=8)
def _secret(exempt: tuple[str, ...]) -> Ignored:
    """The files that may hold secrets, without those of the patterns."""
    return _excluded((*_SECRET_FILES, *(f"!{pattern}" for pattern in exempt)))


@lru_cache(maxsize=8)
def _digest(texts: tuple[bytes, ...], exclude: tuple[str, ...], secrets: tuple[str, ...]) -> str:
    """A digest of the rules from outside the tree."""
    parts = (*texts, *map(os.fsencode, exclude), b"secrets", *map(os.fsencode, secrets))
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]


@lru_cache(maxsize=256)
def _parsed(data: bytes, base: str) -> Rules:
    """The rules of an ignore file. Cached: parsing it takes half the time of a small walk."""
    return Rules.parse(data, base)


class Walk:
    """One walk over a tree. It separates the files with an unchanged stat, which are most of them."""

    def __init__(
        self,
        base: str,
        known: Mapping[str, Row],
        *,
        exclude: tuple[str, ...] = (),
        own: frozenset[str] = frozenset(),
        rules: str = "",
        secrets: tuple[str, ...] = (),
        exempt: frozenset[str] = frozenset(),
    ) -> None:
        """`known` are the rows of an earlier walk, under the rules with the digest `rules`.

        `secrets` are patterns of files that may hold secrets and are taken all the same, and `exempt` such files.
        """
        self._base = base
        self._known = known
        self._exclude = _excluded(exclude)
        self._own = own
        self._repository, self._above, self._ignored, texts = _rules_above(base)
        #: A digest of the rules from outside the tree.
        self.rules = _digest(texts, exclude, secrets)
        self._secret = _secret(secrets)
        self._exempt = exempt
        self._same_rules = self.rules == rules
        #: Files with an unchanged stat.
        self.met: list[str] = []
        #: Files that may hold secrets; git neither ignores nor tracks them.
        self.secret: list[Seen] = []
        #: Files and links that are new or have another stat.
        self.fresh: list[Seen] = []
        #: Those of both that the rules leave out: git tracks them, or the look names them.
        self.tracked: set[str] = set()
        self.forced: set[str] = set()
        #: What cannot be taken, with the reason.
        self.left_out: dict[str, str] = {}
        self._index: Tracked | None = None
        self._seen: set[str] | None = None

    def everything(self) -> None:
        """All files of the universe."""
        waiting = [("", self._ignored, self._same_rules, False)]
        while waiting:
            directory, rules, same_rules, is_ignored = waiting.pop()
            try:
                fd = os.open(os.path.join(self._base, directory), _DIRECTORY)
            except OSError as error:
                if not isinstance(error, FileNotFoundError | NotADirectoryError):
                    self.left_out[directory or "."] = error.strerror or str(error)
                continue
            try:
                with os.scandir(fd) as scan:
                    entries = list(scan)
                own = next((entry for entry in entries if entry.name == IGNORE_FILE), None)
                same_rules = same_rules and self._has_same_rules(directory, own)
                if own is not None:
                    rules = _with_file(rules, os.path.join(self._base, directory), self._above + directory)
                inner = self._sort_out(directory, entries, rules, same_rules=same_rules, is_ignored=is_ignored)
                waiting.extend((path, rules, same_rules, ignored) for path, ignored in list(inner))
            except OSError as error:
                self.left_out[directory or "."] = error.strerror or str(error)
            finally:
                os.close(fd)

    def inside(self, path: str) -> None:
        """Take the file at `path`, or all files of the directory, without regard to the rules."""
        if not NEVER.isdisjoint(path.split("/")) or leads_through_link(self._base, path):
            return
        if self._seen is None:
            self._seen = {*self.met, *(seen.path for seen in self.fresh)}
        waiting = [os.path.normpath(path)]
        while waiting:
            at = waiting.pop()
            full = os.path.join(self._base, at)
            try:
                status = os.lstat(full)
                if stat.S_ISDIR(status.st_mode):
                    start = "" if at == "." else f"{at}/"
                    waiting += [start + name for name in os.listdir(full) if name not in NEVER]
                elif at not in self._seen and at not in self._own:
                    self._seen.add(at)
                    self.forced.add(at)
                    self._meet(at, status)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                self.left_out[at] = error.strerror or str(error)

    def _has_same_rules(self, directory: str, own: "os.DirEntry[str] | None") -> bool:
        """Whether the ignore file of the directory is the same as in the earlier walk."""
        row = self._known.get(directory + IGNORE_FILE)
        if row is None or own is None:
            return row is None and own is None
        return row.trusted and row.key == key_of(own.stat(follow_symlinks=False))

    def _sort_out(
        self, directory: str, entries: list["os.DirEntry[str]"], rules: Ignored, *, same_rules: bool, is_ignored: bool
    ) -> Iterator[tuple[str, bool]]:
        """Takes the files, and yields the directories to enter, each with whether it is ignored."""
        known, met = self._known, self.met.append
        for entry in entries:
            name = entry.name
            path = directory + name
            try:
                row = known.get(path)
                if row is not None and same_rules and row.origin == RULED:
                    # The same rules let it in before. This is the fast path of most files.
                    status = entry.stat(follow_symlinks=False)
                    key = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                    if row.key == key and row.trusted:
                        met(path)
                        continue
                if name in NEVER or path in self._own or name.startswith(UNFINISHED):
                    continue
                inner = entry.is_dir(follow_symlinks=False)
                if self._exclude.matches(path, inner):
                    continue
                ignored = is_ignored or rules.matches(self._above + path, inner)
                if ignored and not self._is_tracked(path, is_directory=inner):
                    continue
                if inner:
                    yield path + "/", ignored
                else:
                    if ignored:
                        self.tracked.add(path)
                    self._meet(path, entry.stat(follow_symlinks=False))
            except FileNotFoundError:
                continue
            except OSError as error:
                self.left_out[path] = error.strerror or str(error)

    def _is_tracked(self, path: str, *, is_directory: bool) -> bool:
        if self._index is None:
            self._index = tracked(self._repository) if self._repository is not None else Tracked()
        paths = self._index.directories if is_directory else self._index.files
        return bool(paths) and os.fsencode(self._above + path) in paths

    def _may_hold_secrets(self, path: str, status: os.stat_result) -> bool:
        """Whether the name says so. What git tracks is in the repository anyway."""
        return (
            self._secret.matches(path, is_directory=False)
            and path not in self._exempt
            and stat.S_ISREG(status.st_mode)
            and not self._is_tracked(path, is_directory=False)
        )

    def _meet(self, path: str, status: os.stat_result) -> None:
        if self._may_hold_secrets(path, status):
            self.secret.append(Seen(path, status))
            return
        row = self._known.get(path)
        if row is not None and row.trusted and row.key == key_of(status):
            self.met.append(path)
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.fresh.append(Seen(path, status))
        else:
            self.left_out[path] = "neither a file nor a link"


def all_files(base: str, exclude: tuple[str, ...]) -> Iterator[str]:
    """Every file that the settings do not exclude, ignored or not."""
    excluded = _excluded(exclude)
    for directory, names, files in os.walk(base):
        start = "" if directory == base else os.path.relpath(directory, base) + "/"
        names[:] = [name for name in names if name not in NEVER and not excluded.matches(start + name, True)]  # noqa: FBT003
        yield from (start + name for name in files if not excluded.matches(start + name, False))  # noqa: FBT003


def hidden(paths: Iterable[str], files: Manifest, read: Callable[[str], bytes]) -> set[str]:
    """The paths that the ignore files among `files` would leave out."""
    stacks: dict[str, Ignored | None] = {}

    def holding(directory: str) -> Ignored | None:
        """The rules in a directory; None if it is left out itself. Directories other than the root end in a slash."""
        if directory not in stacks:
            above = directory[: directory.rstrip("/").rfind("/") + 1]
            rules = holding(above) if directory else Ignored()
            if rules is not None and directory and rules.matches(directory.rstrip("/"), is_directory=True):
                rules = None
            entry = files.get(directory + IGNORE_FILE)
            if rules is not None and entry is not None and entry.kind != "l":
                rules = rules.with_rules(_parsed(read(entry.digest), directory.rstrip("/")))
            stacks[directory] = rules
        return stacks[directory]

    def is_hidden(path: str) -> bool:
        rules = holding(path[: path.rfind("/") + 1])
        return rules is None or rules.matches(path, is_directory=False)

    return set(filter(is_hidden, paths))


def leads_through_link(base: str, path: str) -> bool:
    """Whether a directory of the path is a link, so that the file is elsewhere."""
    at = path.rfind("/")
    while at > 0:
        if os.path.islink(os.path.join(base, path[:at])):
            return True
        at = path.rfind("/", 0, at)
    return False


def _rules_above(base: str) -> tuple[str | None, str, Ignored, tuple[bytes, ...]]:
    """The repository around the project, the project's path in it, the rules that hold there, and their text."""
    repository, below = base, ""
    while not os.path.lexists(os.path.join(repository, ".git")):
        parent = os.path.dirname(repository)
        if parent == repository:
            return None, "", Ignored(), ()
        below = os.path.basename(repository) + "/" + below
        repository = parent
    files = [(os.path.join(repository, ".git", "info"), "", "exclude")]
    at = ""
    for part in below.split("/")[:-1]:
        files.append((os.path.join(repository, at), at, IGNORE_FILE))
        at += part + "/"
    ignored, texts = Ignored(), [below.encode("utf-8", "surrogateescape")]
    for directory, start, name in files:
        text = _text(os.path.join(directory, name))
        texts.append(text)
        ignored = ignored.with_rules(_parsed(text, start.rstrip("/")))
    return repository, below, ignored, tuple(texts)


def _with_file(ignored: Ignored, directory: str, base: str) -> Ignored:
    return ignored.with_rules(_parsed(_text(os.path.join(directory, IGNORE_FILE)), base.rstrip("/")))


def _text(path: str) -> bytes:
    """The text of an ignore file; empty if it is missing, unreadable or a link, as git treats it."""
    try:
        fd = os.open(path, _IGNORE_FILE)
    except OSError:
        return b""
    try:
        return b"".join(iter(lambda: os.read(fd, _READ_BYTES), b""))
    except OSError:
        return b""
    finally:
        os.close(fd)
