"""Somebody at the terminal of a run: asked what only a person can say, one thing at a time."""

import os
import select
import sys
from collections.abc import Sequence
from contextlib import ExitStack

from detent.cli.request import shown
from detent.cli.run_screen import Screen
from detent.core.run_event import Need, PersonNeeded

_MAX_ANSWER = 64 * 1024
_HINTS = {Need.APPROVAL: "y WHY, or n WHY", Need.ANSWER: "your answer"}


class Terminal:
    """See `Person` of the runner. Asking never waits: the run goes on, and the question may be settled elsewhere."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._asked: PersonNeeded | None = None
        self._aside = ExitStack()
        self._is_gone = False

    def needed(self, needs: Sequence[PersonNeeded]) -> None:
        open_ones = [one for one in needs if one.need is not Need.WORK]
        asked = self._asked
        if asked is not None:
            same = next((one for one in open_ones if _key(one) == _key(asked)), None)
            if same is not None and same.text == asked.text:
                return
            self._settled()
        if open_ones and not self._is_gone:
            self._ask(open_ones[0])

    def said(self) -> tuple[PersonNeeded, str] | None:
        if self._asked is None or not select.select([sys.stdin], [], [], 0)[0]:
            return None
        data = os.read(sys.stdin.fileno(), _MAX_ANSWER)
        if not data:
            # Nobody will ever type anything here again.
            self._is_gone = True
            self._settled()
            return None
        text = data.decode("utf-8", "replace").strip()
        if not text:
            self._prompt()
            return None
        return self._asked, _chosen(text, self._asked.choices)

    def told(self, text: str) -> None:
        sys.stdout.write(f"{shown(text)}\n")
        self._prompt()

    def _ask(self, need: PersonNeeded) -> None:
        self._asked = need
        self._aside.enter_context(self._screen.aside())
        lines = [f"{need.phase}: {line}" if number == 0 else line for number, line in enumerate(need.text.splitlines())]
        sys.stdout.write("".join(f"{shown(line)}\n" for line in lines))
        for number, choice in enumerate(need.choices, 1):
            sys.stdout.write(f"  {number}  {shown(choice)}\n")
        self._prompt()

    def _prompt(self) -> None:
        assert self._asked is not None
        hint = "a number or a word" if self._asked.choices else _HINTS.get(self._asked.need, "")
        sys.stdout.write(f"({hint}) > ")
        sys.stdout.flush()

    def _settled(self) -> None:
        self._asked = None
        sys.stdout.write("\n")
        self._aside.close()


def _chosen(text: str, choices: Sequence[str]) -> str:
    """A number stands for the choice that it is shown with, unless it is a choice itself."""
    is_number = text.isascii() and text.isdigit() and text not in choices
    return choices[int(text) - 1] if is_number and 0 < int(text) <= len(choices) else text


def _key(need: PersonNeeded) -> tuple[str, str, str]:
    return need.need, need.phase, need.about or need.text
