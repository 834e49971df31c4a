"""Reading files and JSON with builtin modules only: it stands on the path of every tool call."""

import posix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LOG = 1_000_000


class _Plain:
    strict = False
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def parse(data: bytes) -> "Any":
    """JSON by the C scanner behind `json`, without the regular expressions that `json` would load."""
    from _json import make_scanner

    text = data.decode("utf-8", "replace").strip(" \t\r\n\ufeff")
    try:
        value, end = make_scanner(_Plain)(text, 0)  # type: ignore[arg-type]
    except (StopIteration, SystemError) as error:
        # The scanner sets no exception at all for some texts that end too early.
        raise ValueError("this is not JSON") from error
    if text[end:].strip():
        raise ValueError("something stands behind the JSON")
    return value


def read_all(fd: int) -> bytes:
    chunks = []
    while chunk := posix.read(fd, 1 << 20):
        chunks.append(chunk)
    return b"".join(chunks)


def read_file(path: str) -> "bytes | None":
    try:
        fd = posix.open(path, posix.O_RDONLY)
    except OSError:
        return None
    try:
        return read_all(fd)
    finally:
        posix.close(fd)


def exists(path: str) -> bool:
    try:
        posix.stat(path)
    except (OSError, ValueError):
        return False
    return True


def resolve(path: str) -> str:
    """`path` with its links followed, as far as it exists."""
    done, left, links = "", [part for part in path.split("/") if part], 0
    while left:
        candidate = done + "/" + left.pop(0)
        try:
            target = posix.readlink(candidate)
        except (OSError, ValueError):
            done = candidate
            continue
        links += 1
        if links > 40:
            return path
        if target.startswith("/"):
            done = ""
        left = [part for part in target.split("/") if part not in ("", ".")] + left
        while left and left[0] == "..":
            left.pop(0)
            done = done.rpartition("/")[0]
    return done or "/"


def digest(data: bytes) -> str:
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]
    except ImportError:
        from _sha2 import sha256  # type: ignore[import-not-found]
    return str(sha256(data).hexdigest()[:32])


def append(path: str, line: str) -> None:
    """Add a line to a log. One that has grown long becomes the old one, of which there is one."""
    fd = posix.open(path, posix.O_WRONLY | posix.O_CREAT | posix.O_APPEND, 0o666)
    try:
        posix.write(fd, line.encode("utf-8", "replace"))
        long = posix.fstat(fd).st_size > MAX_LOG
    finally:
        posix.close(fd)
    if long:
        posix.rename(path, path + ".1")


def project_root(directory: str) -> "str | None":
    """The nearest directory that has a `.workflow`."""
    while True:
        if exists(directory + "/.workflow"):
            return directory
        if directory in ("", "/"):
            return None
        directory = directory.rpartition("/")[0]
