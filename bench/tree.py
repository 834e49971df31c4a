"""A tree of files that work is done on, and git as it is by default."""

import os
import random
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

TOTAL_BYTES = 20_000_000
DIRECTORIES = 100
#: What was changed shortly before it was looked at is looked at again, by git as well as by us.
SETTLED_S = 0.2
_RUN_S_MAX = 120
_ENVIRONMENT = {
    "PATH": os.environ.get("PATH", os.defpath),
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "bench@example.invalid" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


class Tree:
    """So many files, 20 MB together: every other one is of random bytes, the rest of the same line again and again."""

    def __init__(self, directory: str, count: int) -> None:
        self.directory = directory
        self.files = [os.path.join(directory, f"part-{n % DIRECTORIES:02d}", f"file-{n:05d}.txt") for n in range(count)]
        self._turn = 0
        each, chance = TOTAL_BYTES // count, random.Random(count)
        for number in range(DIRECTORIES):
            os.makedirs(os.path.join(directory, f"part-{number:02d}"))
        for number, path in enumerate(self.files):
            line = b"line of file %d\n" % number
            with open(path, "wb") as file:
                file.write(chance.randbytes(each) if number % 2 else (line * (each // len(line) + 1))[:each])
        time.sleep(SETTLED_S)

    def change(self, count: int) -> None:
        """New bytes, never seen before, at the start of the next `count` files."""
        for _ in range(count):
            with open(self.files[self._turn % len(self.files)], "r+b", buffering=0) as file:
                file.write(b"%016d" % self._turn)
            self._turn += 1


class Repository:
    """Git in a tree. Without its collection of garbage, which would go on beside what is measured next."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.run("init", "-q")
        self.run("config", "gc.auto", "0")

    def commit(self) -> None:
        self.run("add", "-A")
        self.run("commit", "-q", "-m", "x")

    def checkout(self, commit: str) -> None:
        self.run("checkout", "-q", "-f", commit)

    def head(self) -> str:
        return self.run("rev-parse", "HEAD").strip()

    def run(self, *arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=self._directory,
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
            check=True,
            timeout=_RUN_S_MAX,
        ).stdout


@contextmanager
def beside(directory: str) -> Iterator[tuple[str, str]]:
    """Paths of two directories, which are not there yet and are removed at the end."""
    with tempfile.TemporaryDirectory(dir=directory, ignore_cleanup_errors=True) as own:
        yield os.path.join(own, "ours"), os.path.join(own, "theirs")
