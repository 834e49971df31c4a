"""The usage of an agent, as its client's transcript tells it: tokens, and the tools that it called."""

import json
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

#: Bytes of a transcript that are read; the usage of a longer one is not told.
MAX_TRANSCRIPT = 256 * 1024 * 1024
_MAX_AMOUNT = 1e12


class Call(NamedTuple):
    tool: str
    #: The input as JSON.
    input: str
    succeeded: bool


class Usage(NamedTuple):
    input: int
    output: int
    calls: tuple[Call, ...]
    model: str = ""


def entries(path: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of a transcript, a line each. What cannot be read is left out."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > MAX_TRANSCRIPT:
            return
        with open(path, "rb") as file:
            for line in file:
                try:
                    entry = json.loads(line)
                except (ValueError, RecursionError):
                    continue
                if isinstance(entry, dict):
                    yield entry
    except OSError:
        return


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def amount(value: object) -> float:
    """An amount of money; 0 for one that cannot be."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value <= _MAX_AMOUNT else 0.0


def fields(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
