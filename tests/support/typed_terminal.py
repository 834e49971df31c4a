"""A person at a terminal: a process with a terminal of its own, what it shows there, and what is typed."""

import fcntl
import os
import pty
import re
import select
import subprocess
import termios
import time
from collections.abc import Mapping
from pathlib import Path

from tests.support.attended import answered
from tests.support.command import DETENT

WAIT_S = 60.0
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\a]")


class Terminal:
    """Runs `detent`, or another program, with the arguments. Ends it, if it still runs, when the context is left."""

    def __init__(
        self,
        directory: Path,
        environment: Mapping[str, str],
        *arguments: str,
        program: str | Path = DETENT,
        confirms: bool = True,
    ) -> None:
        """`confirms`: the person types yes when asked whether a decision is theirs."""
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, b"\x18\x00\x78\x00\x00\x00\x00\x00")
        self.process = subprocess.Popen(
            [program, *arguments],
            cwd=directory,
            env={**environment, "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - no other thread is there
        )
        os.close(slave)
        self._raw = b""
        self._read_to = 0
        self._unanswered: bytes | None = b"" if confirms else None

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        return _CONTROLS.sub("", self._raw.decode("utf-8", "replace"))

    def expect(self, *texts: str) -> str:
        """Wait until these were shown, one after the other, since what was waited for before; all that was shown."""
        began = self._read_to
        for text in texts:
            end = time.monotonic() + WAIT_S
            while (at := self.text.find(text, self._read_to)) < 0:
                assert self._listen(end), f"{text!r} is not in what was shown since: {self.text[self._read_to :]}"
            self._read_to = at + len(text)
        return self.text[began : self._read_to]

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def say(self, line: str) -> None:
        """Wait for the prompt, and answer."""
        self.expect(") > ")
        self.type(f"{line}\n")

    def ended(self) -> int:
        """The exit code, once all was read."""
        end = time.monotonic() + WAIT_S
        while self._listen(end):
            pass
        return self.process.wait(timeout=max(0.1, end - time.monotonic()))

    def hang_up(self) -> None:
        os.close(self._master)
        self._master = os.open(os.devnull, os.O_RDONLY)

    def _listen(self, until: float) -> bool:
        """Read what comes; False if nothing more will."""
        left = until - time.monotonic()
        if left <= 0 or not select.select([self._master], [], [], left)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a terminal ends that no process holds
            return False
        self._raw += data
        if self._unanswered is not None:
            self._unanswered = answered(self._master, self._unanswered + data)
        return bool(data)


def take_terminal() -> None:
    """Make standard input the controlling terminal: Ctrl-C and a hangup come as signals, and a person decides there."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
