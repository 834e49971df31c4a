"""The files that evidence rests on: which they are, and whether they are still the same."""

import hashlib
import os
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase

import msgspec

from detent import process
from detent.clients.registry import directories
from detent.errors import Invalid

MAX_FILES = 50_000
#: Larger files are told apart by size and time of change.
MAX_HASHED = 64 * 1024 * 1024
#: What Detent and its clients write never makes evidence stale, and neither do version control and installed packages.
NEVER = (".workflow", ".git", *directories(), "node_modules", ".venv", "__pycache__", ".bench")
#: Left out where no inputs are declared: prose is not what tests run on.
PROSE = ("docs", "*.md", "*.rst", "*.txt", "LICENSE", ".*")
#: Named like prose, but builds and tests read them.
NOT_PROSE = ("requirements*.txt", "constraints*.txt", "CMakeLists.txt")
#: Of the list of files nothing may be left out.
_LISTING_BYTES = 64 * 1024 * 1024

Manifest = dict[str, str]


def manifest(base: str, patterns: Iterable[str]) -> Manifest:
    """Path to digest for every input file; all but prose where none are declared."""
    declared = tuple(pattern.strip("/").removeprefix("./") for pattern in patterns)
    chosen = [path for path in _files(base) if (_matches(path, declared) if declared else not _is_prose(path))]
    if len(chosen) > MAX_FILES:
        raise Invalid(
            f"{len(chosen)} files would count as inputs; the limit is {MAX_FILES}",
            way_out="declare the inputs of the gate in detent.toml",
        )
    return {path: digest for path in sorted(chosen) if (digest := file_digest(os.path.join(base, path)))}


def file_digest(path: str) -> str | None:
    """None if the file is gone or is no file."""
    try:
        if os.path.islink(path):
            return "link:" + os.readlink(path)
        status = os.stat(path)
        if status.st_size > MAX_HASHED:
            return f"size:{status.st_size}:{status.st_mtime_ns}"
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()[:32]
    except OSError:
        return None


def encode_manifest(found: Manifest) -> tuple[str, bytes]:
    data = msgspec.json.encode(found)
    return hashlib.sha256(data).hexdigest()[:32], data


def changed_files(before: Manifest, now: Manifest) -> tuple[str, ...]:
    return tuple(path for path in sorted({*before, *now}) if before.get(path) != now.get(path))


def _files(base: str) -> Iterator[str]:
    """Tracked and untracked files as git sees them; everything where git sees none, or is not there."""
    listing = ["git", "ls-files", "-co", "--exclude-standard", "-z"]
    listed = process.run(listing, cwd=base, timeout_s=60, tail_bytes=_LISTING_BYTES)
    paths = listed.output.split("\0") if listed.exit_code == 0 and listed.output else _walk(base)
    for path in paths:
        if path and not any(part in NEVER for part in path.split("/")):
            yield path


def _walk(base: str) -> Iterator[str]:
    for directory, names, files in os.walk(base):
        names[:] = [name for name in names if name not in NEVER]
        for name in files:
            yield os.path.relpath(os.path.join(directory, name), base)


def _matches(path: str, patterns: tuple[str, ...]) -> bool:
    return any(
        pattern in (".", path) or path.startswith(pattern + "/") or fnmatchcase(path, pattern) for pattern in patterns
    )


def _is_prose(path: str) -> bool:
    first, last = path.split("/", 1)[0], path.rsplit("/", 1)[-1]
    if any(fnmatchcase(last, pattern) for pattern in NOT_PROSE):
        return False
    return any(fnmatchcase(first, pattern) or fnmatchcase(last, pattern) for pattern in PROSE)
