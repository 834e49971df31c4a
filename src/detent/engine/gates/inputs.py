"""The files that evidence rests on: a filter over the universe of the project's files.

A gate that declares inputs counts the files that its patterns match. A gate without them counts every file but prose
and hidden files. The rules of the universe hold for both, with these exceptions: an ignored file counts if a gate names
it in full, if it is code beside files that count, or if it was there at the session's start; files that a test runner
reads count whatever they are called; a link counts with what it leads to.
"""

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache

import msgspec

from detent.core.checkpoint.manifest import Entry
from detent.core.testrun.runner_files import is_code_name, roles, test_directory
from detent.engine.gates.stored import content_name
from detent.errors import Invalid
from detent.objects.universe import Moment, Request

MAX_FILES = 50_000
#: Files that are looked at in a directory outside of the project, to which a link leads.
MAX_LINKED = 2_000
#: Left out where no inputs are declared: tests do not run on prose.
PROSE = ("docs", "*.md", "*.rst", "*.txt", "LICENSE", ".*")
#: Named like prose, but builds and tests read them.
NOT_PROSE = ("requirements*.txt", "constraints*.txt", "CMakeLists.txt")
#: The beginning of what is recorded of a file that is too large or too secret to be hashed.
_BY_STAT = "size:"
_LINK = "link:"
_WILDCARD = re.compile(r"[*?\[]")

#: Path to digest.
FileDigests = dict[str, str]


def file_digests(
    moment: Moment, patterns: Iterable[str], *, declared: Iterable[str] = (), also: Iterable[str] = ()
) -> FileDigests:
    """The digest of every input file; of all but prose where no patterns are given.

    `declared` are artifacts that a checkpoint of the same moment takes. `also` are files that count although they are
    ignored by now.
    """
    base, chosen = moment.universe.scope.base, _normal(patterns)
    named = frozenset(
        pattern
        for pattern in chosen
        if pattern and not _WILDCARD.search(pattern) and not os.path.isdir(os.path.join(base, pattern))
    )
    matches = _matcher(chosen) if chosen else _is_code
    request = Request(declared=frozenset(declared), named=named)
    look = moment.look(request)
    hidden = frozenset(
        path
        for path in also
        if (path in look.forced or not look.has(path))
        and path not in look.large
        and matches(path)
        and os.path.lexists(os.path.join(base, path))
    )
    return _chosen(moment, request._replace(named=named | hidden), matches)


def encode_digests(digests: FileDigests) -> tuple[str, bytes]:
    data = msgspec.json.encode(digests)
    return content_name(data), data


def changed_files(before: FileDigests, now: FileDigests) -> tuple[str, ...]:
    return tuple(path for path in sorted({*before, *now}) if before.get(path) != now.get(path))


def _chosen(moment: Moment, request: Request, matches: Callable[[str], bool]) -> FileDigests:
    look = moment.look(request)
    # Another gate of the same moment may have asked for files that the rules leave out.
    others = look.forced - request.paths
    there = {path for path in look.rows if matches(path) and look.has(path) and path not in others}
    paths = sorted(there | set(filter(matches, look.large)))
    if len(paths) > MAX_FILES:
        raise Invalid(
            f"{len(paths)} files would count as inputs; the limit is {MAX_FILES}",
            way_out="declare the inputs of the gate in detent.toml",
        )
    digests = {}
    for path in paths:
        if path in look.large:
            digests[path] = look.large[path]
        else:
            digests[path] = _digest(look.rows[path].entry)
            if digests[path].startswith(_LINK):
                base = moment.universe.scope.base
                digests[path] += _target(os.path.join(base, path), base)
    return digests


def _digest(entry: Entry) -> str:
    return f"{_LINK}{entry.digest[:32]}" if entry.kind == "l" else entry.digest[:32]


def _target(link: str, base: str) -> str:
    """The part of a link's digest for the file or the code that it leads to; empty if it leads to neither."""
    try:
        if os.path.isfile(link):
            with open(link, "rb") as file:
                return f":{hashlib.file_digest(file, 'sha256').hexdigest()[:32]}"
        if os.path.isdir(link) and os.path.commonpath((os.path.realpath(link), base)) != base:
            return f":{hashlib.sha256(repr(_code_outside(link)).encode()).hexdigest()[:32]}"
    except OSError:
        return ""
    return ""


def _code_outside(directory: str) -> list[tuple[str, int, int]]:
    """The code in a directory outside of the project, with size and time. Its inodes tell the time of a change."""
    files: list[tuple[str, int, int]] = []
    for top, directories, names in os.walk(directory):
        directories[:] = sorted(name for name in directories if not name.startswith((".", "__pycache__")))
        for name in sorted(filter(is_code_name, names)):
            status = os.lstat(os.path.join(top, name))
            files.append((os.path.join(top, name), status.st_size, status.st_ctime_ns))
        if len(files) > MAX_LINKED:
            break
    return files[:MAX_LINKED]


def _without_target(digest: str) -> str:
    """The digest of a link as a checkpoint has it."""
    return ":".join(digest.split(":")[:2]) if digest.startswith(_LINK) else digest


def changed_since(
    recorded: FileDigests, files: Mapping[str, Entry], patterns: Iterable[str], known: Collection[str]
) -> list[str]:
    """The input files of a run that are other ones among the files of a checkpoint.

    Files that a checkpoint does not take cannot be told: those that are too large or too secret, which were recorded by
    size and time, and `known`, which the checkpoint takes or leaves out for other reasons than the rules for all files.
    """
    chosen = _normal(patterns)
    matches = _matcher(chosen) if chosen else _is_code
    now = {path: _digest(entry) for path, entry in files.items() if matches(path)}
    # An ignored file counts if a gate names it in full, and no checkpoint takes it.
    apart = {*known, *chosen, *(path for path, digest in recorded.items() if digest.startswith(_BY_STAT))}
    differing = changed_files({path: _without_target(digest) for path, digest in recorded.items()}, now)
    return [path for path in differing if path not in apart or (path in recorded and path in now)]


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path is one of the patterns, below one of them, or matched by one."""
    return _matcher(_normal(patterns))


def _normal(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(pattern.strip("/").removeprefix("./") for pattern in patterns)


@lru_cache(maxsize=32)
def _matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    if "." in patterns:
        return lambda _: True
    starts = tuple(f"{pattern}/" for pattern in patterns)
    expression = re.compile("|".join(translate(pattern) for pattern in patterns))
    return lambda path: path in patterns or path.startswith(starts) or expression.match(path) is not None


_is_prose_name = re.compile("|".join(map(translate, PROSE))).match
_is_never_prose = re.compile("|".join(map(translate, NOT_PROSE))).match


def _is_code(path: str) -> bool:
    first, last = path.partition("/")[0], path.rpartition("/")[2]
    if _is_never_prose(last) or not (_is_prose_name(first) or _is_prose_name(last)):
        return True
    # Tests read text files as data, and the settings of runners are often hidden files. Hidden directories are caches.
    is_hidden = path.startswith(".") or "/." in path
    if (not is_hidden and test_directory(path) is not None) or path in roles((path,)):
        return True
    directory = path.rpartition("/")[0]
    return is_code_name(last) is not None and not directory.startswith(".") and "/." not in directory
