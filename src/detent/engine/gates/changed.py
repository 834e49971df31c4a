"""The lines of the project that have changed since the session began, or since a commit of git."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from detent.core.checkpoint.manifest import Entry
from detent.core.path_text import to_text
from detent.core.reports.changed_lines import MAX_BYTES, changed_lines
from detent.errors import Corrupt
from detent.process.git import Git, last_lines

_NO_PROGRAMS = ("--no-pager", "--no-optional-locks", "-c", "diff.external=")


class Before(NamedTuple):
    """The content of a file before; None for a new file."""

    content: bytes | None
    unchanged: bool = False


UNCHANGED = Before(None, unchanged=True)


def changed_since(
    directory: str, present: Mapping[str, Entry], before: Callable[[str, Entry], Before]
) -> dict[str, dict[int, bytes]]:
    """Path to its changed lines, by number. Links and removed files have none."""
    changed: dict[str, dict[int, bytes]] = {}
    for path, entry in present.items():
        was = UNCHANGED if entry.kind == "l" else before(path, entry)
        if was.unchanged:
            continue
        try:
            with open(os.path.join(directory, path), "rb") as file:
                now = file.read(MAX_BYTES + 1)
        except OSError:
            continue
        lines = now.splitlines()
        numbers = changed_lines(was.content, now)
        if numbers:
            changed[to_text(path)] = {number: lines[number - 1] for number in sorted(numbers)}
    return changed


def commit_reader(directory: str, commit: str) -> Callable[[str, Entry], Before]:
    """Reads the files of a commit. `Corrupt` if git does not know the commit."""
    # Git compares with the files on disk, and lists those that differ or are not tracked.
    differing = _git(
        directory,
        "diff",
        "--name-only",
        "--no-ext-diff",
        "--no-textconv",
        "--no-renames",
        "--relative",
        "-z",
        commit,
        "--",
    )
    untracked = _git(directory, "ls-files", "--others", "--exclude-standard", "-z")
    paths = {os.fsdecode(path) for path in (differing + untracked).split(b"\0") if path}

    def read(path: str, _: Entry) -> Before:
        if path not in paths:
            return UNCHANGED
        try:
            return Before(_git(directory, "show", "--no-textconv", f"{commit}:./{path}"))
        except Corrupt:
            return Before(None)

    return read


def _git(directory: str, *words: str) -> bytes:
    """The output of git, without programs that the settings of the project may name."""
    ran = Git(directory).run(*_NO_PROGRAMS, *words)
    if ran.exit_code != 0 or ran.left_out:
        raise Corrupt(f"git {words[0]} failed: {last_lines(ran) or f'exit code {ran.exit_code}'}")
    return ran.output
