"""Asks the person at the terminal."""

import sys
from collections.abc import Sequence

#: The exit code of a command that needs a person to continue.
WAITING = 6
_YES = (b"y", b"yes")


def is_at_terminal() -> bool:
    """Whether a person can be asked here, and can answer."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def check_can_be_asked(verb_name: str) -> None:
    """Refuse if there is no terminal to ask at."""
    from detent.cli.request import Usage

    if not is_at_terminal():
        raise Usage(
            f"{verb_name} asks before it changes anything, and there is no terminal to ask at",
            way_out="add --yes to do it, or --dry-run to see what it would do",
        )


def agrees(question: str) -> bool:
    """Whether the person at the terminal answers yes; any other answer, or the end of input, is a no."""
    answer = b""
    try:
        sys.stdout.write(f"{question} [y/N] ")
        sys.stdout.flush()
        answer = sys.stdin.buffer.readline()
    finally:
        if not answer.endswith(b"\n"):
            # End the line of the question.
            sys.stdout.write("\n")
            sys.stdout.flush()
    return answer.strip().lower() in _YES


def ask_line(prompt: str) -> str | None:
    """One line of the person at the terminal; None at the end of input."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    data = sys.stdin.buffer.readline()
    if not data.endswith(b"\n"):
        sys.stdout.write("\n")
    return data.decode("utf-8", "replace").strip() if data else None


def chosen(answer: str, choices: Sequence[str]) -> str:
    """The answer, or the choice of that number if no choice is itself a number."""
    if any(choice.isdecimal() for choice in choices):
        return answer
    numbers = {str(number): choice for number, choice in enumerate(choices, 1)}
    return numbers.get(answer.strip(), answer)
