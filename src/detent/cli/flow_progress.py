"""How far the steps of a task are, on standard error: a line drawn over at a terminal, else a plain line for each."""

import sys
import time

from detent.cli.request import canvas, shown
from detent.core.flow.progress import StepRun
from detent.core.flow.step import Step
from detent.render.elapsed import duration
from detent.render.terminal.flow import ended_line, step_line

_REDRAW_S = 0.2


class Watch:
    """Looks on while steps run, and stops them when it was told to; see `Observer` of the engine."""

    def __init__(self, *, shown: bool) -> None:
        self.is_stopped = False
        self._is_live = sys.stderr.isatty()
        self._is_shown = shown or self._is_live
        self._head = ""
        self._since_s = self._drawn_s = 0.0
        self._is_drawn = False

    def begins(self, number: int, total: int, step: Step) -> None:
        self._check()
        self._head, self._since_s = step_line(number, total, step.step, step.action), time.monotonic()
        if self._is_live:
            self._draw("")
        else:
            self._say(self._head)

    def watches(self, line: str) -> None:
        self._check()
        if self._is_live and time.monotonic() - self._drawn_s >= _REDRAW_S:
            self._draw(line)

    def ended(self, number: int, total: int, came: StepRun) -> None:
        self.clear()
        if self._is_live:
            self._say(self._head)
        self._say(f"step {number} of {total}: {ended_line(came)}")
        self._check()

    def clear(self) -> None:
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
        self._is_drawn = False

    def _check(self) -> None:
        if self.is_stopped:
            raise KeyboardInterrupt

    def _draw(self, line: str) -> None:
        self._drawn_s = time.monotonic()
        told = f"{self._head}  {duration(self._drawn_s - self._since_s)}  {line}"
        width = canvas().width
        sys.stderr.write(f"\r{canvas().cut(told, width - 1)}\x1b[K")
        sys.stderr.flush()
        self._is_drawn = True

    def _say(self, line: str) -> None:
        if self._is_shown:
            sys.stderr.write(f"detent: {shown(line)}\n")
            sys.stderr.flush()
