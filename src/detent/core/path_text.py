r"""Converts paths to text that JSON and TOML can hold, and back.

Python represents a byte that is not UTF-8 as a lone surrogate, which no document may contain; here it is `\xNN`.
A backslash is doubled. Every other character stays as it is.
"""

import re

from detent.errors import Invalid

_UNDECODABLE = re.compile("[\udc80-\udcff]")
_ESCAPE = re.compile(r"\\(?:(\\)|x([89a-f][0-9a-f])|)")


def to_text(path: str) -> str:
    text = path.replace("\\", "\\\\") if "\\" in path else path
    return text if text.isascii() else _UNDECODABLE.sub(lambda match: f"\\x{ord(match[0]) - 0xDC00:02x}", text)


def from_text(text: str) -> str:
    """The inverse of `to_text`; `Invalid` for a text that it cannot produce."""
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def _unescape(match: re.Match[str]) -> str:
    backslash, byte = match.groups()
    if backslash:
        return "\\"
    if not byte:
        raise Invalid(
            f"{match.string[:200]!r} is not the text of a path: at character {match.start() + 1} "
            "a backslash is followed neither by another nor by x80 to xff"
        )
    return chr(0xDC00 + int(byte, 16))


def is_inside(path: str) -> bool:
    """Whether the path stays below its start, whatever exists there."""
    return bool(path) and "\0" not in path and not any(part in ("", ".", "..") for part in path.split("/"))
