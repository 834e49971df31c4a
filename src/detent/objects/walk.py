"""The files of a project's tree, as `.gitignore` and the settings leave it. Needs no git and never follows a link."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from detent.core.ignore import Ignored, Rules

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
    """One walk. What could not be looked into is in `unreadable` afterwards, with the reason."""

    def __init__(self, base: str, *, exclude: tuple[str, ...] = (), own: frozenset[str] = frozenset()) -> None:
        self._base = base
        self._exclude = Ignored().with_rules(Rules(exclude)) if exclude else None
        self._own = own
        self.unreadable: dict[str, str] = {}

    def __iter__(self) -> Iterator[Seen]:
        above, ignored = _rules_above(self._base)
        yield from self._below("", above, ignored)

    def inside(self, path: str) -> Iterator[Seen]:
        """What is at `path` whatever the rules say: the file, or all files of the directory."""
        try:
            status = os.lstat(os.path.join(self._base, path))
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            self.unreadable[path] = error.strerror or str(error)
            return
        if os.path.isdir(os.path.join(self._base, path)) and not os.path.islink(os.path.join(self._base, path)):
            yield from self._below(path.rstrip("/") + "/", "", Ignored(), obeying=False)
        else:
            yield Seen(path, status)

    def _below(self, start: str, above: str, ignored: Ignored, *, obeying: bool = True) -> Iterator[Seen]:
        waiting = [(start, ignored)]
        while waiting:
            directory, rules = waiting.pop()
            try:
                with os.scandir(os.path.join(self._base, directory)) as entries:
                    found = list(entries)
            except OSError as error:
                if not isinstance(error, FileNotFoundError):
                    self.unreadable[directory or "."] = error.strerror or str(error)
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
                    if obeying and self._left_out(path, above + path, rules, directory=inner):
                        continue
                    if inner:
                        waiting.append((path + "/", rules))
                    else:
                        yield Seen(path, entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                except OSError as error:
                    self.unreadable[path] = error.strerror or str(error)

    def _left_out(self, path: str, whole: str, rules: Ignored, *, directory: bool) -> bool:
        if self._exclude is not None and self._exclude.matches(path, directory):
            return True
        return rules.matches(whole, directory)


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
    try:
        with open(os.path.join(directory, name), "rb") as file:
            return ignored.with_rules(Rules.parse(file.read(), base.rstrip("/")))
    except OSError:
        # None there, or none that can be read: git goes without it too.
        return ignored
