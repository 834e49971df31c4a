"""The text of `$'…'`: escapes for control characters, and for characters by their number."""

_CONTROLS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_OCTAL, _HEX = tuple("01234567"), tuple("0123456789abcdefABCDEF")
_WIDTHS = {"x": 2, "u": 4, "U": 8}


def ansi_text(text: str, at: int) -> tuple[str, int]:
    """The text from `at` up to the closing quote, and the position of that quote, or of the end."""
    chars: list[str] = []
    while at < len(text) and text[at] != "'":
        if text[at] != "\\":
            chars.append(text[at])
            at += 1
            continue
        char = text[at + 1 : at + 2]
        at += 2
        allowed, width = (_HEX, _WIDTHS[char]) if char in _WIDTHS else (_OCTAL, 3)
        if allowed is _OCTAL:
            if char not in _OCTAL:
                chars.append(_CONTROLS.get(char, char))
                continue
            at -= 1
        digits = ""
        while len(digits) < width and text[at : at + 1] in allowed:
            digits += text[at]
            at += 1
        number = int(digits, 8 if allowed is _OCTAL else 16) if digits else 0
        chars.append(chr(number) if 0 < number < 0xD800 else "")
    return "".join(chars), at
