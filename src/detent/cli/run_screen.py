"""Shows the events of a run: a live screen at a terminal, else a line per event, or JSON lines."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

from detent.cli.request import canvas
from detent.core.run.run_event import PersonNeeded, RunEvent, TurnStarted
from detent.core.run.run_view import RunView, fold
from detent.errors import DetentError

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.render.terminal.canvas import Canvas

#: Seconds between two drawings: at least, and at most, so that the clock moves.
_LEAST_S, _MOST_S = 1 / 8, 1.0
#: The pause after a slow drawing, as a multiple of its time.
_SHARE = 5
_LINES, _COLUMNS = 24, 80
_NOTIFY_S = 10.0


class Style(Enum):
    LIVE = auto()
    LINES = auto()
    JSON = auto()

    @classmethod
    def fitting(cls, *, json: bool) -> "Style":
        if json:
            return cls.JSON
        return cls.LIVE if sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb" else cls.LINES


class Screen:
    """The screen of a run. `tell` and `tick` may be called from different threads.

    `session` is never called from two threads at once. `notify` is a program that gets a line of text when a person is
    needed.
    """

    def __init__(
        self,
        session: "Callable[[], Session]",
        *,
        style: Style,
        now: Callable[[], datetime],
        usual: Mapping[str, float] | None = None,
        notify: Sequence[str] = (),
    ) -> None:
        self._session, self._style, self._now = session, style, now
        self._usual, self._notify = usual or {}, tuple(notify)
        self._opened_at = now()
        self._lock = threading.RLock()
        self._view = RunView()
        self._known: Session | None = None
        #: Widths of the lines that the next drawing replaces.
        self._drawn: list[int] = []
        self._drawn_s = 0.0
        self._took_s = 0.0
        self._is_due = False
        self._asides = 0
        self._held: list[RunEvent] = []
        self._notified: set[tuple[str, ...]] = set()
        self._is_gone = False

    def tell(self, event: RunEvent) -> None:
        with self._lock:
            self._view = fold(self._view, event)
            if self._style is Style.LIVE:
                self._is_due = True
                self.tick()
            elif self._asides and self._style is Style.LINES:
                self._held.append(event)
            else:
                self._put(self._line(event))
            if isinstance(event, PersonNeeded):
                self._call_person(event)

    def tick(self) -> None:
        """Draw again if it is time to; call it a few times a second."""
        with self._lock:
            since_s = time.monotonic() - self._drawn_s
            pause_s = max(_LEAST_S, _SHARE * self._took_s) if self._is_due else _MOST_S
            if self._style is Style.LIVE and not self._asides and since_s >= pause_s:
                self._draw()

    def close(self) -> None:
        """Draw the final state and leave it on the screen."""
        with self._lock:
            if self._style is Style.LIVE and self._is_due:
                if self._asides:
                    self._put(b"\n")
                self._draw()
            self._drawn = []

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Suspend drawing, so that a question can be asked at the terminal."""
        with self._lock:
            if self._style is Style.LIVE and self._is_due and not self._asides:
                self._draw()
            self._asides += 1
            self._drawn = []
        try:
            yield
        finally:
            with self._lock:
                self._asides -= 1
                self._is_due = True
                held, self._held = self._held, []
                for event in held:
                    self._put(self._line(event))
                self.tick()

    def _line(self, event: RunEvent) -> bytes:
        if self._style is Style.JSON:
            from detent.run.feed import event_line

            return event_line(event)
        from detent.render.terminal.run_line import run_lines

        if self._known is None or isinstance(event, TurnStarted):
            # A phase that is skipped meanwhile moves the positions of the others.
            with suppress(DetentError):
                self._known = self._session()
        sheet = canvas()
        lines = run_lines(event, canvas=sheet, session=self._known)
        return "".join(f"{line}\n" for line in lines).encode(sheet.encoding, "replace")

    def _draw(self) -> None:
        from detent.render.terminal.canvas import columns_of
        from detent.render.terminal.live import live_lines

        started_s = time.monotonic()
        columns, height = _size()
        sheet = _sheet(columns)
        try:
            self._known = self._session()
        except DetentError:
            # Draw the last known state; the run itself reports the error.
            if self._known is None:
                return
        lines = live_lines(self._known, self._view, now=self._now(), canvas=sheet, height=height - 1, usual=self._usual)
        if columns < sheet.width:
            lines = [sheet.cut(line, columns) for line in lines]
        # A terminal that became narrower has wrapped the lines.
        rows = sum(max(1, -(-width // columns)) for width in self._drawn)
        up = f"\x1b[{min(rows, height - 1)}A" if rows else ""
        text = "\r" + up + "".join(f"\x1b[2K{line}\n" for line in lines) + "\x1b[J"
        self._put(text.encode(sheet.encoding, "replace"))
        self._drawn = [columns_of(_unpainted(line)) for line in lines]
        self._drawn_s, self._is_due = time.monotonic(), False
        self._took_s = self._drawn_s - started_s

    def _put(self, data: bytes) -> None:
        if self._is_gone or not data:
            return
        try:
            sys.stdout.flush()
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except OSError:
            # The reader is gone. The run continues.
            self._is_gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _call_person(self, need: PersonNeeded) -> None:
        key = (*need.key, need.text)
        # Events from before this screen was opened notified another screen.
        if key in self._notified or need.at < self._opened_at:
            return
        self._notified.add(key)
        if self._style is not Style.JSON and sys.stdout.isatty():
            self._put(b"\a")
        if self._notify:
            text = " ".join(f"{self._view.session} {need.headline}".split())
            threading.Thread(target=_notify, args=([*self._notify, text],), daemon=True).start()


def _notify(argv: list[str]) -> None:
    from detent.process import run

    run(argv, cwd=os.getcwd(), timeout_s=_NOTIFY_S)


def _unpainted(line: str) -> str:
    import re

    return re.sub(r"\x1b\[\d+m", "", line)


def _sheet(columns: int) -> "Canvas":
    """A canvas of the terminal's present width: a wrapped line could not be redrawn.

    On a terminal below the least width lines are cut, so they are not coloured.
    """
    import msgspec

    from detent.render.terminal.canvas import LEAST_WIDTH

    sheet = canvas()
    width = max(LEAST_WIDTH, min(sheet.width, columns))
    return msgspec.structs.replace(sheet, width=width, colour=sheet.colour and width <= columns)


def _size() -> tuple[int, int]:
    """Columns and lines of the terminal."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except OSError:
        return _COLUMNS, _LINES
    return size.columns or _COLUMNS, size.lines or _LINES
