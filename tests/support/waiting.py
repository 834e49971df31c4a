"""Waits for conditions, and looks at processes."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

PATIENCE_S = 60.0
_POLL_S = 0.005
T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float = PATIENCE_S) -> T:
    """The first true value of the condition, or its last one when the time is over."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(_POLL_S)
    return value


def wait_until(
    condition: Callable[[], object],
    seconds: float = PATIENCE_S,
    *,
    during: "subprocess.Popen[bytes] | None" = None,
) -> None:
    """Wait for the condition. Fails when the time is over, or when the process ends first."""
    end = time.monotonic() + seconds
    while not condition():
        assert during is None or during.poll() is None, (during.args, during.returncode, *during.communicate())
        assert time.monotonic() < end, "waited too long"
        time.sleep(_POLL_S)


def is_running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
