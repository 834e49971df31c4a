"""The files that evidence rests on: a filter over the universe of the project's files.

A gate that declares inputs counts the files that its patterns match. A gate without them counts every file but prose
and hidden files. The rules of the universe hold for both, with two exceptions: an ignored file counts if a gate names
it in full, and files that a test runner reads count whatever they are called.
"""

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from fnmatch import translate
from functools import lru_cache

import msgspec

from detent.core.checkpoint.manifest import Entry
from detent.core.testrun.runner_files import roles, test_directory
from detent.engine.gates.stored import content_name
from detent.errors import Invalid
from detent.objects.universe import Moment, Request

MAX_FILES = 50_000
#: Left out where no inputs are declared: tests do not run on prose.
PROSE = ("docs", "*.md", "*.rst", "*.txt", "LICENSE", ".*")
#: Named like prose, but builds and tests read them.
NOT_PROSE = ("requirements*.txt", "constraints*.txt", "CMakeLists.txt")
#: The beginning of what is recorded of a file that is too large or too secret to be hashed.
_BY_STAT = "size:"
_WILDCARD = re.compile(r"[*?\[]")

#: Path to digest.
FileDigests = dict[str, str]


def file_digests(moment: Moment, patterns: Iterable[str], *, declared: Iterable[str] = ()) -> FileDigests:
    """The digest of every input file; of all but prose where no patterns are given.

    `declared` are artifacts that a checkpoint of the same moment takes.
    """
    base, chosen = moment.universe.scope.base, _normal(patterns)
    named = frozenset(
        pattern
        for pattern in chosen
        if pattern and not _WILDCARD.search(pattern) and not os.path.isdir(os.path.join(base, pattern))
    )
    return _chosen(moment, Request(declared=frozenset(declared), named=named), _matcher(chosen) if chosen else _is_code)


def encode_digests(digests: FileDigests) -> tuple[str, bytes]:
    data = msgspec.json.encode(digests)
    return content_name(data), data


def changed_files(before: FileDigests, now: FileDigests) -> tuple[str, ...]:
    return tuple(path for path in sorted({*before, *now}) if before.get(path) != now.get(path))


def _chosen(moment: Moment, request: Request, matches: Callable[[str], bool]) -> FileDigests:
    look = moment.look(request)
    paths = sorted({path for path in look.rows if matches(path) and look.has(path)} | set(filter(matches, look.large)))
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
    return digests


def _digest(entry: Entry) -> str:
    return f"link:{entry.digest[:32]}" if entry.kind == "l" else entry.digest[:32]


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
    differing = changed_files(recorded, now)
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
    # Tests read text files as data, and the settings of runners are often hidden files. Other hidden files are caches.
    is_hidden = path.startswith(".") or "/." in path
    return (not is_hidden and test_directory(path) is not None) or path in roles((path,))
