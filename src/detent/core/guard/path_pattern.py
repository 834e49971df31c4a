"""Paths that may be partly unknown, and what they can stand for.

A pattern is a path in which `*`, `?` and `[...]` mean what they mean to a shell: they stay within one segment and do
not match a leading dot. `**` is text that cannot be known by reading: it matches anything, dots and slashes included. A
name that really contains one of the special characters has it in brackets: `[*]`.

Inside the shell modules the special characters that are *active* are single private characters, so that a quoted `*`
and an unquoted one stay apart while both are plain text; `shown` turns them into the pattern above.
"""

STAR, ONE, CLASS, ANY, HOME = "\ue000", "\ue001", "\ue002", "\ue003", "\ue004"
OPEN, COMMA, CLOSE = "\ue005", "\ue006", "\ue007"  # of braces
MARKS = (STAR, ONE, CLASS, ANY, HOME, OPEN, COMMA, CLOSE)
ABSOLUTE = ("/", ANY, HOME)  # what a path begins with that no directory is put before
_SHOWN = {"*": "[*]", "?": "[?]", "[": "[[]", STAR: "*", ONE: "?", CLASS: "[", ANY: "**", HOME: "~"}
_SPECIAL = ("*", "?", "[", *MARKS)

# A token is one literal character, or longer: part of a segment, anything, one character, a class with what is in it.
_PART, _ALL, _CHAR = "*part", "*all", "?char"
_WILD = (_PART, _ALL)


def normal(path: str, cwd: str) -> str:
    """`path` seen from `cwd`, without `.`, `..` and doubled slashes. An unknown start stays unknown."""
    if not path.startswith(ABSOLUTE):
        path = f"{cwd}/{path}"
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if kept and ANY in kept[-1]:
                kept[-1] = ANY
            elif kept:
                kept.pop()
        elif segment not in ("", "."):
            kept.append(segment)
    start = "" if kept and path.startswith((HOME, ANY)) else "/"
    return start + "/".join(kept)


def shown(path: str) -> str:
    """The pattern for text with active marks in it."""
    for special in _SPECIAL:
        if special in path:
            return "".join([_SHOWN.get(char, char) for char in path]).replace("****", "**")
    return path


def is_literal(pattern: str) -> bool:
    """Whether the pattern can only stand for one path."""
    return not ("*" in pattern or "?" in pattern or "[" in pattern)


def literal_start(pattern: str) -> str:
    """What every path begins with that the pattern can stand for."""
    for at, char in enumerate(pattern):
        if char in "*?[":
            return pattern[:at]
    return pattern


def may_match(pattern: str, path: str) -> bool:
    """Whether `pattern` can stand for the literal `path`. `*` does not cross a slash, `**` does."""
    return pattern == path or _meet(tokens(pattern), list(path))


def may_meet(one: str, other: str) -> bool:
    """Whether two patterns can stand for the same path."""
    return one == other or _meet(tokens(one), tokens(other))


def hits(target: str, path: str, *, recursive: bool) -> bool:
    """Whether writing `target` can change `path`; a recursive one changes all that is below it, too."""
    return may_match(target, path) or (recursive and may_match(below(target), path))


def below(pattern: str) -> str:
    """Everything below a directory."""
    return pattern.rstrip("/") + "/**"


def tokens(pattern: str) -> list[str]:
    """The pattern as literal characters and wild cards."""
    found: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        at += 1
        if char == "*":
            token = _PART
            if at < end and pattern[at] == "*":
                at += 1
                token = _ALL
            if not found or found[-1] not in (token, _ALL):
                found.append(token)
        elif char == "?":
            found.append(_CHAR)
        elif char == "[":
            close = pattern.find("]", at + 1)
            if close < 0:
                found.append("[")
                continue
            inside = pattern[at:close]
            at = close + 1
            found.append(inside if len(inside) == 1 else "[" + inside)
        else:
            found.append(char)
    return found


def _meet(one: list[str], other: list[str]) -> bool:
    """Both are walked together; each pair of positions is visited once."""
    start, stop_one, stop_other = 0, len(one), len(other)
    while start < stop_one and start < stop_other and _plain(one[start]) and _plain(other[start]):
        if one[start] != other[start]:
            return False
        start += 1
    while stop_one > start and stop_other > start and _plain(one[stop_one - 1]) and _plain(other[stop_other - 1]):
        if one[stop_one - 1] != other[stop_other - 1]:
            return False
        stop_one -= 1
        stop_other -= 1
    seen: set[tuple[int, int]] = set()
    todo = [(start, start)]
    while todo:
        pair = todo.pop()
        if pair in seen:
            continue
        seen.add(pair)
        i, j = pair
        if i == stop_one and j == stop_other:
            return True
        mine = one[i] if i < stop_one else ""
        theirs = other[j] if j < stop_other else ""
        if mine in _WILD:
            todo.append((i + 1, j))
        if theirs in _WILD:
            todo.append((i, j + 1))
        if not mine or not theirs or not _agree(mine, theirs):
            continue
        if _hidden(one, i, theirs, other, j) or _hidden(other, j, mine, one, i):
            continue
        todo.append((i if mine in _WILD else i + 1, j if theirs in _WILD else j + 1))
    return False


def _plain(token: str) -> bool:
    return len(token) == 1


def _opens(pattern: list[str], at: int) -> bool:
    return at == 0 or pattern[at - 1] == "/"


def _hidden(wild: list[str], at: int, char: str, other: list[str], there: int) -> bool:
    """A wild card at the start of a segment does not stand for a leading dot."""
    token = wild[at]
    return char == "." and token != _ALL and not _plain(token) and _opens(wild, at) and _opens(other, there)


def _agree(one: str, other: str) -> bool:
    """Whether two tokens can stand for a common character."""
    if _plain(one) and _plain(other):
        return one == other
    if _ALL in (one, other):
        return True
    if _plain(one):
        return _takes(other, one)
    if _plain(other):
        return _takes(one, other)
    return True


def _takes(wild: str, char: str) -> bool:
    if char == "/":
        return False
    if wild[0] != "[":
        return True
    inside = wild[1:]
    negated = inside[0] in "!^" if inside else False
    if negated:
        inside = inside[1:]
    if ":" in inside:
        return True
    at, found = 0, False
    while at < len(inside):
        if at + 2 < len(inside) and inside[at + 1] == "-":
            found = found or inside[at] <= char <= inside[at + 2]
            at += 3
        else:
            found = found or inside[at] == char
            at += 1
    return found != negated
