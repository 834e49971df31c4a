"""Writes titles into Markdown on one line, with its special characters escaped, and reads them back."""

import re

_SPECIAL = {ord(character): f"\\{character}" for character in "\\`*_[]<>|~&"}
_HAS_SPECIAL = re.compile(r"[\\`*_\[\]<>|~&]")
_BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f\x85"
#: Characters that change the direction of the text around them, or cannot be seen.
_UNSEEN = [0x061C, 0x200B, *range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF]
_CONTROL = dict.fromkeys([*range(32), *range(127, 160), *_UNSEEN]) | {ord(blank): " " for blank in _BLANKS}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


#: Sequences that a terminal obeys: colours, movements, titles.
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


def without_sequences(text: str) -> str:
    """The text without the sequences that a terminal obeys."""
    return _SEQUENCE.sub("", text) if "\x1b" in text else text


def one_line(text: str) -> str:
    """The text with single blanks between words; without terminal sequences and control characters, bidi ones too."""
    if text.isprintable() and "  " not in text and text.strip() == text:
        return text
    return " ".join(without_sequences(text).translate(_CONTROL).split())


def escaped(text: str) -> str:
    """The text on one line, escaped so that Markdown shows it unchanged."""
    line = one_line(text)
    return line.translate(_SPECIAL) if _HAS_SPECIAL.search(line) else line


def unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    plain, characters = [], iter(text)
    for character in characters:
        if character != "\\":
            plain.append(character)
            continue
        following = next(characters, "")
        plain.append(following if following in _PUNCTUATION and following else character + following)
    return "".join(plain)
