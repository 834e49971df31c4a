r"""Compiles one pattern of an ignore file to a regular expression, as git's matcher reads it.

Text has one character per byte here (`octets`), because git compares bytes: `?` is one byte of a name, not one letter.
A pattern becomes tokens: a literal character is itself, every other token is an expression.

The expressions do not backtrack exponentially. Between two wildcards of a kind is text of fixed size - characters
between two `*` of a segment, whole segments between two `**` - so the first match of that text is as good as any later
one. Only the first is tried: `(?=(?P<name>…))(?P=name)` is an atomic group.
"""

import re
import string
from collections.abc import Iterator
from itertools import count, pairwise, takewhile

import msgspec

_MAX_ENDS, _MAX_END = 16, 64  # maximum number and length
_STAR, _ONE, _NEVER = "[^/]*", "[^/]", "(?!)"
_ANY = ".*"  # `**` at the end; and `*` in a name, which has no slash: it matches faster
_DEEP, _DEEPER = "(?:[^/]*/)*", "(?:[^/]*/)+"  # `**/`, and `**\/`, which is at least one directory
_DEPTHS = (_DEEP, _DEEPER, _ANY)
_FAST = {_DEEP: "(?:.*/)?", _DEEPER: ".*/"}  # the same, matched from the end
_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, (*range(1, 32), 127))),
    "digit": string.digits,
    "graph": string.ascii_letters + string.digits + string.punctuation,
    "lower": string.ascii_lowercase,
    "print": string.ascii_letters + string.digits + string.punctuation + " ",
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
_CLASS = re.compile(r"\[:([^]]*):\]")
_RANGE = re.compile(r"-(?!\])\\?(.)", re.DOTALL)


def octets(text: str) -> str:
    """`text` with one character for each byte of it as a file name."""
    return text if text.isascii() else text.encode("utf-8", "surrogateescape").decode("latin-1")


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """The expression for a whole path or name, and two quick tests.

    Every match ends with one of `ends`, if there are any, and starts with `head`.
    """

    expression: str
    ends: tuple[str, ...]
    head: str


def read(pattern: str, *, by_name: bool, prefix: str) -> Pattern | None:
    """The compiled pattern; None if it matches nothing. The names of its groups start with `prefix`."""
    tokens = _tokens(pattern, _ANY if by_name else _STAR)
    if not tokens:
        return None
    return Pattern(
        expression=_written(tokens, (_DEPTHS, (_STAR,)), (f"{prefix}{n}" for n in count())),
        ends=_ends(tokens),
        head="".join(takewhile(_is_literal, tokens)),
    )


def _tokens(pattern: str, star: str) -> list[str] | None:
    """None if an open bracket or a backslash at the end makes the pattern match nothing."""
    tokens: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        at += 1
        if char == "*":
            run = at - 1
            while pattern.startswith("*", at):
                at += 1
            is_whole = (run == 0 or pattern[run - 1] == "/") and (at == end or pattern.startswith(("/", "\\/"), at))
            if at - run == 1 or not is_whole:
                tokens.append(star)
            elif at == end:
                tokens.append(_ANY)
            else:
                tokens.append(_DEEP if pattern[at] == "/" else _DEEPER)
                at = pattern.index("/", at) + 1
        elif char == "?":
            tokens.append(_ONE)
        elif char == "[":
            bracket = _bracket(pattern, at)
            if bracket is None:
                return None
            token, at = bracket
            tokens.append(token)
        elif char == "\\":
            if at == end:
                return None
            tokens.append(pattern[at])
            at += 1
        else:
            tokens.append(char)
    return tokens


def _bracket(pattern: str, at: int) -> tuple[str, int] | None:
    """The set that opens at `at`, and the position after it. None if it does not end or names no known class."""
    is_negated = pattern.startswith(("!", "^"), at)
    at += is_negated
    first, end = at, len(pattern)
    members: set[str] = set()
    low = ""  # the start of a possible range
    while at < end:
        char = pattern[at]
        if char == "]" and at > first:
            return _set(members, is_negated=is_negated), at + 1
        if (named := _CLASS.match(pattern, at)) is not None:
            if named[1] not in _CLASSES:
                return None
            members.update(_CLASSES[named[1]])
            low, at = "", named.end()
        elif (ranged := _RANGE.match(pattern, at)) is not None and low:
            members.update(map(chr, range(ord(low), ord(ranged[1]) + 1)))
            low, at = "", ranged.end()
        else:
            at += char == "\\"
            low = pattern[at : at + 1]
            members.add(low)
            at += 1
    return None


def _set(members: set[str], *, is_negated: bool) -> str:
    shown = "".join(f"\\x{ord(char):02x}" for char in sorted(members - {"/"}))
    if is_negated:
        return f"[^/{shown}]"
    return f"[{shown}]" if shown else _NEVER


def _written(tokens: list[str], wild: tuple[tuple[str, ...], ...], names: Iterator[str]) -> str:
    """The expression of the tokens, split before each wildcard of the first kind, the parts by the next kind."""
    if not wild:
        return "".join([re.escape(token) if _is_literal(token) else token for token in tokens])
    cuts = [at for at, token in enumerate(tokens) if token in wild[0]]
    written = _written(tokens[: cuts[0] if cuts else None], wild[1:], names)
    for at, end in pairwise(cuts):
        name = next(names)
        written += f"(?=(?P<{name}>{tokens[at]}?{_written(tokens[at + 1 : end], wild[1:], names)}))(?P={name})"
    if cuts:
        last = tokens[cuts[-1]]
        written += _FAST.get(last, last) + _written(tokens[cuts[-1] + 1 :], wild[1:], names)
    return written


def _ends(tokens: list[str]) -> tuple[str, ...]:
    """The texts that can follow the last wildcard, or the ends of these texts."""
    ends = [""]
    for token in reversed(tokens):
        if not _is_literal(token) and not token.startswith("[\\x"):
            break
        chars = token if _is_literal(token) else [chr(int(code, 16)) for code in token[1:-1].split("\\x")[1:]]
        if len(ends) * len(chars) > _MAX_ENDS or len(ends[0]) == _MAX_END:
            break
        ends = [char + end for char in chars for end in ends]
    return tuple(filter(None, ends))


def _is_literal(token: str) -> bool:
    return len(token) == 1
