"""The only place that starts processes: own process group, no input, bounded output, bounded time."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

import msgspec

#: Of the output, this much from the start and from the end is kept.
HEAD_BYTES = 64 * 1024
TAIL_BYTES = 256 * 1024
_CHUNK = 64 * 1024
_GRACE_S = 2.0


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended. `exit_code` is None if it could not be started or was ended for taking too long."""

    exit_code: int | None
    output: str
    duration_s: float
    problem: str | None = None


def run(
    command: str | Sequence[str],
    *,
    cwd: str,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    tail_bytes: int = TAIL_BYTES,
) -> Ran:
    """Run a shell command line or an argument vector; output and errors come together, in order."""
    argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
    started = time.monotonic()
    try:
        child = subprocess.Popen(  # noqa: S603 - running declared commands is its purpose
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Ran(exit_code=None, output="", duration_s=0.0, problem=f"could not start {argv[0]}: {error.strerror}")
    output = _Output(child, tail_bytes)
    try:
        child.wait(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        _end(child)
        problem = f"ended after {timeout_s:g} s"
        return Ran(exit_code=None, output=output.text(), duration_s=time.monotonic() - started, problem=problem)
    except BaseException:
        _end(child)
        raise
    # A daemon that the command left behind may hold the pipe open: do not wait for it.
    text = output.text()
    return Ran(exit_code=child.returncode, output=text, duration_s=time.monotonic() - started)


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the whole process group, kindly and then firmly."""
    for kind, patience in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        try:
            os.killpg(child.pid, kind)
            child.wait(timeout=patience)
        except ProcessLookupError:
            child.wait()
            return
        except subprocess.TimeoutExpired:
            continue


class _Output:
    """Reads a child's pipe to its end, keeping the start and the end of what came."""

    def __init__(self, child: subprocess.Popen[bytes], tail_bytes: int) -> None:
        assert child.stdout is not None
        self._tail_bytes = tail_bytes
        self._pipe = child.stdout
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def text(self) -> str:
        self._reader.join(timeout=_GRACE_S)
        gap = f"\n[… {self._dropped} bytes left out …]\n".encode() if self._dropped else b""
        return b"".join((self._head, gap, self._tail)).decode("utf-8", "replace")

    def _read(self) -> None:
        with self._pipe:
            while chunk := os.read(self._pipe.fileno(), _CHUNK):
                room = HEAD_BYTES - len(self._head)
                self._head += chunk[:room] if room > 0 else b""
                self._tail += chunk[room:] if room > 0 else chunk
                excess = len(self._tail) - self._tail_bytes
                if excess > 0:
                    del self._tail[:excess]
                    self._dropped += excess
