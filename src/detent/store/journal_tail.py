"""Reads the end of a journal, for the store and for the hook process. Builtins only."""

import posix

JOURNAL = "journal.jsonl"
SUM_KEY, END = b',"sum":"', b'"}\n'
_SUM_LENGTH = 32
SUM_TAIL = len(SUM_KEY) + _SUM_LENGTH + len(END)
_CHUNK = 1 << 16


def sum_at_end(data: bytes) -> str:
    """The sum of the line that `data` ends with, unverified; empty if it does not end with one."""
    tail = data[-SUM_TAIL:]
    framed = tail.startswith(SUM_KEY) and tail.endswith(END)
    return tail[len(SUM_KEY) : -len(END)].decode("latin-1") if framed else ""


def holds(path: str, total: str, hint: int, *, last: bool = False) -> bool:
    """Whether the commit with this sum ends at the cursor's hint; with `last` also whether it is the last."""
    try:
        fd = posix.open(path, posix.O_RDONLY)
    except (OSError, ValueError):
        return False
    try:
        return is_at(fd, total, hint) and (not last or posix.fstat(fd).st_size <= hint)
    except OSError:
        return False
    finally:
        posix.close(fd)


def is_at(fd: int, total: str, hint: int) -> bool:
    """Whether the commit with this sum ends at the hint. The newline may be missing at the end of the file."""
    if hint < SUM_TAIL:
        return hint == 0
    end = SUM_KEY + total.encode() + END
    return posix.pread(fd, SUM_TAIL, hint - SUM_TAIL) in (end, end[:-1])


def head(fd: int) -> "tuple[str, int]":
    """The sum of the last line that ends like one, unverified, and the position behind it; `("", 0)` without one."""
    size = posix.fstat(fd).st_size
    total = sum_at_end(posix.pread(fd, SUM_TAIL, max(0, size - SUM_TAIL)))
    length = min(_CHUNK, size)
    while not total and length:
        data = posix.pread(fd, length, size - length)
        end = data.rfind(END)
        while end >= 0:
            total = sum_at_end(data[: end + len(END)])
            if total:
                return total, size - length + end + len(END)
            end = data.rfind(END, 0, end)
        if length == size:
            return "", 0
        length = min(length * 4, size)
    return (total, size) if total else ("", 0)
