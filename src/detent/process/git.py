"""Runs git in a directory: without a terminal, with the person's own settings and hooks."""

import os
import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from detent import process
from detent.errors import Conflict, Refused

#: A git hook of the person may run a whole test suite.
TIMEOUT_S = 1_500.0
#: Maximum wait for another git process that holds the index.
BUSY_S = 10.0
_PAUSE_S = 0.1
_MAX_BYTES = 64 * 1024 * 1024
#: Variables that select another repository. They are set if a git hook started Detent.
_OF_ANOTHER = (
    "GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
)  # fmt: skip
_UNFINISHED = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase or am",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
}
#: A repository inside of the project, which an agent can make, could name any program for that.
_NO_MONITOR = ("-c", "core.fsmonitor=false")
_IDENTITY = ("-c", "user.name=Detent", "-c", "user.email=detent@localhost")


class Git:
    def __init__(self, directory: str, env: Mapping[str, str] | None = None) -> None:
        """`env` are further variables, such as another index or another directory of objects."""
        self.directory = directory
        self._env = env or {}

    def run(self, *arguments: str, started: Callable[[int], object] = id) -> process.Captured:
        """Run git and return the result, also of a failure. Waits for another git process that holds the index.

        `started` is called with the process id.
        """
        until = time.monotonic() + BUSY_S
        while True:
            ran = process.capture(
                shlex.join(["exec", "git", *_NO_MONITOR, *arguments]),
                cwd=self.directory,
                env={**environment(), **self._env},
                timeout_s=TIMEOUT_S,
                max_bytes=_MAX_BYTES,
                started=started,
                watch=id,
            )
            if ran.exit_code in (None, 127):
                problem = ran.problem or last_lines(ran) or "git was not found"
                raise Refused(f"could not run git {arguments[0]} in {self.directory}: {problem}")
            if ran.exit_code == 0 or b"index.lock': File exists" not in ran.errors:
                return ran
            if time.monotonic() > until:
                raise Conflict(
                    f"another git works in {self.directory}, or was killed: {self.index_lock()} exists",
                    way_out=f"retry; if no git runs there, rm {shlex.quote(self.index_lock())}",
                )
            time.sleep(_PAUSE_S)

    def ask(self, *arguments: str) -> str:
        """The output of the command. Raises `Refused` with git's own message if it fails."""
        ran = self.run(*arguments)
        if ran.exit_code != 0:
            raise Refused(f"git {' '.join(arguments[:2])} failed in {self.directory}: {last_lines(ran)}")
        return os.fsdecode(ran.output).rstrip("\n")

    def paths(self, *arguments: str) -> list[str]:
        """The paths in the output of a command with `-z`."""
        return [path for path in self.ask(*arguments).split("\0") if path]

    def holds(self, *arguments: str) -> bool:
        """Whether the command exits with 0."""
        return self.run(*arguments).exit_code == 0

    def commit_of(self, name: str) -> str | None:
        ran = self.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        return os.fsdecode(ran.output).strip() if ran.exit_code == 0 else None

    def contains(self, commit: str, branch: str = "HEAD") -> bool:
        """Whether `commit` is an ancestor of the branch."""
        return self.holds("merge-base", "--is-ancestor", commit, branch)

    def own_directory(self) -> str:
        """The git directory of this checkout, which holds files such as `MERGE_HEAD`."""
        return self.ask("rev-parse", "--absolute-git-dir")

    def index_lock(self) -> str:
        return os.path.join(self.own_directory(), "index.lock")

    def unfinished(self) -> str | None:
        """The operation that must be finished first, such as a merge or a rebase."""
        here = self.own_directory()
        return next((what for mark, what in _UNFINISHED.items() if os.path.exists(os.path.join(here, mark))), None)

    def changes(self, *paths: str) -> list[str]:
        """Changed and untracked files; not ignored ones."""
        lines = self.paths("status", "--porcelain", "--no-renames", "-z", "--untracked-files=all", "--", ".", *paths)
        return [line[3:] for line in lines]

    def identity(self) -> tuple[str, ...]:
        """Options that make a commit possible where git has no configured identity."""
        known = self.holds("var", "GIT_AUTHOR_IDENT") and self.holds("var", "GIT_COMMITTER_IDENT")
        return () if known else _IDENTITY

    def drop_stale_lock(self, since: float = 0.0) -> None:
        """Remove the locks of a killed git, made after `since`, once they have not changed for a while."""
        for lock in (self.index_lock(), os.path.join(self.own_directory(), "HEAD.lock")):
            with suppress(FileNotFoundError):
                while (made := os.stat(lock).st_mtime) > time.time() - BUSY_S:
                    time.sleep(_PAUSE_S)
                if made >= since:
                    os.unlink(lock)


def last_lines(ran: process.Captured) -> str:
    """The last lines of its errors, or of its output without errors."""
    text = (ran.errors.strip() or ran.output.strip()).decode("utf-8", "replace")
    return "\n".join(text.splitlines()[-20:])


def environment() -> dict[str, str]:
    """The environment of git: without a terminal, and without the variables of another repository."""
    inherited = {name: value for name, value in os.environ.items() if name not in _OF_ANOTHER}
    return {
        **inherited,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_EDITOR": "true",
        "GIT_MERGE_AUTOEDIT": "no",
        "LC_ALL": "C.UTF-8",
    }
