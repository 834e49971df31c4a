"""Where a batch keeps its plain files until they have their places: `.new-1`, locked as long as the batch lives.

What nobody holds locked belongs to a batch that died.
"""

import fcntl
import os
from contextlib import suppress
from itertools import count

_PREFIX = ".new-"


class Nursery:
    def __init__(self, root: str) -> None:
        """Under the lock of the segments: nobody clears it away before it is locked itself."""
        clear_abandoned(root)
        for number in count(1):
            self.path = os.path.join(root, f"{_PREFIX}{number}")
            with suppress(FileExistsError):
                os.mkdir(self.path)
                break
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._numbers = count(1)

    def new(self) -> str:
        """A path for one more file."""
        return os.path.join(self.path, str(next(self._numbers)))

    def close(self) -> None:
        _clear(self.path)
        os.close(self._fd)


def clear_abandoned(root: str) -> None:
    for name in os.listdir(root):
        if name.startswith(_PREFIX):
            path = os.path.join(root, name)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            else:
                _clear(path)
            finally:
                os.close(fd)


def _clear(path: str) -> None:
    """What cannot be removed now is removed by the next."""
    with suppress(OSError):
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
