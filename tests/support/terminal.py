"""A terminal that a test can look at: a real pseudo-terminal, and as much of an emulator as our output needs."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading
import time

from detent.render.terminal.canvas import columns_of

_TOKEN = re.compile(r"\x1b\[(\d*)([A-Za-z])|([\r\n\a])|([^\x1b\r\n\a])")


class Grid:
    """What stands on the screen and above it, when `text` was written to a terminal of so many lines."""

    def __init__(self, columns: int, lines: int) -> None:
        self._columns, self._lines = columns, lines
        self._rows: list[str] = [""]
        self._row = self._top = 0
        self._column = 0
        self.bells = 0

    def write(self, text: str) -> "Grid":
        for number, code, control, character in _TOKEN.findall(text):
            if character:
                self._put(character)
            elif control:
                self._control(control)
            else:
                self._obey(code, int(number or 1), number)
        return self

    @property
    def shown(self) -> list[str]:
        return [row.rstrip() for row in self._rows]

    def _put(self, character: str) -> None:
        if self._column + columns_of(character) > self._columns:
            self._column = 0
            self._down()
        row = self._rows[self._row].ljust(self._column)
        self._rows[self._row] = row[: self._column] + character + row[self._column + 1 :]
        self._column += columns_of(character)

    def _control(self, control: str) -> None:
        match control:
            case "\r":
                self._column = 0
            case "\n":
                self._column = 0
                self._down()
            case "\a":
                self.bells += 1

    def _obey(self, code: str, count: int, stated: str) -> None:
        match code:
            case "A":
                self._row = max(self._top, self._row - count)
            case "J":
                self._rows[self._row] = self._rows[self._row][: self._column]
                del self._rows[self._row + 1 :]
            case "K":
                assert stated == "2"
                self._rows[self._row] = ""
            case "m":
                pass
            case _:
                raise AssertionError(f"the terminal was told {code}")

    def _down(self) -> None:
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
        self._top = max(self._top, self._row - self._lines + 1)


class Terminal:
    """A command with a terminal of its own."""

    def __init__(
        self, argv: list[str], *, cwd: str | os.PathLike[str], env: dict[str, str], columns: int = 80, lines: int = 24
    ) -> None:
        self._ours, theirs = pty.openpty()
        self._columns, self._lines = columns, lines
        self.resize(columns, lines)
        self.process = subprocess.Popen(argv, cwd=cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        self.text = ""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def until(self, wanted: str, limit_s: float = 60) -> None:
        until = time.monotonic() + limit_s
        while wanted not in self.text and time.monotonic() < until:
            time.sleep(0.02)
        assert wanted in self.text, self.text[-3000:]

    def wait(self, limit_s: float = 60) -> int:
        code = self.process.wait(limit_s)
        self._reader.join(5)
        return code

    @property
    def grid(self) -> Grid:
        return Grid(self._columns, self._lines).write(self.text.replace("\r\n", "\n"))

    def _read(self) -> None:
        data = b""
        while True:
            try:
                part = os.read(self._ours, 65536)
            except OSError:
                part = b""
            if not part:
                os.close(self._ours)
                return
            data += part
            self.text = data.decode("utf-8", "ignore")
