"""The tour in the page: a panel with the step that the terminal is at, and a button that goes on.

The panel is a script and a style of its own, which only the server of a tour serves.
"""

import os
import shlex
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import resources
from typing import Any
from urllib.parse import quote

import msgspec

from detent.errors import DetentError
from detent.web.projects import Projects

_FILES = ("tour.css", "tour.js")
#: Where the page shows the effect of a verb, below the address of the session.
_SCREENS: dict[str, Callable[[list[str]], tuple[str, ...]]] = {
    "run": lambda _: (),
    "approve": lambda _: (),
    "diff": lambda words: ("diff", words[0], "now"),
    "log": lambda _: ("log",),
    "checkpoint": lambda _: ("checkpoints",),
    "rollback": lambda _: ("checkpoints",),
    "undo": lambda _: ("checkpoints",),
}
_NEEDS = "#/needs"


class TourStep(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    of: int
    text: str
    #: Empty at the end.
    command: str
    is_running: bool = False


class Tour:
    """The step that is shown, and the wish of the page to go on. Threads of the server and the terminal share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step: TourStep | None = None
        self._last = ""
        self._clicked, self._click = os.pipe()
        #: Ends the server; set by it.
        self.end: Callable[[], None] = lambda: None

    def fileno(self) -> int:
        """Readable once the page wants to go on, for `select`."""
        return self._clicked

    def show(self, step: TourStep) -> None:
        with self._lock:
            self._step = step
            if step.is_running:
                self._last = step.command

    def go_on(self, number: int | None) -> None:
        """The button of the step was pressed. A second press, or one of an older step, does nothing."""
        with self._lock:
            if self._step is not None and self._step.number == number and not self._step.is_running:
                self._step = msgspec.structs.replace(self._step, is_running=True)
                os.write(self._click, b".")

    def take(self) -> None:
        """Take the wish, so that it counts once."""
        os.read(self._clicked, 1)

    def record(self, projects: Projects) -> dict[str, Any]:
        with self._lock:
            step, last = self._step, self._last
        return {"step": step, "screen": self._screen(last, projects)}

    def _screen(self, command: str, projects: Projects) -> str | None:
        """The address at which the page shows the effect of the last command."""
        words = shlex.split(command)[1:]
        if words[:1] == ["status"]:
            return _NEEDS
        own = projects.started_in
        if not words or words[0] not in _SCREENS or own is None:
            return None
        with suppress(DetentError), projects.reading(projects.find(own)) as project:
            session = project.sessions.last()
            if session is not None:
                parts = ("p", own, "s", session, *_SCREENS[words[0]](words[1:]))
                return f"#/{'/'.join(quote(part, safe='') for part in parts)}"
        return None

    def assets(self, page: dict[str, bytes]) -> dict[str, bytes]:
        """The files of the page, with those of the panel."""
        own = {name: (resources.files("detent.web") / "tour_assets" / name).read_bytes() for name in _FILES}
        index = page["index.html"]
        index = index.replace(b"\t</head>", b'\t\t<link rel="stylesheet" href="assets/tour.css" />\n\t</head>')
        index = index.replace(b"\t</body>", b'\t\t<script src="assets/tour.js"></script>\n\t</body>')
        return {**page, **own, "index.html": index}
