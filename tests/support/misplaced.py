"""A project with every kind of file that is no truth, and what can stand in the place of each of them."""

import ctypes
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from detent.cli.main import run
from detent.engine.project import open_project
from tests.support.project import build_project, write
from tests.support.values import TickingClock

SETTINGS = """gates = "off"
[workflows.trial]
phases = ["a", "b", "c"]
"""
SESSION = "WFS-second"
#: The record itself: journals, contents of checkpoints, and what gates were judged on.
TRUTH = (
    "*/journal.jsonl",
    "checkpoints/artifacts/*.pack",
    "checkpoints/artifacts/*/*/*",
    "*/evidence/*",
    "*/protected/*",
)
#: Files that stand only for a while.
PASSING = (
    "checkpoints/rollback.json",
    f"{SESSION}/.process/runner.json",
    f"{SESSION}/.process/run.jsonl",
    f"{SESSION}/.process/check-tests.json",
    "hook-failures.log",
    "install/manifest.json",
    "worktrees/WFS-second.json",
    "worktrees/.lock",
)
#: Longer than any command takes; it ends a command that waits for a pipe.
PATIENCE_S = 60

VERBS = (
    ("status",),
    ("sessions",),
    ("log",),
    ("gates",),
    ("history",),
    ("task", "add", "another one"),
    ("finish", "-m", "done"),
    ("begin",),
    ("checkpoint", "create", "here"),
    ("rollback", "PRE_a_v1", "--yes"),
    ("report",),
)


def furnished(directory: Path) -> Path:
    """An ended session, and one at work, with tasks, artifacts and checkpoints."""
    root = build_project(directory, SETTINGS, files={"notes.txt": "one"})
    with open_project(root, actor="tester", clock=TickingClock()) as project:
        first = project.start("trial", "first", name="WFS-first")
        first.cancel("not needed")
        second = project.start("trial", "second", name=SESSION)
        second.tasks.add("a task")
        write(root, "notes.txt", "two")
        second.finish("a is done", artifacts=["notes.txt"])
        second.begin("b")
    return root


def no_truth(root: Path) -> list[str]:
    """The files of the state directory that are no truth, by their names in it."""
    state = root / ".workflow"
    files = [path.relative_to(state) for path in sorted(state.rglob("*")) if path.is_file()]
    standing = [str(path) for path in files if not any(path.match(truth) for truth in TRUTH)]
    return [*standing, *PASSING]


def _as_garbage(path: Path) -> None:
    path.write_bytes(b'\xff\xfe\x00{"a": [[[ not JSON\n\n17\n')


def _as_nothing(path: Path) -> None:
    path.write_bytes(b"")


def _as_other_json(path: Path) -> None:
    path.write_bytes(b'{"version": -1, "session": "WFS-nobody", "steps": [["../../outside", null, null]], "at": 7}\n')


def _as_directory(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "inside").write_bytes(b"kept")


def _as_pipe(path: Path) -> None:
    path.unlink(missing_ok=True)
    os.mkfifo(path)


def _as_unreadable(path: Path) -> None:
    path.touch()
    path.chmod(0)


def _as_loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path.name)


INSTEAD: dict[str, Callable[[Path], None]] = {
    "garbage": _as_garbage,
    "empty": _as_nothing,
    "other JSON": _as_other_json,
    "a directory": _as_directory,
    "a pipe": _as_pipe,
    "unreadable": _as_unreadable,
    "a link to itself": _as_loop,
}


class Answers(NamedTuple):
    """The exit code of each command, -1 if it did not end; and all output."""

    codes: dict[str, int]
    output: str


def answers(root: Path, verbs: Iterable[tuple[str, ...]]) -> Answers:
    """Run the commands in a process of its own, without the rights of root."""
    codes = {" ".join(verb): -1 for verb in verbs}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as lines:
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            try:
                _answer(root, verbs, output.fileno(), lines.fileno())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        for file in (output, lines):
            file.seek(0)
        codes |= dict(msgspec.json.decode(line) for line in lines)
        return Answers(codes, output.read().decode("utf-8", "replace"))


def _answer(root: Path, verbs: Iterable[tuple[str, ...]], output: int, lines: int) -> None:
    signal.alarm(PATIENCE_S)
    for fd in (1, 2):
        os.dup2(output, fd)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    _drop_rights()
    os.chdir(root)
    for verb in verbs:
        os.write(1, f"$ detent {' '.join(verb)}\n".encode())
        os.write(lines, msgspec.json.encode([" ".join(verb), run(list(verb))]) + b"\n")
        sys.stdout.flush()
        sys.stderr.flush()


def _drop_rights() -> None:
    """Root reads every file by a capability. It is dropped for this process only."""
    if os.getuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        header, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert libc.capget(header, sets) == 0
        # DAC_OVERRIDE and DAC_READ_SEARCH, of the effective set.
        sets[0] &= ~0b110
        assert libc.capset(header, sets) == 0


def put_instead(root: Path, name: str, what: str) -> None:
    path = root / ".workflow" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    INSTEAD[what](path)
