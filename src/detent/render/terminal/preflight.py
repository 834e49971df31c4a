"""The findings of the preflight, as a list."""

from collections.abc import Sequence
from typing import Protocol

from detent.render.terminal.canvas import Canvas

_COLOURS = {"ok": "green", "warning": "yellow", "ask": "yellow", "problem": "red"}


class Check(Protocol):
    """A result of `run/preflight.py`."""

    @property
    def subject(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def way_out(self) -> str | None: ...


def preflight_text(checks: Sequence[Check], offered: str | None, canvas: Canvas) -> str:
    """A line for each check, with the command where something is to be done. `offered` records the tests first."""
    lines = []
    for check in checks:
        head = canvas.paint(f"{check.state:<8}", _COLOURS[str(check.state)])
        lines.append(f"{head} {check.subject}")
        lines += canvas.wrap(check.text, "    ")
        if check.way_out:
            lines += canvas.wrap(f"try: {check.way_out}", "    ")
    if offered:
        lines += ["", *canvas.wrap("No test is recorded yet. This runs the tests now, and no later run may lose one:")]
        lines += canvas.command(offered)
    return "\n".join(lines)
