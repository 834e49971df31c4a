"""Expands the words of a command into arguments, as far as the command itself gives the values."""

from detent.core.guard.path_pattern import (
    ANY,
    CLASS,
    CLOSE,
    COMMA,
    HOME,
    ONE,
    OPEN,
    STAR,
    normal,
)
from detent.core.guard.shell.fuel import Fuel
from detent.core.guard.shell.tree import Node, Part, Word

MAX_FIELDS = 256
MAX_PATH = 4_096  # no system opens a longer one
_MAX_LENGTH = 131_072  # of what the words of a command become
_COUNTED = ("?", "#", "$", "!", "-", "RANDOM", "SECONDS", "UID", "EUID", "PPID", "EPOCHSECONDS", "LINENO", "BASHPID")


class Place:
    """The state in which a command runs: its possible directories, variables, functions and standard input."""

    __slots__ = ("cwds", "depth", "functions", "names", "stack", "stdin")

    def __init__(self, cwd: str) -> None:
        self.cwds = [cwd]
        self.names: dict[str, list[str]] = {}
        self.functions: dict[str, Node] = {}
        self.stack: list[list[str]] = []
        self.stdin: list[str] | None = None
        self.depth = 0

    def copy(self) -> "Place":
        """The place of a subshell."""
        other = Place("")
        other.cwds = list(self.cwds)
        other.names = dict(self.names)
        other.functions = self.functions
        other.stack = list(self.stack)
        other.stdin = self.stdin
        other.depth = self.depth
        return other


class Expander:
    """Expands words into fields. A subclass runs the substituted commands."""

    __slots__ = ("fuel", "home")

    def __init__(self, home: str, fuel: Fuel) -> None:
        self.home = home or HOME
        self.fuel = fuel

    def path(self, path: str, cwd: str) -> str:
        """`path` seen from `cwd`; unknown if it is longer than a path can be."""
        self.fuel.burn(2 + (len(path) + len(cwd)) // 4)
        path = normal(path, cwd)
        return path if len(path) <= MAX_PATH else ANY

    def copied(self, place: Place) -> Place:
        self.fuel.burn(2 + len(place.names) + len(place.stack))
        return place.copy()

    def substitute(self, part: Part, place: Place) -> list[str]:
        """The lines that a substituted command prints."""
        raise NotImplementedError(part.kind, place)

    def fields(self, words: list[Word], place: Place) -> list[str]:
        """The arguments that the words become."""
        arguments: list[str] = []
        length = 0
        for word in words:
            if len(word) == 1 and word[0].kind == "raw" and _is_simple(word[0].text):
                arguments.append(word[0].text)
                continue
            fields = self.expand(word, place)
            length += sum([len(field) for field in fields])
            arguments.extend(fields if length < _MAX_LENGTH else [ANY])
        return arguments

    def expand(self, word: Word, place: Place, *, active: bool = True) -> list[str]:
        """The fields of one word; unless `active`, it is not split and `*` is only a star."""
        fields = [""]
        braces = active and any(part.kind == "raw" and "{" in part.text for part in word)
        for at, part in enumerate(word):
            values = self._values(part, place, first=at == 0, active=active, braces=braces)
            self.fuel.burn(1 + len(fields) * len(values) + len(fields[0]) * len(values) // 16)
            if len(values) == 1:
                fields = [field + values[0] for field in fields]
            elif len(fields) * len(values) > MAX_FIELDS:
                fields = [ANY]
            else:
                fields = [field + value for field in fields for value in values]
            if len(fields[0]) > _MAX_LENGTH:
                fields = [ANY]
        if braces:
            fields = [each for field in fields for each in _braced(field, self.fuel)][:MAX_FIELDS]
        if active and fields == [""] and all(part.kind in ("var", "sub") and not part.quote for part in word):
            return []
        return fields

    def text(self, word: Word, place: Place) -> str:
        """A word as one piece of text."""
        return " ".join(self.expand(word, place, active=False))

    def _values(self, part: Part, place: Place, *, first: bool, active: bool, braces: bool) -> list[str]:
        kind = part.kind
        if kind == "lit":
            return [part.text]
        if kind == "raw":
            text = part.text
            if first and text[0] == "~":
                text = self._tilde(text, place)
            return [_activated(text, braces=braces) if active else text]
        if kind == "num":
            self.expand(part.word, place, active=False)
            return [STAR]
        values = self._variable(part, place) if kind == "var" else self.substitute(part, place)
        if part.quote or not active:
            return values or [""]
        return [_activated(each, braces=False) for value in values for each in value.split()] or [""]

    def _tilde(self, text: str, place: Place) -> str:
        name, slash, rest = text.partition("/")
        if name == "~":
            return self.home + slash + rest
        return place.cwds[0] + slash + rest if name == "~+" else HOME + text[1:]

    def lookup(self, name: str, place: Place) -> list[str] | None:
        """The values of a variable; None if only the environment has it."""
        if name in place.names:
            return place.names[name]
        if name == "HOME":
            return [self.home]
        if name == "PWD":
            return place.cwds
        if name == "TMPDIR":
            return ["/tmp"]  # noqa: S108 - its value where it is not set
        if name in _COUNTED:
            return [STAR]
        if name.isdecimal() and "@" in place.names:
            index, given = int(name[:4]), place.names["@"]
            return given[index - 1 : index] if ANY not in given else [ANY]
        return None

    def _variable(self, part: Part, place: Place) -> list[str]:
        values = self.lookup("@" if part.text == "*" else part.text, place)
        op = part.op
        if not op:
            return [ANY] if values is None else values
        if op == "#" and not part.word:
            return [STAR]
        if op in (":-", "-", ":=", "="):
            if values is None or (op[0] == ":" and values in ([], [""])):
                values = self.expand(part.word, place, active=False)
                if "=" in op:
                    place.names[part.text] = values
            return values
        if op in (":+", "+"):
            return self.expand(part.word, place, active=False)
        if part.word:
            self.expand(part.word, place)
        if op == "!" and values:
            return self.lookup(values[0], place) or [ANY]
        # What `${name%suffix}` and the like cut off or replace is not followed.
        return [ANY] if values is None else values


def _is_simple(text: str) -> bool:
    if text[0] == "~":
        return False
    return text == "[" or not ("*" in text or "?" in text or "[" in text or "{" in text)


def _activated(text: str, *, braces: bool) -> str:
    if "*" in text:
        text = text.replace("*", STAR)
    if "?" in text:
        text = text.replace("?", ONE)
    if "[" in text:
        text = text.replace("[", CLASS)
    if braces:
        text = text.replace("{", OPEN).replace(",", COMMA).replace("}", CLOSE)
    return text


def _braced(field: str, fuel: Fuel) -> list[str]:
    """`a{b,c}d` into its alternatives; too many of them become one that is unknown."""
    if field.count(OPEN) > 32:
        return [ANY]
    done: list[str] = []
    todo = [field]
    while todo:
        text = todo.pop()
        fuel.burn(1 + len(text) // 4)
        start = text.find(OPEN)
        if start < 0:
            done.append(text.replace(COMMA, ",").replace(CLOSE, "}"))
            continue
        close, choices = _choices(text, start)
        if not choices:
            todo.append(text[:start] + "{" + text[start + 1 :])
            continue
        todo.extend(text[:start] + choice + text[close + 1 :] for choice in reversed(choices))
        if len(todo) + len(done) > MAX_FIELDS:
            return [ANY]
    return done


def _choices(text: str, start: int) -> tuple[int, list[str]]:
    depth, last = 0, start + 1
    choices: list[str] = []
    for at in range(start, len(text)):
        char = text[at]
        if char == OPEN:
            depth += 1
        elif char == COMMA and depth == 1:
            choices.append(text[last:at])
            last = at + 1
        elif char == CLOSE:
            depth -= 1
            if depth == 0:
                if choices:
                    choices.append(text[last:at])
                else:
                    choices = _range(text[start + 1 : at])
                return at, choices
    return len(text), []


def _range(text: str) -> list[str]:
    low, dots, high = text.partition("..")
    if not dots:
        return []
    if low.lstrip("-").isdecimal() and high.lstrip("-").isdecimal() and len(low) < 9 > len(high):
        first, last = sorted((int(low), int(high)))
        return [STAR] if last - first > 64 else [str(number) for number in range(first, last + 1)]
    return [STAR]
