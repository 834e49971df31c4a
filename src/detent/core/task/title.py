"""Text of people in Markdown: on one line, and with nothing in it that Markdown would take for its own."""

import re

_SPECIAL = {ord(character): f"\\{character}" for character in "\\`*_[]<>|~&"}
_HAS_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&]")
_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
_CONTROL = dict.fromkeys([*range(32), *range(127, 160)]) | {ord(blank): " " for blank in _BLANKS}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def one_line(text: str) -> str:
    """Words with single blanks between them, without control characters."""
    if text.isprintable() and "  " not in text and text.strip() == text:
        return text
    return " ".join(text.translate(_CONTROL).split())


def escaped(text: str) -> str:
    """`text` on one line, shown by Markdown as it is."""
    line = one_line(text)
    return line.translate(_SPECIAL) if _HAS_SPECIAL.search(line) else line


def unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    kept, characters = [], iter(text)
    for character in characters:
        if character != "\\":
            kept.append(character)
            continue
        following = next(characters, "")
        kept.append(following if following in _PUNCTUATION and following else character + following)
    return "".join(kept)
