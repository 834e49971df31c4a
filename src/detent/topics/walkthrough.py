"""The parts of a page that is worked through: text, files that the reader writes, and commands with their output.

- A fenced block with `title="PATH"` is a file.
- A fenced block `console` holds commands behind `$ `, each with its output. A command that ends with
  `# exit code N` must end with that code, every other one with 0.
- An HTML comment that begins with `run` holds commands that the reader does not see.
- Everything else is text.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_BLOCK = re.compile(
    r"^```(?P<language>\w+)?(?: title=\"(?P<path>[^\"]+)\")?\n(?P<body>.*?)^```$|^<!-- run\n(?P<hidden>.*?)^-->$",
    re.MULTILINE | re.DOTALL,
)
_EXIT = re.compile(r"\s+# exit code (\d+)$")


class Step(NamedTuple):
    """A command of a page; `output` is None if the page does not show it."""

    command: str
    output: list[str] | None
    exit_code: int = 0


class WrittenFile(NamedTuple):
    path: str
    text: str


class Prose(NamedTuple):
    text: str


def parts(page: str) -> Iterator[Step | WrittenFile | Prose]:
    """The parts of a page, in their order."""
    position = 0
    for block in _BLOCK.finditer(page):
        if text := page[position : block.start()].strip():
            yield Prose(text)
        position = block.end()
        if block["hidden"] is not None:
            yield Step(block["hidden"], None)
        elif block["path"] is not None:
            yield WrittenFile(block["path"], block["body"])
        elif block["language"] == "console":
            yield from _commands(block["body"])
        else:
            yield Prose(block[0])
    if text := page[position:].strip():
        yield Prose(text)


def _commands(body: str) -> Iterator[Step]:
    for chunk in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = chunk.rstrip("\n").split("\n")
        length = next((at for at, line in enumerate(lines, 1) if not line.endswith("\\")), len(lines))
        command, output = "\n".join(lines[:length]), lines[length:]
        stated = _EXIT.search(command)
        while output and not output[-1]:
            output.pop()
        yield Step(_EXIT.sub("", command), output, int(stated[1]) if stated else 0)
