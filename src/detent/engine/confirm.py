"""Asks the person at the controlling terminal whether a decision is theirs, and shows what it is about.

A script may ask for a decision in a person's terminal; the person types the answer. The terminal is opened itself, so
pipes and `--yes` do not answer.
"""

import os
from collections.abc import Sequence

from detent.core.decision.statement import Statement, shown_lines
from detent.errors import Refused

QUESTION = "Is that your decision? [y/N] "
_YES = (b"y", b"yes")
_MAX_ANSWER = 1024


def confirm(statement: Statement) -> None:
    """Ask about a decision of a session. Raises `Refused` unless the person agrees."""
    ask(shown_lines(statement), str(statement.decision))


def is_confirmed(_statement: Statement) -> None:
    """For a surface that has shown the decision at the terminal, and has read the answer there."""


def ask(lines: Sequence[str], decision: str) -> None:
    """Show the lines at the terminal, and ask. Raises `Refused` unless the person agrees."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Refused(
            f"{decision} is a person's decision, and this process has no terminal (/dev/tty cannot be opened)",
            way_out="type it in a terminal of your own",
        ) from error
    try:
        if os.tcgetpgrp(terminal) != os.getpgrp():
            # Reading would stop the process without a message.
            raise Refused(
                f"{decision} is confirmed at the terminal, and this process is in its background",
                way_out="run it in the foreground",
            )
        shown = "".join(f"{_visible(line)}\r\n" for line in lines)
        os.write(terminal, f"\r\n{shown}{QUESTION}".encode())
        answer = os.read(terminal, _MAX_ANSWER)
        if not answer.endswith(b"\n"):
            os.write(terminal, b"\r\n")
    except OSError as error:
        raise Refused(f"{decision} was not confirmed: the terminal is gone") from error
    finally:
        os.close(terminal)
    if answer.strip().lower() not in _YES:
        raise Refused(f"{decision} was not confirmed, and nothing was changed")


def _visible(line: str) -> str:
    """The line with control characters made visible, so that the terminal does not obey them."""
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in line)
