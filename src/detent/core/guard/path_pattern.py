"""Paths that may be partly unknown, and what they can stand for.

A pattern is a path in which `*`, `?` and `[...]` mean what they mean to a shell: they stay within one segment and do
not match a leading dot. `**` is text that cannot be known by reading: it matches anything, dots and slashes included. A
name that really contains one of the special characters has it in brackets: `[*]`.

Inside the shell modules the special characters that are *active* are single private characters, so that a quoted `*`
and an unquoted one stay apart while both are plain text; `shown` turns them into the pattern above.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from detent.core.guard.shell.fuel import Fuel

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
    """True if the pattern stands for one path only."""
    return not ("*" in pattern or "?" in pattern or "[" in pattern)


def literal_start(pattern: str) -> str:
    """The text with which every path begins that the pattern can stand for."""
    for at, char in enumerate(pattern):
        if char in "*?[":
            return pattern[:at]
    return pattern


def may_meet(left: str, right: str, fuel: "Fuel") -> bool:
    """True if two patterns can stand for the same path. `*` does not cross a slash, `**` does."""
    fuel.burn(5 + (len(left) + len(right)) // 2)
    return left == right or _meet(tokens(left), tokens(right), fuel)


def below(pattern: str) -> str:
    """Everything below a directory."""
    return pattern.rstrip("/") + "/**"


def tokens(pattern: str) -> list[str]:
    """The pattern as literal characters and wild cards."""
    result: list[str] = []
    at, end = 0, len(pattern)
    while at < end:
        char = pattern[at]
        at += 1
        if char == "*":
            token = _PART
            if at < end and pattern[at] == "*":
                at += 1
                token = _ALL
            if not result or result[-1] not in (token, _ALL):
                result.append(token)
        elif char == "?":
            result.append(_CHAR)
        elif char == "[":
            close = pattern.find("]", at + 1)
            if close < 0:
                result.append("[")
                continue
            inside = pattern[at:close]
            at = close + 1
            result.append(inside if len(inside) == 1 else "[" + inside)
        else:
            result.append(char)
    return result


def _meet(left: list[str], right: list[str], fuel: "Fuel") -> bool:
    """Both are walked together; each pair of positions is visited once."""
    start, stop_left, stop_right = 0, len(left), len(right)
    while start < stop_left and start < stop_right and _plain(left[start]) and _plain(right[start]):
        if left[start] != right[start]:
            return False
        start += 1
    while stop_left > start and stop_right > start and _plain(left[stop_left - 1]) and _plain(right[stop_right - 1]):
        if left[stop_left - 1] != right[stop_right - 1]:
            return False
        stop_left -= 1
        stop_right -= 1
    seen: set[tuple[int, int]] = set()
    todo = [(start, start)]
    while todo:
        pair = todo.pop()
        if pair in seen:
            continue
        seen.add(pair)
        fuel.burn(2)
        i, j = pair
        if i == stop_left and j == stop_right:
            return True
        mine = left[i] if i < stop_left else ""
        theirs = right[j] if j < stop_right else ""
        if mine in _WILD:
            todo.append((i + 1, j))
        if theirs in _WILD:
            todo.append((i, j + 1))
        if not mine or not theirs or not _agree(mine, theirs):
            continue
        if _hidden(left, i, theirs, right, j) or _hidden(right, j, mine, left, i):
            continue
        todo.append((i if mine in _WILD else i + 1, j if theirs in _WILD else j + 1))
    return False


def _plain(token: str) -> bool:
    return len(token) == 1


def _opens(pattern: list[str], at: int) -> bool:
    return at == 0 or pattern[at - 1] == "/"


def _hidden(wild: list[str], at: int, char: str, right: list[str], there: int) -> bool:
    """A wild card at the start of a segment does not stand for a leading dot."""
    token = wild[at]
    return char == "." and token != _ALL and not _plain(token) and _opens(wild, at) and _opens(right, there)


def _agree(left: str, right: str) -> bool:
    """True if two tokens can stand for a common character."""
    if _plain(left) and _plain(right):
        return left == right
    if _ALL in (left, right):
        return True
    if _plain(left):
        return _takes(right, left)
    if _plain(right):
        return _takes(left, right)
    return True


def _takes(wild: str, char: str) -> bool:
    """A class takes any character that a question mark does: which ones are in it is not looked at."""
    return char != "/" or wild == _ALL
