"""What an installation or a removal would do to the disk, as values; `diff` shows it to a person."""

import difflib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from detent.config.place import STATE

#: Where Detent keeps what it needs for the removal; no part of the diff.
RECORDS = f"{STATE}/install"


class Change(NamedTuple):
    #: Relative to the root, links resolved.
    path: str
    #: Content of the file; none for no file.
    before: bytes | None
    after: bytes | None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    root: str
    #: In the order in which they are made.
    changes: tuple[Change, ...] = ()
    #: What was left alone, and why.
    notes: tuple[str, ...] = ()
    #: Directories to remove afterwards if nothing is left in them.
    directories: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    @property
    def is_empty(self) -> bool:
        return not self.changes

    def diff(self) -> str:
        """Unified, as `git apply` and `patch -p1` take it."""
        return "".join(_diff(change) for change in self.changes if not change.path.startswith(RECORDS + "/"))


def _diff(change: Change) -> str:
    before, after = _lines(change.before), _lines(change.after)
    old = "/dev/null" if change.before is None else f"a/{change.path}"
    new = "/dev/null" if change.after is None else f"b/{change.path}"
    # Without a header a file that is made or removed empty has no hunk to be seen by.
    header = f"diff --git a/{change.path} b/{change.path}\n"
    if change.before is None:
        header += "new file mode 100644\n"
    if change.after is None:
        header += "deleted file mode 100644\n"
    hunks = difflib.unified_diff(before, after, old, new)
    return header + "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in hunks
    )


def _lines(content: bytes | None) -> Sequence[str]:
    """Cut at newlines only: `splitlines` knows further ones, which `patch` does not."""
    text = (content or b"").decode(errors="replace")
    *whole, last = text.split("\n")
    return [line + "\n" for line in whole] + ([last] if last else [])
