"""Reads input files, standard input and JSON, with errors that name the place of the mistake."""

import os
import sys
from typing import Any

from detent.cli.request import Request
from detent.errors import Invalid, NotFound

STDIN = "-"
MAX_STDIN = 16 * 1024 * 1024
_FIX = "fix the file and retry; nothing was changed"


def read_text(request: Request, file: str, *, what: str = "standard input") -> str:
    """The file, or standard input for `-`; it must be UTF-8."""
    if file == STDIN:
        return _decoded(sys.stdin.buffer.read(MAX_STDIN + 1), what)
    try:
        with open(os.path.join(request.directory, file), "rb") as opened:
            return _decoded(opened.read(MAX_STDIN + 1), file)
    except FileNotFoundError:
        raise NotFound(f"there is no file {file}") from None
    except IsADirectoryError:
        raise Invalid(f"{file} is a directory, and a file is needed") from None


def read_json(request: Request, file: str) -> Any:
    return parse_json(read_text(request, file), "standard input" if file == STDIN else file)


def parse_json(text: str, what: str) -> Any:
    """The decoded text; an error names line and column."""
    import json

    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        message = error.msg[:1].lower() + error.msg[1:]
        raise Invalid(
            f"{what} is not JSON: {message} at line {error.lineno}, column {error.colno}", way_out=_FIX
        ) from None
    except RecursionError:
        raise Invalid(f"{what} is not readable JSON: it is nested too deeply", way_out=_FIX) from None


def _decoded(data: bytes, what: str) -> str:
    if len(data) > MAX_STDIN:
        raise Invalid(f"{what} is longer than {MAX_STDIN} bytes", way_out="put the details in a file and name it")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Invalid(
            f"{what} is not UTF-8: {error.reason} at byte {error.start + 1}",
            way_out="convert it, for instance with iconv -f latin1 -t utf-8",
        ) from error
