"""The user's state directory: which project has which id there, and where the second copies of its journals are.

    <state home>/detent/index/<digest of the root's path>   id, inode of the root, path of the root
    <state home>/detent/<project id>/path                   path of the root
    <state home>/detent/<project id>/<part>/WFS-….jsonl      second copy of a journal

Builtins only: every hook imports it.
"""

import posix

PROJECT_ID = "project-id"
INDEX = "index"
_ID_BYTES = 16
#: The part of a project that is a whole repository.
WHOLE = "journals"
COPY = ".jsonl"


class Entry:
    """The entry of the index for a path."""

    def __init__(self, id: str, inode: str, path: str) -> None:  # noqa: A002 - the field's word
        self.id, self.inode, self.path = id, inode, path


def state_home(chosen: str, home: str) -> str:
    """The directory of Detent in the user's state, by XDG_STATE_HOME and HOME; empty if neither names a path."""
    if not chosen.startswith("/"):
        chosen = home + "/.local/state" if home.startswith("/") else ""
    return chosen.rstrip("/") + "/detent" if chosen else ""


def digest(data: bytes) -> str:
    # As `detent.sha256` does it, without another module: a hook needs it after every call.
    try:
        from _sha256 import sha256  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        from _sha2 import sha256  # type: ignore[import-not-found]  # noqa: PLC0415
    return str(sha256(data).hexdigest()[:32])


def index_file(home: str, root: str) -> str:
    return f"{home}/{INDEX}/{digest(root.encode('utf-8', 'surrogateescape'))}"


def read_entry(home: str, root: str) -> "Entry | None":
    """The project at `root`, whether it still has its state or not."""
    fields = read_text(index_file(home, root)).split("\n", 2) if home else []
    if len(fields) < 3 or not is_id(fields[0]) or fields[2].rstrip("\n") != root:
        return None
    return Entry(fields[0], fields[1], root)


def registered_roots(home: str) -> "list[str]":
    """The roots of all projects in the index, sorted; some of them may be gone."""
    files = (read_text(f"{home}/index/{name}") for name in _names(f"{home}/index")) if home else ()
    split = (text.split("\n", 2) for text in files)
    return sorted({fields[2].rstrip("\n") for fields in split if len(fields) > 2 and is_id(fields[0])})


def is_id(text: str) -> bool:
    return len(text) == 2 * _ID_BYTES and all(letter in "0123456789abcdef" for letter in text)


def new_id() -> str:
    return posix.urandom(_ID_BYTES).hex()


def inode(path: str) -> str:
    try:
        return str(posix.stat(path).st_ino)
    except (OSError, ValueError):
        return ""


def copies_directory(home: str, id: str, part: str) -> str:  # noqa: A002
    return f"{home}/{id}/{part or WHOLE}"


def copied_sessions(directory: str) -> "list[str]":
    """The sessions that have a copy in the directory; sorted."""
    try:
        names = posix.listdir(directory)
    except (OSError, ValueError):
        return []
    return sorted(name[: -len(COPY)] for name in names if name.startswith("WFS-") and name.endswith(COPY))


def lost_sessions(home: str, root: str, state: str) -> "list[str]":
    """The sessions of a project whose whole state directory is gone, by package and name.

    Another directory at the same path, such as a fresh clone, is another project.
    """
    entry = read_entry(home, root)
    if entry is None or inode(state) or not is_same_directory(home, entry):
        return []
    return recorded_sessions(home, entry.id)


def is_same_directory(home: str, entry: Entry) -> bool:
    """Whether the directory at the path is the one that was recorded, and not one that was made there later.

    File systems use the inode of a removed directory again. So at least one of its files must be older than the last
    commit.
    """
    if entry.inode != inode(entry.path):
        return False
    ages = [_changed(f"{entry.path}/{name}") for name in _names(entry.path)]
    copies = copies_directory(home, entry.id, "")
    last = max((_changed(f"{copies}/{name}") for name in _names(copies)), default=0)
    return not ages or min(ages) <= last or not last


def _changed(path: str) -> int:
    try:
        return posix.lstat(path).st_ctime_ns
    except (OSError, ValueError):
        return 0


def recorded_sessions(home: str, id: str) -> "list[str]":  # noqa: A002
    """Every session of the project that has a copy; those of a package with its name in front."""
    sessions = copied_sessions(copies_directory(home, id, ""))
    for package in _names(f"{home}/{id}/projects"):
        sessions += [f"{package}/{name}" for name in copied_sessions(copies_directory(home, id, f"projects/{package}"))]
    return sessions


def read_text(path: str) -> str:
    """The content of a small file; empty if it cannot be read."""
    try:
        fd = posix.open(path, posix.O_RDONLY | posix.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        return posix.read(fd, 1 << 14).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        posix.close(fd)


def _names(directory: str) -> "list[str]":
    try:
        return sorted(posix.listdir(directory))
    except (OSError, ValueError):
        return []
