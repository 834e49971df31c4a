"""`tasks.md` in the folder of a session's artifacts: a person's or an agent's page, with the status of each phase.

Only what is about a phase itself is kept up to date: the word at the end of its heading, and the box of a line that
names it. The rest of the page belongs to its author.
"""

import re
from collections.abc import Mapping

from detent.core.session.status import Status

WORDS = {
    Status.PENDING: "PENDING",
    Status.IN_PROGRESS: "IN PROGRESS",
    Status.COMPLETED: "COMPLETE",
    Status.FAILED: "FAILED",
    Status.SKIPPED: "SKIPPED",
}
_HEADING = re.compile(rf"(#{{1,6}} .*?(?:--|—|:) *)({'|'.join(WORDS.values())}|COMPLETED)( *)")
_BOX = re.compile(r"(\s*[-*] \[)([ xX])(\] .*)")
_NUMBER = re.compile(r"[Pp]hase (\d\d)\b")


def updated(text: str, statuses: Mapping[str, Status]) -> str:
    """The page with the present status of each phase."""
    return "".join(_line(line, statuses) for line in text.splitlines(keepends=True))


def _line(line: str, statuses: Mapping[str, Status]) -> str:
    body = line.rstrip("\r\n")
    end = line[len(body) :]
    if heading := _HEADING.fullmatch(body):
        status = _named(heading[1], statuses)
        return f"{heading[1]}{WORDS[status]}{heading[3]}{end}" if status is not None else line
    if box := _BOX.fullmatch(body):
        status = _named(box[3], statuses)
        if status is not None:
            return f"{box[1]}{'x' if status is Status.COMPLETED else ' '}{box[3]}{end}"
    return line


def _named(text: str, statuses: Mapping[str, Status]) -> Status | None:
    """The status of the one phase that the text names, by its key or as `Phase 06`."""
    keys = {key for key in statuses if re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", text)}
    keys = keys or {key for number in _NUMBER.findall(text) for key in statuses if key.startswith(f"{number}-")}
    return statuses[keys.pop()] if len(keys) == 1 else None
