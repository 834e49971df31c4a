"""Checks, for the hook process, whether a journal file still holds a position. Builtins only."""

import posix


def holds(path: str, total: str, hint: int, *, last: bool = False) -> bool:
    """Whether the commit with this sum ends at the cursor's hint; with `last` also whether it is the last."""
    end = (total + '"}\n').encode()
    try:
        fd = posix.open(path, posix.O_RDONLY)
    except (OSError, ValueError):
        return False
    try:
        size = posix.fstat(fd).st_size
        return (size == hint if last else size >= hint) and posix.pread(fd, len(end), hint - len(end)) == end
    except OSError:
        return False
    finally:
        posix.close(fd)
