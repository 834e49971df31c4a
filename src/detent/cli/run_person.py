"""Asks the person at the terminal of a run, one question at a time."""

import os
import select
import sys
import termios
from collections.abc import Sequence
from contextlib import ExitStack, suppress

from detent.cli.person import chosen
from detent.cli.request import visible
from detent.cli.run_screen import Screen
from detent.core.run.run_event import Need, PersonNeeded

_MAX_ANSWER = 64 * 1024
_HINTS = {Need.APPROVAL: "y WHY, or n WHY", Need.ANSWER: "your answer"}


class Terminal:
    """See `Person` of the runner. Asking never blocks: the run continues, and the answer may come from elsewhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._asked: PersonNeeded | None = None
        self._aside = ExitStack()
        self._is_gone = False

    def needed(self, needs: Sequence[PersonNeeded]) -> None:
        open_needs = [need for need in needs if need.need is not Need.WORK]
        asked = self._asked
        if asked is not None:
            same = next((need for need in open_needs if need.key == asked.key), None)
            if same is not None and same.text == asked.text:
                return
            self._withdraw()
        if open_needs and not self._is_gone:
            self._ask(open_needs[0])

    def poll(self) -> tuple[PersonNeeded, str] | None:
        if self._asked is None or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        data = os.read(sys.stdin.fileno(), _MAX_ANSWER)
        if not data:
            # The input has ended: no answer can come from this terminal.
            self._is_gone = True
            self._withdraw()
            return None
        text = data.decode("utf-8", "replace").strip()
        if not text:
            self._prompt()
            return None
        return self._asked, chosen(text, self._asked.choices)

    def show(self, text: str) -> None:
        self._put(f"{visible(text)}\n")
        self._prompt()

    def _ask(self, need: PersonNeeded) -> None:
        self._asked = need
        self._aside.enter_context(self._screen.aside())
        # Drop input that was typed before the question.
        with suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
        lines = need.headline.splitlines()
        lines += [f"  {number}  {choice}" for number, choice in enumerate(need.choices, 1)]
        self._put("".join(f"{visible(line)}\n" for line in lines))
        self._prompt()

    def _prompt(self) -> None:
        assert self._asked is not None
        hint = "a number or a word" if self._asked.choices else _HINTS.get(self._asked.need, "")
        self._put(f"({hint}) > ")

    def _withdraw(self) -> None:
        self._asked = None
        self._put("\n")
        self._aside.close()

    def _put(self, text: str) -> None:
        try:
            sys.stdout.write(text)
            sys.stdout.flush()
        except OSError:
            # The terminal is gone. The run continues without it.
            self._is_gone = True
