"""The files of a project's tree, as `.gitignore` and the settings leave it. Needs no git and never follows a link."""

import os
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple

from detent.core.ignore import Ignored, Rules
from detent.core.manifest import Entry, Manifest
from detent.objects.stat_cache import Key, Row

#: Version control's and Detent's own, wherever they are.
NEVER = frozenset({".git", ".workflow"})
#: Files that a restore has not put in place yet.
UNFINISHED = ".detent-restore-"
_IGNORE_FILE = ".gitignore"


class Seen(NamedTuple):
    """A file or a link that was met, with what `lstat` says of it."""

    path: str
    status: os.stat_result


class Walk:
    """One walk over a tree. What was met is sorted out at once, because most files are as they were the last time."""

    def __init__(
        self, base: str, known: dict[str, Row], *, exclude: tuple[str, ...] = (), own: frozenset[str] = frozenset()
    ) -> None:
        """`known` is how files looked before."""
        self._base = base
        self._known = known
        self._exclude = Ignored().with_rules(Rules(exclude))
        self._own = own
        #: Files that look as they did, by path.
        self.files: dict[str, Entry] = {}
        self.keys: dict[str, Key] = {}
        #: Files and links that are new or look different.
        self.fresh: list[Seen] = []
        #: What cannot be taken, with the reason.
        self.left_out: dict[str, str] = {}

    def everything(self) -> None:
        """All files but those that the rules leave out."""
        above, ignored = _rules_above(self._base)
        self._below("", above, ignored, obeying=True)

    def inside(self, path: str) -> None:
        """What is at `path` whatever the rules say: the file, or all files of the directory."""
        if path in self.keys or path in self._own or not NEVER.isdisjoint(path.split("/")):
            return
        if leads_through_link(self._base, path):
            return
        try:
            status = os.lstat(os.path.join(self._base, path))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.left_out[path] = error.strerror or str(error)
            return
        if stat.S_ISDIR(status.st_mode):
            self._below(path.rstrip("/") + "/", "", Ignored(), obeying=False)
        else:
            self._meet(path, status)

    def _below(self, start: str, above: str, ignored: Ignored, *, obeying: bool) -> None:
        waiting = [(start, ignored)]
        while waiting:
            directory, rules = waiting.pop()
            try:
                with os.scandir(os.path.join(self._base, directory)) as entries:
                    found = list(entries)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    self.left_out[directory or "."] = error.strerror or str(error)
                continue
            if obeying and any(entry.name == _IGNORE_FILE for entry in found):
                rules = _with_file(rules, os.path.join(self._base, directory), above + directory)
            for entry in found:
                name = entry.name
                path = directory + name
                if name in NEVER or path in self._own or name.startswith(UNFINISHED):
                    continue
                try:
                    inner = entry.is_dir(follow_symlinks=False)
                    if obeying and (rules.matches(above + path, inner) or self._exclude.matches(path, inner)):
                        continue
                    if inner:
                        waiting.append((path + "/", rules))
                    else:
                        self._meet(path, entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.left_out[path] = error.strerror or str(error)

    def _meet(self, path: str, status: os.stat_result) -> None:
        key = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        row = self._known.get(path)
        if row is not None and row.key == key:
            self.files[path] = row.entry
        elif path in self.keys:
            return
        elif stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
            self.fresh.append(Seen(path, status))
        else:
            self.left_out[path] = "neither a file nor a link"
            return
        self.keys[path] = key


def hidden(paths: Iterable[str], files: Manifest, read: Callable[[str], bytes]) -> set[str]:
    """Those of the paths that the ignore files among `files` leave out, had they been there."""
    stacks: dict[str, Ignored | None] = {}

    def holding(directory: str) -> Ignored | None:
        """The rules in a directory; None if it is left out itself. Directories end in a slash, but for the root."""
        if directory not in stacks:
            above = directory[: directory.rstrip("/").rfind("/") + 1]
            rules = holding(above) if directory else Ignored()
            if rules is not None and directory and rules.matches(directory.rstrip("/"), is_directory=True):
                rules = None
            entry = files.get(directory + _IGNORE_FILE)
            if rules is not None and entry is not None and entry.kind != "l":
                rules = rules.with_rules(Rules.parse(read(entry.digest), directory.rstrip("/")))
            stacks[directory] = rules
        return stacks[directory]

    found = set()
    for path in paths:
        rules = holding(path[: path.rfind("/") + 1])
        if rules is None or rules.matches(path, is_directory=False):
            found.add(path)
    return found


def leads_through_link(base: str, path: str) -> bool:
    """Whether a directory on the way to the file is a link, so that it is a file of another place."""
    at = path.rfind("/")
    while at > 0:
        if os.path.islink(os.path.join(base, path[:at])):
            return True
        at = path.rfind("/", 0, at)
    return False


def _rules_above(base: str) -> tuple[str, Ignored]:
    """Where the project lies in its repository, and the rules that hold there."""
    repository, below = base, ""
    while not os.path.lexists(os.path.join(repository, ".git")):
        parent = os.path.dirname(repository)
        if parent == repository:
            return "", Ignored()
        below = os.path.basename(repository) + "/" + below
        repository = parent
    ignored = _with_file(Ignored(), os.path.join(repository, ".git", "info"), "", name="exclude")
    at = ""
    for part in below.split("/")[:-1]:
        ignored = _with_file(ignored, os.path.join(repository, at), at)
        at += part + "/"
    return below, ignored


def _with_file(ignored: Ignored, directory: str, base: str, *, name: str = _IGNORE_FILE) -> Ignored:
    path = os.path.join(directory, name)
    try:
        if os.path.islink(path):
            # Git does not follow it either.
            return ignored
        with open(path, "rb") as file:
            return ignored.with_rules(Rules.parse(file.read(), base.rstrip("/")))
    except OSError:
        # None there, or none that can be read: git goes without it too.
        return ignored
