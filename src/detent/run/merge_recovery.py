"""A merge that was interrupted: ended first by whoever comes next, so that it has happened or has not.

Before git is started it is noted what is about to be merged into what. If the note is still there, either git went on
without us and is waited for, or it was killed: before it had begun, while it put files in place, or when only the
commit was missing. A file that holds neither what stood there nor what git was writing is somebody's, and stays.
"""

import os
import time
from contextlib import suppress

import msgspec

from detent.config import place as places
from detent.errors import LockTimeout
from detent.process import born
from detent.run.git import Git
from detent.store import disk

_NOTE = ".merging.json"
_WAIT_S = 600.0
_PAUSE_S = 0.05


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    head: str
    tip: str
    #: The process of git, and what tells it from a later one with the same number.
    leader: int = 0
    born: str | None = None

    def by(self, leader: int) -> "Merging":
        return msgspec.structs.replace(self, leader=leader, born=born(leader))


def note(root: str, merging: Merging) -> None:
    path = _path(root)
    with disk.failing_as("write", path):
        disk.replace(path, msgspec.json.encode(merging), durable=True)


def forget(root: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_path(root))


def recover(top: Git, root: str) -> None:
    """The caller holds the lock of the worktrees."""
    try:
        with open(_path(root), "rb") as file:
            merging = msgspec.json.decode(file.read(), type=Merging)
        noted = os.stat(_path(root)).st_mtime
    except (FileNotFoundError, msgspec.DecodeError):
        return
    _wait_for(merging)
    if not top.contains(merging.tip) and top.ask("rev-parse", "HEAD") == merging.head:
        # A second of grace: file systems tell time in steps.
        top.drop_stale_lock(since=noted - 1)
        if top.commit_of("MERGE_HEAD") == merging.tip:
            top.ask("merge", "--abort")
        elif top.unfinished() is None:
            _put_back(top, merging)
    forget(root)


def _wait_for(merging: Merging) -> None:
    until = time.monotonic() + _WAIT_S
    while merging.born is not None and born(merging.leader) == merging.born:
        if time.monotonic() > until:
            raise LockTimeout(
                f"git has been merging {merging.tip[:12]} for long, in process {merging.leader}",
                way_out="try again, or end that process if it hangs",
            )
        time.sleep(_PAUSE_S)


def _put_back(top: Git, merging: Merging) -> None:
    """Files that git had put in place when it was killed are again as they were committed."""
    repository = Git(top.ask("rev-parse", "--show-toplevel"))
    made = repository.run("merge-tree", "--write-tree", merging.head, merging.tip)
    result = made.output.decode().strip() if made.exit_code == 0 else merging.tip
    touched = repository.paths("diff", "--name-only", "--no-renames", "-z", merging.head, result)
    back = [path for path in touched if _is_of_git(repository, path, merging.head, result)]
    for path in back:
        if repository.holds("cat-file", "-e", f"{merging.head}:{path}"):
            repository.ask("checkout", "--quiet", merging.head, "--", f":(literal){path}")
        else:
            repository.ask("rm", "--cached", "--quiet", "--ignore-unmatch", "--", f":(literal){path}")
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(repository.directory, path))


def _is_of_git(repository: Git, path: str, head: str, result: str) -> bool:
    """Whether the file is what the merge makes of it, or the beginning of that."""
    full = os.path.join(repository.directory, path)
    after = repository.run("cat-file", "blob", f"{result}:{path}")
    if not os.path.lexists(full):
        # Taken away to be removed or replaced: whoever removes a file that is committed loses nothing.
        return repository.holds("cat-file", "-e", f"{head}:{path}")
    if after.exit_code != 0:
        return False
    if os.path.islink(full):
        return os.fsencode(os.readlink(full)) == after.output
    if not os.path.isfile(full):
        return False
    with open(full, "rb") as file:
        found = file.read()
    before = repository.run("cat-file", "blob", f"{head}:{path}")
    return after.output.startswith(found) and not (before.exit_code == 0 and before.output == found)


def _path(root: str) -> str:
    return os.path.join(places.worktrees(root), _NOTE)
