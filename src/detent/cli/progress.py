"""Progress on standard error: one line that is redrawn at a terminal, else a plain line every few seconds."""

import sys
import time

from detent.core.task.title import without_sequences

#: Seconds before the first line.
_QUIET_S = 2.0
_REDRAW_S, _REPEAT_S = 0.1, 5.0


class Progress:
    """Call it with the number done and the total; `clear` it before other output."""

    def __init__(self, doing: str) -> None:
        self._doing = doing
        self._drawn = 0
        self._due_s: float | None = None
        self._total = 0

    def __call__(self, done: int, total: int) -> None:
        now_s = time.monotonic()
        if self._due_s is None or not done or total != self._total:
            self._due_s, self._total = now_s + _QUIET_S, total
        self._draw(f"{self._doing}, {done} of {total}", now_s)

    def running(self, gate: str, seconds: float) -> None:
        """The check of a gate runs for so long."""
        now_s = time.monotonic()
        if self._due_s is None:
            self._due_s = now_s + _QUIET_S
        self._draw(f"the check of {gate} runs, {seconds:.0f} s", now_s)

    def _draw(self, text: str, now_s: float) -> None:
        if self._due_s is None or now_s < self._due_s:
            return
        line = f"detent: {text}"
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{line:<{self._drawn}}")
            self._drawn = len(line)
            self._due_s = now_s + _REDRAW_S
        else:
            sys.stderr.write(f"{line}\n")
            self._due_s = now_s + _REPEAT_S
        sys.stderr.flush()

    def clear(self) -> None:
        if self._drawn:
            sys.stderr.write(f"\r{'':<{self._drawn}}\r")
            sys.stderr.flush()
        self._drawn, self._due_s = 0, None


class OutputLines:
    """The output of a command on standard error, line by line, without terminal sequences."""

    def __init__(self) -> None:
        self._begun = b""

    def __call__(self, output: bytes) -> None:
        *lines, self._begun = (self._begun + output).split(b"\n")
        for line in lines:
            self._write(line)

    def end(self) -> None:
        if self._begun:
            self._write(self._begun)
        self._begun = b""

    @staticmethod
    def _write(line: bytes) -> None:
        text = without_sequences(line.decode("utf-8", "replace").rstrip("\r"))
        sys.stderr.write("".join(c if c.isprintable() or c == "\t" else " " for c in text) + "\n")
        sys.stderr.flush()
