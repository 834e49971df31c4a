"""Ignore rules: the rules of gitignore(5), without git.

`Rules` are those of one file, `Ignored` is the stack of rules of a directory. Both look only at the path in question.
The caller must not enter an ignored directory: a `!` rule cannot bring back a path below one.
"""

import re
from collections.abc import Callable, Iterable

import msgspec

from detent.core.checkpoint.ignore_pattern import Pattern, octets, read
from detent.core.lazy import lazy
from detent.core.limits import MAX_PATH

_BOM = b"\xef\xbb\xbf"
_ANYWHERE = re.compile(r"\A(?:\*{2,}/)+")  # redundant before a name, which matches in every directory

_Find = Callable[[str, int], re.Match[str] | None]
_Texts = tuple[str, ...]


class _Rule(msgspec.Struct, frozen=True, kw_only=True):
    ignores: bool
    directories_only: bool
    by_name: bool
    pattern: Pattern  # of the name, or of the path below the base


class Rules:
    """The rules of one ignore file, or of a list in the settings. The last match decides."""

    def __init__(self, lines: Iterable[str], base: str = "") -> None:
        """`base` is the directory of the rules, relative to the root of the walk: "" or "a/b"."""
        self._start = len(octets(base)) + 1 if base else 0
        self._rules = [rule for number, line in enumerate(lines) if (rule := _rule(octets(line), f"n{number}_"))]
        self._signs = (_signs(rule for rule in self._rules if not rule.directories_only), _signs(self._rules))

    @classmethod
    def parse(cls, data: bytes, base: str = "") -> "Rules":
        """The rules in the bytes of a `.gitignore` file."""
        lines = data.removeprefix(_BOM).decode("utf-8", "surrogateescape").split("\n")
        return cls([line.removesuffix("\r") for line in lines], base)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, path: str, is_directory: bool) -> bool | None:  # noqa: FBT001 - asked for every file of a tree
        """True if `path` is ignored, False if a `!` rule includes it, None if no rule matches.

        `path` is below the base, relative to the root of the walk, as `os.fsdecode` returns it.
        """
        text = path if path.isascii() else octets(path)
        name, start = text.rfind("/") + 1, self._start
        ends, names, paths = self._signs[is_directory]
        if not (text.endswith(ends) or text.startswith(names, name) or text.startswith(paths, start)):
            return None
        by_name, by_path = self._of_directories if is_directory else self._of_files
        named = by_name(text, name) if by_name else None
        placed = by_path(text, start) if by_path else None
        last = max(_number(named), _number(placed))
        return self._rules[last].ignores if last >= 0 else None

    @lazy
    def _of_files(self) -> tuple[_Find | None, _Find | None]:
        return self._find(for_directories=False, by_name=True), self._find(for_directories=False, by_name=False)

    @lazy
    def _of_directories(self) -> tuple[_Find | None, _Find | None]:
        return self._find(for_directories=True, by_name=True), self._find(for_directories=True, by_name=False)

    def _find(self, *, for_directories: bool, by_name: bool) -> _Find | None:
        """All rules of a kind in one expression, the last first. The name of the last group is the matching rule."""
        expressions = [
            f"{rule.pattern.expression}(?P<r{number}>)"
            for number, rule in enumerate(self._rules)
            if rule.by_name is by_name and (for_directories or not rule.directories_only)
        ]
        return re.compile("|".join(reversed(expressions)), re.DOTALL).fullmatch if expressions else None


class Ignored:
    """The rules of one directory: its own, then those of the directories above."""

    def __init__(self, *innermost_first: Rules) -> None:
        self._stack = innermost_first

    def with_rules(self, rules: Rules) -> "Ignored":
        """The stack of a directory below that has `rules` of its own."""
        return Ignored(rules, *self._stack) if rules else self

    def matches(self, path: str, is_directory: bool) -> bool:  # noqa: FBT001 - asked for every file of a tree
        """Whether `path` is ignored. No directory above it may be ignored."""
        for rules in self._stack:
            decision = rules.decide(path, is_directory)
            if decision is not None:
                return decision
        return False


def _signs(rules: Iterable[_Rule]) -> tuple[_Texts, _Texts, _Texts]:
    """Ends of the path, starts of its name and starts of the path: a path without any of them matches no rule."""
    ends: list[str] = []
    names: list[str] = []
    paths: list[str] = []
    for rule in rules:
        if rule.pattern.ends:
            ends += rule.pattern.ends
        else:
            (names if rule.by_name else paths).append(rule.pattern.head)
    return tuple(ends), tuple(names), tuple(paths)


def _number(match: re.Match[str] | None) -> int:
    return int(match.lastgroup[1:]) if match and match.lastgroup else -1


def _rule(line: str, prefix: str) -> _Rule | None:
    """The rule of a line, with `prefix` for its groups. None for a comment, a blank line, or one over MAX_PATH, which
    no path can match."""
    pattern = _trimmed(line.partition("\0")[0])
    if pattern.startswith("#") or len(pattern) > MAX_PATH:
        return None
    ignores, pattern = not pattern.startswith("!"), pattern.removeprefix("!")
    directories_only, pattern = pattern.endswith("/"), pattern.removesuffix("/")
    by_name, pattern = "/" not in pattern, pattern.removeprefix("/")
    last = _ANYWHERE.sub("", pattern)
    if last != pattern and "/" not in last:
        by_name, pattern = True, last
    matcher = read(pattern, by_name=by_name, prefix=prefix)
    if matcher is None:
        return None
    return _Rule(ignores=ignores, directories_only=directories_only, by_name=by_name, pattern=matcher)


def _trimmed(line: str) -> str:
    """The line without trailing blanks, but with one that has a backslash before it."""
    bare = line.rstrip(" ")
    backslashes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if backslashes % 2 and bare != line else bare
