"""Starts processes: in a process group of their own, with limits for output and time."""

import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import IO

import msgspec

from detent.core.reports.limits import ReportFile
from detent.process.sandbox import PROGRAM as SANDBOX_PROGRAM
from detent.process.sandbox import Sandbox

#: Size of the beginning and of the end of the output that is kept.
HEAD_BYTES = 64 * 1024
TAIL_BYTES = 256 * 1024
_CHUNK = 64 * 1024
GRACE_S = 2.0
_TICK_S = 0.1
_MAX_LINE_BYTES = 4 * 1024


#: The shell of the system, whatever PATH says; it reads no start-up file.
_SHELL = (shutil.which("bash", path=os.defpath) or "bash", "--noprofile", "--norc", "-c")


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a command. `exit_code` is None if it could not be started or took too long."""

    exit_code: int | None
    output: str
    duration_s: float
    problem: str | None = None
    #: The reports that test runners wrote because they were asked to, and the directory that they ran in.
    reports: tuple[bytes, ...] = ()
    directory: str = ""
    #: The declared reports that the run wrote; and why those of a pattern do not count.
    files: tuple[ReportFile, ...] = ()
    unread: dict[str, str] = {}


def run(
    command: str | Sequence[str],
    *,
    cwd: str,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    tail_bytes: int = TAIL_BYTES,
    watch: Callable[[bytes, float], object] | None = None,
    sandbox: Sandbox | None = None,
    input_file: str = os.devnull,
) -> Ran:
    """Run a shell command line or an argument vector; output and errors are merged, in order.

    `input_file` is its standard input. `env` is the whole environment; without it the process has the one of this
    process. `watch` gets the output as it comes, and the seconds that the command has run, several times a second.
    """
    argv = [*_SHELL, command] if isinstance(command, str) else list(command)
    if sandbox is not None:
        argv, env = sandbox.wrap(argv, cwd), sandbox.environment(os.environ if env is None else env)
    started = time.monotonic()
    try:
        with open(input_file, "rb") as given:
            child = subprocess.Popen(  # noqa: S603 - running declared commands is its purpose
                argv,
                cwd=cwd,
                env=None if env is None else dict(env),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        return Ran(exit_code=None, output="", duration_s=0.0, problem=f"could not start {argv[0]}: {error.strerror}")
    output = _Output(child, tail_bytes, is_watched=watch is not None)
    try:
        _wait(child, timeout_s, output, watch)
    except subprocess.TimeoutExpired:
        end_all(child)
        problem = f"ended after {timeout_s:g} s"
        return Ran(exit_code=None, output=output.text(), duration_s=time.monotonic() - started, problem=problem)
    except BaseException:
        end_all(child)
        raise
    text = output.text()
    if watch is not None:
        watch(output.fresh(), time.monotonic() - started)
    return Ran(exit_code=child.returncode, output=text, duration_s=time.monotonic() - started)


def _wait(
    child: subprocess.Popen[bytes],
    timeout_s: float,
    output: "_Output",
    watch: Callable[[bytes, float], object] | None,
) -> None:
    """Wait for the end of the child. Raises `TimeoutExpired`."""
    began = time.monotonic()
    while (waited_s := time.monotonic() - began) < timeout_s:
        if _has_ended(child, min(_TICK_S, timeout_s - waited_s)):
            return
        if watch is not None:
            watch(output.fresh(), waited_s)
    raise subprocess.TimeoutExpired(child.args, timeout_s)


def _has_ended(child: subprocess.Popen[bytes], wait_s: float) -> bool:
    """Whether the child ends within this time. `Popen.wait` looks at intervals, and notices it up to 50 ms late."""
    if sys.platform == "linux":
        with suppress(OSError):
            descriptor = os.pidfd_open(child.pid)
            try:
                end = select.poll()
                end.register(descriptor, select.POLLIN)
                end.poll(wait_s * 1000)
            finally:
                os.close(descriptor)
            return child.poll() is not None
    with suppress(subprocess.TimeoutExpired):
        child.wait(timeout=wait_s)
    return child.returncode is not None


def attach(argv: Sequence[str], *, timeout_s: float) -> str | None:
    """Run a program at the terminal of this process, where it may ask; returns why it failed, or None.

    What it prints goes to standard error.
    """
    try:
        code = subprocess.run(  # noqa: S603 - the caller names the program
            argv, stdin=subprocess.DEVNULL, stdout=2, check=False, timeout=timeout_s
        ).returncode
    except subprocess.TimeoutExpired:
        return f"{argv[0]} was ended after {timeout_s:g} s"
    except OSError as error:
        return f"could not start {argv[0]}: {error.strerror}"
    return f"{argv[0]} ended with the exit code {code}" if code else None


def detach(argv: Sequence[str], *, cwd: str) -> int:
    """Start a process that outlives this one, without input and output; its id."""
    with open(os.devnull, "r+b") as nothing:
        child = subprocess.Popen(  # noqa: S603 - the caller names the program
            argv, cwd=cwd, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True
        )
    # This process does not wait for it. A return code stops `Popen` from warning of a child that still runs.
    child.returncode = 0
    return child.pid


def start(argv: Sequence[str], *, cwd: str, env: Mapping[str, str], streams: Sequence[int]) -> subprocess.Popen[bytes]:
    """Start a process with these descriptors as its standard streams. The caller waits for it, or calls `end_all`."""
    given, output, errors = streams
    return subprocess.Popen(  # noqa: S603 - the caller names the program
        argv, cwd=cwd, env=dict(env), stdin=given, stdout=output, stderr=errors, start_new_session=True
    )


class Captured(msgspec.Struct, frozen=True, kw_only=True):
    """Output and errors of a script, up to a limit. `left_out` is the size of the output beyond the limit.

    `exit_code` is None if the script could not be started or took too long.
    """

    exit_code: int | None
    output: bytes = b""
    errors: bytes = b""
    left_out: int = 0
    duration_s: float = 0.0
    problem: str | None = None


#: Waits for a line, then becomes the script; exits if the pipe is closed instead. `-p` reads no start-up file.
_WAITING = 'read -r _ || exit; exec bash -c "$1" </dev/null'


def capture(
    script: str,
    *,
    cwd: str,
    env: Mapping[str, str],
    timeout_s: float,
    max_bytes: int,
    started: Callable[[int], object],
    watch: Callable[[bytes], object],
    sandbox: Sandbox | None = None,
) -> Captured:
    """Run a bash script with exactly this environment; output and errors are kept apart.

    `started` gets the id of the process group, and the script begins after it has returned: if the caller dies before,
    no unrecorded process is left running. `watch` is called ten times a second with the last line of output. If one of
    them raises, the group is ended first.
    """
    since = time.monotonic()
    argv = ["bash", "-p", "-c", _WAITING, "bash", script]
    if sandbox is not None:
        argv, env = sandbox.wrap(argv, cwd), sandbox.environment(env)
    try:
        child = subprocess.Popen(  # noqa: S603 - running declared commands is its purpose
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Captured(exit_code=None, problem=f"could not start bash in {cwd}: {error.strerror}")
    problem = None
    try:
        output, errors = _Head(child.stdout, max_bytes), _Head(child.stderr, max_bytes)
        started(child.pid)
        _close_input(child, b"\n")
        since = time.monotonic()
        while child.poll() is None:
            watch(output.line or errors.line)
            left_s = since + timeout_s - time.monotonic()
            if left_s <= 0:
                problem = f"ended after {timeout_s:g} s"
                end_all(child)
                break
            _has_ended(child, min(_TICK_S, left_s))
    except BaseException:
        end_all(child)
        _close_input(child)
        raise
    kept, left_out = output.close()
    return Captured(
        exit_code=None if problem else child.returncode,
        output=kept,
        errors=errors.close()[0],
        left_out=left_out,
        duration_s=time.monotonic() - since,
        problem=problem,
    )


def _close_input(child: subprocess.Popen[bytes], line: bytes = b"") -> None:
    assert child.stdin is not None
    if child.stdin.closed:
        return
    # The pipe is broken if the process has ended meanwhile; its exit code is what counts.
    with suppress(BrokenPipeError):
        if line:
            child.stdin.write(line)
            child.stdin.flush()
    with suppress(BrokenPipeError):
        child.stdin.close()


def born(pid: int) -> str | None:
    """The start time of a process, which tells it from a later one with the same id; None if there is none."""
    if os.path.isdir("/proc/self"):
        fields = stat(pid)
        return fields[19].decode() if fields else None
    return run(["ps", "-o", "lstart=", "-p", str(pid)], cwd="/", timeout_s=5.0).output.strip() or None


def end_group(leader: int) -> None:
    """End all processes of a group that another process started: SIGTERM, then SIGKILL."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(leader, kind)
        until = time.monotonic() + GRACE_S
        while is_alive := _has_members(leader):
            if time.monotonic() > until:
                break
            time.sleep(0.02)
        if not is_alive:
            return


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        return False
    if not os.path.isdir("/proc/self"):
        return True
    # `killpg` also finds zombies.
    return next(_members(group), None) is not None


def _members(group: int) -> Iterator[int]:
    """The processes of a group that have not ended, by /proc."""
    wanted = [str(group).encode()]
    return (int(name) for name in os.listdir("/proc") if name.isdigit() and stat(int(name))[2:3] == wanted)


def stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; empty for a process that has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return []
    return fields if fields[:1] != [b"Z"] else []


def end_all(child: subprocess.Popen[bytes], *, ask: bool = True) -> None:
    """End a process and its whole group. With `ask` it first gets SIGTERM and a moment to end by itself."""
    if ask:
        _ask_to_end(child)
        with suppress(subprocess.TimeoutExpired):
            child.wait(timeout=GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _ask_to_end(child: subprocess.Popen[bytes]) -> None:
    """Send SIGTERM to the group. The first process of a sandbox is left out: all others die with it at once."""
    argv = child.args
    if not (isinstance(argv, list) and os.path.basename(str(argv[0])) == SANDBOX_PROGRAM):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        return
    for pid in _members(child.pid):
        if pid != child.pid:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)


class _Output:
    """Reads a child's pipe to its end, and keeps the beginning and the end of the output."""

    def __init__(self, child: subprocess.Popen[bytes], tail_bytes: int, *, is_watched: bool = False) -> None:
        assert child.stdout is not None
        self._tail_bytes = tail_bytes
        self._is_watched = is_watched
        self._fresh: list[bytes] = []
        self._pipe = child.stdout
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def fresh(self) -> bytes:
        """The output since the last call."""
        chunks: list[bytes] = []
        while self._fresh:
            chunks.append(self._fresh.pop(0))
        return b"".join(chunks)

    def text(self) -> str:
        """The output. A daemon of the command may hold the pipe open, so the wait is limited."""
        self._reader.join(timeout=GRACE_S)
        gap = f"\n[… {self._dropped} bytes left out …]\n".encode() if self._dropped else b""
        return b"".join((self._head, gap, self._tail)).decode("utf-8", "replace")

    def _read(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                if self._is_watched:
                    self._fresh.append(chunk)
                room = HEAD_BYTES - len(self._head)
                self._head += chunk[:room] if room > 0 else b""
                self._tail += chunk[room:] if room > 0 else chunk
                excess = len(self._tail) - self._tail_bytes
                if excess > 0:
                    del self._tail[:excess]
                    self._dropped += excess


class _Head:
    """Reads a pipe to its end, and keeps the beginning of the output and the last complete line."""

    def __init__(self, pipe: IO[bytes] | None, limit: int) -> None:
        assert pipe is not None
        self.line = b""
        self._pipe, self._limit = pipe, limit
        self._kept = bytearray()
        self._left_out = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def close(self) -> tuple[bytes, int]:
        """The kept output, and the size of the rest. A daemon of the script may hold the pipe open."""
        self._reader.join(timeout=GRACE_S)
        return bytes(self._kept), self._left_out

    def _read(self) -> None:
        begun = b""
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                room = max(0, self._limit - len(self._kept))
                self._kept += chunk[:room]
                self._left_out += max(0, len(chunk) - room)
                lines = (begun + chunk).replace(b"\r", b"\n").split(b"\n")
                begun = lines[-1][:_MAX_LINE_BYTES]
                self.line = next((line for line in reversed(lines[:-1]) if line.strip()), self.line)[:_MAX_LINE_BYTES]
