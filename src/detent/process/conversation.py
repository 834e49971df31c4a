"""Runs a process interactively: its input, its output line by line, and an end of the whole group."""

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from typing import IO, NamedTuple, cast

from detent.process import end_all
from detent.process.sandbox import Sandbox

#: The rest of a longer line is dropped; its size is reported at the end.
MAX_LINE_BYTES = 8 * 1024 * 1024
ERROR_BYTES = 16 * 1024
_CHUNK = 64 * 1024
_TICK_S = 0.05
#: Time to wait for the last output after the process has ended; a daemon may hold the pipe open for ever.
_DRAIN_S = 0.2


class Exited(NamedTuple):
    """The end of a process. `exit_code` is None if it was not started or was stopped; `problem` gives the reason."""

    exit_code: int | None
    errors: str = ""
    dropped: int = 0
    problem: str | None = None
    timed_out: bool = False


class Input:
    """The standard input of a process. More can be written while the process runs, until it is closed."""

    def __init__(self, data: bytes = b"") -> None:
        self.pending = bytearray(data)
        self.is_closed = False

    def write(self, data: bytes) -> None:
        self.pending += data

    def close(self) -> None:
        self.is_closed = True


def converse(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    given: bytes | Input = b"",
    timeout_s: float,
    stopping: Callable[[], bool],
    sandbox: Sandbox | None = None,
) -> Generator[list[bytes] | Exited | None, None, None]:
    """Yields the lines of output as they come, None for every moment without one, and an `Exited` at the end.

    The process gets `given` as its input and exactly this environment, and runs in a process group of its own. An
    `Input` is written as it is filled, while the iterator is consumed.
    `stopping` is called several times a second; the process is ended when it returns True, or when the iterator is
    closed.
    """
    if isinstance(given, bytes):
        given = Input(given)
        given.close()
    if sandbox is not None:
        argv, env = sandbox.wrap(argv, cwd), sandbox.environment(env)
    try:
        child = subprocess.Popen(  # noqa: S603 - running declared commands is its purpose
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE if given.pending or not given.is_closed else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        yield Exited(None, problem=f"could not start {argv[0]}: {error.strerror}")
        return
    talk = _Talk(child, given)
    deadline = time.monotonic() + timeout_s
    problem, timed_out = None, False
    lines: list[bytes] = []
    try:
        while lines or not talk.is_over():
            if stopping():
                problem = "stopped"
            elif time.monotonic() >= deadline:
                problem, timed_out = f"ended after {timeout_s:g} s", True
            if problem is not None:
                break
            if lines:
                talk.answer()
            else:
                lines = talk.listen()
            # A process that is answered hears the answer to a line before the next line is looked at.
            at = 1 if not given.is_closed else len(lines)
            yield lines[:at] or None
            lines = lines[at:]
    finally:
        end_all(child, ask=problem is not None or child.poll() is None)
        talk.close()
    if rest := talk.rest():
        yield rest
    code = None if problem is not None else child.returncode
    yield Exited(code, talk.errors(), talk.dropped, problem, timed_out)


class _Talk:
    """The three pipes of a process; none of them blocks the others."""

    def __init__(self, child: "subprocess.Popen[bytes]", given: Input) -> None:
        assert child.stdout is not None
        assert child.stderr is not None
        self._child, self._given = child, given
        self._open = selectors.DefaultSelector()
        self._line, self._errors = bytearray(), bytearray()
        self.dropped = 0
        self._ended_at: float | None = None
        for pipe, kind in ((child.stdout, selectors.EVENT_READ), (child.stderr, selectors.EVENT_READ)):
            os.set_blocking(pipe.fileno(), False)
            self._open.register(pipe, kind)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)

    def is_over(self) -> bool:
        """Whether the process has ended and its output is complete, or the wait for it is over."""
        if self._child.poll() is None:
            return False
        if self._ended_at is None:
            self._ended_at = time.monotonic()
        return not self._is_listening() or time.monotonic() - self._ended_at > _DRAIN_S

    def listen(self) -> list[bytes]:
        """The lines of the next moment."""
        if not self._is_listening():
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(timeout=_TICK_S)
            return []
        self._watch_input()
        lines: list[bytes] = []
        for key, _ in self._open.select(_TICK_S):
            pipe = cast("IO[bytes]", key.fileobj)
            if pipe is self._child.stdin:
                self._write(pipe)
            elif pipe is self._child.stdout:
                lines += self._split(self._read(pipe))
            else:
                self._errors += self._read(pipe)
                del self._errors[:-ERROR_BYTES]
        return lines

    def answer(self) -> None:
        """Write what is pending, as far as there is room."""
        pipe = self._child.stdin
        if pipe is not None and self._given.pending and not self._given.is_closed:
            self._write(pipe)

    def rest(self) -> list[bytes]:
        """The output behind the last line feed."""
        return [bytes(self._line)] if self._line else []

    def errors(self) -> str:
        return bytes(self._errors).decode("utf-8", "replace").strip()

    def close(self) -> None:
        self._open.close()
        for pipe in (self._child.stdin, self._child.stdout, self._child.stderr):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def _is_listening(self) -> bool:
        return any(key.fileobj is not self._child.stdin for key in self._open.get_map().values())

    def _read(self, pipe: "IO[bytes]") -> bytes:
        try:
            chunk = os.read(pipe.fileno(), _CHUNK)
        except BlockingIOError:
            return b""
        if not chunk:
            self._open.unregister(pipe)
        return chunk

    def _watch_input(self) -> None:
        """Wait for room in the input only while there is something to write, or an end to tell."""
        pipe = self._child.stdin
        if pipe is None or pipe.closed:
            return
        is_wanted, is_watched = bool(self._given.pending) or self._given.is_closed, pipe in self._open.get_map()
        if is_wanted and not is_watched:
            self._open.register(pipe, selectors.EVENT_WRITE)
        elif is_watched and not is_wanted:
            self._open.unregister(pipe)

    def _write(self, pipe: "IO[bytes]") -> None:
        try:
            del self._given.pending[: os.write(pipe.fileno(), self._given.pending[:_CHUNK])]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it does not read its input
            self._given.pending.clear()
            self._given.close()
        if self._given.is_closed and not self._given.pending:
            if pipe in self._open.get_map():
                self._open.unregister(pipe)
            with suppress(BrokenPipeError):
                pipe.close()

    def _split(self, chunk: bytes) -> list[bytes]:
        *lines, begun = chunk.split(b"\n")
        if lines:
            # Only the first one may have begun in an earlier chunk; none of the others is longer than a chunk.
            self._take(lines[0])
            lines[0] = bytes(self._line)
            self._line.clear()
        self._take(begun)
        return lines

    def _take(self, part: bytes) -> None:
        room = MAX_LINE_BYTES - len(self._line)
        self._line += part[: max(room, 0)]
        self.dropped += max(0, len(part) - max(room, 0))
