r"""Paths as text that any JSON or TOML document can hold, and back.

Python spells a byte that is not UTF-8 as a lone surrogate, which no document may contain; here it is `\xNN`.
A path in UTF-8 stays as it is, but for the backslash, which is doubled.
"""

import re

from detent.errors import Invalid

_UNDECODABLE = re.compile("[\udc80-\udcff]")
_ESCAPE = re.compile(r"\\(?:(\\)|x([89a-f][0-9a-f])|)")


def to_text(path: str) -> str:
    text = path.replace("\\", "\\\\") if "\\" in path else path
    return text if text.isascii() else _UNDECODABLE.sub(lambda found: f"\\x{ord(found[0]) - 0xDC00:02x}", text)


def from_text(text: str) -> str:
    """What `to_text` was given; Invalid for a text that it cannot have made."""
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def _unescape(found: re.Match[str]) -> str:
    backslash, byte = found.groups()
    if backslash:
        return "\\"
    if not byte:
        raise Invalid(
            f"{found.string[:200]!r} is not the text of a path: at character {found.start() + 1} "
            "a backslash is followed neither by another nor by x80 to xff"
        )
    return chr(0xDC00 + int(byte, 16))
