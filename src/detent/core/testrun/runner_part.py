"""The part of a shared file that steers a test runner: found, compared, and put into another version of the file.

Everything is textual, so that the rest of the file stays byte for byte. Each format yields the pieces of its text that
belong to the runner, by key. A file that cannot be read that way has no known part: it is named and left alone.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterator
from typing import NamedTuple
from xml.parsers import expat

MAX_BYTES = 4 * 1024 * 1024


class Piece(NamedTuple):
    """A piece of the text that belongs to the runner."""

    key: str
    start: int
    end: int
    #: Key of the place where it goes in a text that lacks it.
    parent: str = ""


class Parts(NamedTuple):
    """The pieces of a text, in order, and the places where a missing one may be put: its parent to an offset."""

    text: str
    pieces: tuple[Piece, ...]
    places: dict[str, int]

    def by_key(self) -> dict[str, str]:
        return {piece.key: self.text[piece.start : piece.end] for piece in self.pieces}


class Format(NamedTuple):
    """A kind of shared file."""

    #: The second argument are keys that belong to the runner whatever this text says about them.
    read: Callable[[str, frozenset[str]], Parts]
    #: The text of a piece that is put into a file that lacks it, and what stays where one is taken out.
    inserted: Callable[[str], str] = "\n{}\n".format
    removed: Callable[[int], str] = lambda _: ""


def runner_part(path: str, content: bytes | None) -> dict[str, str] | None:
    """The runner's part of a shared file, by key; empty without a file, None if it cannot be separated."""
    if content is None:
        return {}
    parts = _parts(path, content)
    return None if parts is None else {key: _plain(text) for key, text in parts.by_key().items()}


def with_runner_part(path: str, new: bytes, old: bytes | None) -> bytes | None:
    """The new file with the runner's part of the old one; None if one of them cannot be separated."""
    form, before = _format(path), _parts(path, old) if old is not None else Parts("", (), {})
    kept = before.by_key() if before is not None else {}
    there = _parts(path, new, frozenset(kept))
    if form is None or there is None or before is None:
        return None
    edits = []
    for number, piece in enumerate(there.pieces):
        text = kept.pop(piece.key, None)
        edits.append((piece.start, piece.end, form.removed(number) if text is None else text))
    parents = {piece.key: piece.parent for piece in before.pieces}
    for key, text in kept.items():
        if parents[key] not in there.places:
            return None
        place = there.places[parents[key]]
        edits.append((place, place, form.inserted(text.strip())))
    merged, at = "", 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        merged += there.text[at:start] + text
        at = end
    result = (merged + there.text[at:]).encode("latin-1")
    # Whatever the edits did, the result has exactly the old part.
    return result if runner_part(path, result) == runner_part(path, old) else None


def _format(path: str) -> Format | None:
    name = path.rpartition("/")[2]
    return next((form for pattern, form in _FORMATS.items() if re.fullmatch(pattern, name)), None)


def _parts(path: str, content: bytes, also: frozenset[str] = frozenset()) -> Parts | None:
    form = _format(path)
    if form is None or len(content) > MAX_BYTES:
        return None
    try:
        # One character a byte, so that every file comes back as it was.
        parts = form.read(content.decode("latin-1"), also)
    except (ValueError, RecursionError, expat.ExpatError):
        return None
    keys = [piece.key for piece in parts.pieces]
    return parts if len(set(keys)) == len(keys) else None


def _plain(text: str) -> str:
    """The piece without comments of whole lines, blank lines and the space around lines, which change nothing."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith(("#", ";", "//")))


class _Counted:
    """Numbers keys that occur again."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def __call__(self, key: str) -> str:
        count = self._counts[key] = self._counts.get(key, 0) + 1
        return key if count == 1 else f"{key}#{count}"


# TOML and INI: sections of lines


class _Section(NamedTuple):
    """A section that belongs to the runner: all of it, or the options that the expression matches."""

    name: str
    options: str = ""


_PYPROJECT = (
    _Section(r"tool\.(?:pytest|coverage|tox)(?:\..*)?"),
    _Section(r"tool\.hatch\.envs\.[^.]*", r"scripts|extra-args|env-vars"),
    _Section(r"tool\.hatch\.envs\..*\.(?:scripts|env-vars)"),
    _Section(r"project\.entry-points\.pytest11"),
)
_CARGO = (
    _Section(r"test"),
    _Section(r"profile\.test(?:\..*)?"),
    _Section(r"package", r"autotests"),
    _Section(r"lib|bin|example", r"test|doctest|harness"),
)
_SETUP_CFG = (
    _Section(r"tool:pytest|coverage(?::.*)?"),
    _Section(r"aliases", r"test|pytest"),
    _Section(r"options\.entry_points", r"pytest11"),
)
_TOX_INI = (
    _Section(r"pytest|tool:pytest|coverage(?::.*)?"),
    _Section(r"testenv(?::.*)?", r"commands(?:_pre|_post)?|set_?env|ignore_(?:outcome|errors)"),
)
_HEADER = re.compile(r"(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:[#;].*)?")
_OPTION = re.compile(r"([A-Za-z0-9_\"'-]+)[A-Za-z0-9_.\"'-]*\s*[=:]")


def _toml(wanted: tuple[_Section, ...]) -> Format:
    def read(text: str, _: frozenset[str]) -> Parts:
        parts = _sections(text, wanted, is_toml=True)
        left, at = "", 0
        for piece in parts.pieces:
            left += text[at : piece.start]
            at = piece.end
        rest = tomllib.loads((left + text[at:]).encode("latin-1").decode())
        # Inline tables and dotted keys can hold a part that is no section.
        if any(_holds(rest, rule) for rule in wanted):
            raise ValueError("the runner's part is no section of its own")
        tomllib.loads(text.encode("latin-1").decode())
        return parts

    return Format(read)


def _holds(value: object, rule: _Section, above: str = "") -> bool:
    """Whether there is a table, or an option of one, that the rule names."""
    if isinstance(value, list):
        return any(_holds(each, rule, above) for each in value)
    if not isinstance(value, dict):
        return False
    if re.fullmatch(rule.name, above) and (not rule.options or any(re.fullmatch(rule.options, key) for key in value)):
        return True
    return any(_holds(inner, rule, f"{above}.{key}" if above else key) for key, inner in value.items())


def _ini(wanted: tuple[_Section, ...]) -> Format:
    return Format(lambda text, _: _sections(text, wanted, is_toml=False))


def _sections(text: str, wanted: tuple[_Section, ...], *, is_toml: bool) -> Parts:
    """The pieces of lines: runs of lines with the same key."""
    pieces: list[Piece] = []
    places = {"": len(text)}
    counted, at, depth = _Counted(), 0, 0
    section, key, rules = "", "", tuple[_Section, ...]()
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        bare = line.strip()
        header = _HEADER.fullmatch(bare) if depth == 0 and (is_toml or not line[:1].isspace()) else None
        if header is not None:
            name = header[2].replace('"', "").replace("'", "").replace(" ", "")
            section = counted(f"{header[1]}{name}")
            places[section] = end
            rules = tuple(rule for rule in wanted if re.fullmatch(rule.name, name))
            is_whole = any(not rule.options for rule in rules)
            key = section if is_whole else ""
            rules = () if is_whole else rules
        elif rules and depth == 0 and bare and (is_toml or not line[:1].isspace()):
            option = _OPTION.match(bare)
            name = option[1].strip("\"'") if option is not None else ""
            is_wanted = bool(name) and any(re.fullmatch(rule.options, name) for rule in rules)
            key = f"{section}.{name}" if is_wanted else ""
        if is_toml and header is None:
            depth = max(0, depth + _left_open(bare))
        if key and pieces and pieces[-1].key == key and pieces[-1].end == at:
            pieces[-1] = pieces[-1]._replace(end=end)
        elif key:
            pieces.append(Piece(key, at, end, "" if key == section else section))
        at = end
    return Parts(text, tuple(pieces), places)


def _left_open(line: str) -> int:
    """Count the brackets that a line of TOML leaves open."""
    bare = re.sub(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*", "", line)
    return bare.count("[") + bare.count("{") - bare.count("]") - bare.count("}")


# Members of the objects of a Node package

_MEMBERS = re.compile(r"jest|vitest|mocha|ava|nyc|c8|tap|jasmine")
_SCRIPTS = re.compile(r"(?:pre|post)?test(?:[:_-].*)?")
_SPACE = re.compile(r"\s*")
_decoder = json.JSONDecoder()


def _package_json(text: str, also: frozenset[str]) -> Parts:
    start = _behind_space(text, 0)
    if not isinstance(json.loads(text), dict):
        raise ValueError("package.json is no object")  # noqa: TRY004 - the file is wrong, not a call
    members = list(_json_members(text, start))
    places = {"": start + 1} if members else {}
    pieces = [Piece(key, at, end) for key, at, _, end in members if _MEMBERS.fullmatch(key)]
    for key, _, value, end in members:
        if key == "scripts" and text[value] == "{":
            scripts = list(_json_members(text, value))
            places |= {"scripts": value + 1} if scripts else {}
            lines = {name: text[begin:stop] for name, _, begin, stop in scripts}
            names = _test_scripts(lines, {name for name in lines if f"scripts.{name}" in also})
            pieces += [Piece(f"scripts.{name}", at, stop, "scripts") for name, at, _, stop in scripts if name in names]
        elif key == "scripts":
            pieces.append(Piece(key, value, end))
    return Parts(text, tuple(sorted(pieces, key=lambda piece: piece.start)), places)


def _json_members(text: str, start: int) -> Iterator[tuple[str, int, int, int]]:
    """(key, start of the member, start of its value, end) of each member of the object that opens at `start`."""
    at = _behind_space(text, start + 1)
    while text[at] != "}":
        key, end = _decoder.raw_decode(text, at)
        value = _behind_space(text, _behind_space(text, end) + 1)
        _, end = _decoder.raw_decode(text, value)
        yield key, at, value, end
        at = _behind_space(text, end)
        if text[at] == ",":
            at = _behind_space(text, at + 1)


def _behind_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match is not None else at


def _test_scripts(lines: dict[str, str], also: set[str]) -> set[str]:
    """The scripts that are named for tests, and those that they call."""
    names = also | {name for name in lines if _SCRIPTS.fullmatch(name)}
    waiting = list(names)
    while waiting:
        words = set(re.findall(r"[\w:.-]+", lines[waiting.pop()]))
        called = {name for name in lines if name in words} - names
        names |= called
        waiting += called
    return names


# Elements of a Maven project

_PLUGINS = re.compile(r".*(?:surefire|failsafe|jacoco|pitest).*")
_PROPERTIES = re.compile(
    r"skip(?:Unit)?Tests?|skipITs?|maven\.test\..*|(?:surefire|failsafe)\..*|groups|excludedGroups"
)
_ELEMENTS = frozenset(("testSourceDirectory", "testResources"))


def _pom(text: str, _: frozenset[str]) -> Parts:
    elements: list[tuple[str, int]] = []
    #: Path of an element to the text of its artifactId.
    artifacts: dict[str, str] = {}
    pieces: list[Piece] = []
    places: dict[str, int] = {}
    counted = _Counted()
    parser = expat.ParserCreate()

    def begin(name: str, _attributes: object) -> None:
        above = elements[-1][0] if elements else ""
        path = counted(f"{above}/{name}")
        elements.append((path, parser.CurrentByteIndex))
        places[path] = text.index(">", parser.CurrentByteIndex) + 1

    def on_text(data: str) -> None:
        above, _, name = elements[-1][0].rpartition("/")
        if name == "artifactId":
            artifacts[above] = artifacts.get(above, "") + data.strip()

    def end(name: str) -> None:
        path, start = elements.pop()
        parent = path.rpartition("/")[0]
        at = parser.CurrentByteIndex
        stop = text.index(">", at if text.startswith("</", at) else start) + 1
        if name == "plugin" and _PLUGINS.fullmatch(artifacts.get(path, "")):
            pieces.append(Piece(f"{parent}/{artifacts[path]}", start, stop, parent))
        elif name in _ELEMENTS or (parent.endswith("/properties") and _PROPERTIES.fullmatch(name)):
            pieces.append(Piece(path, start, stop, parent))

    def refuse(*_: object) -> None:
        raise ValueError("the file declares a document type")

    parser.StartElementHandler, parser.EndElementHandler = begin, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = on_text, refuse
    parser.Parse(text.encode("latin-1"), True)  # noqa: FBT003 - the parser's own signature
    return Parts(text, tuple(sorted(pieces, key=lambda piece: piece.start)), places)


# Gradle and JavaScript: blocks in braces

_QUOTED = re.compile(
    r"\"\"\".*?\"\"\"|'''.*?'''|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`|//[^\n]*|/\*.*?\*/",
    re.DOTALL,
)
_GRADLE_BLOCK = re.compile(
    r"(?<![\w.])(?:tasks\s*\.\s*)?(?:test|\w+Test|jacoco\w*)\s*\{"
    r"|(?<![\w.])tasks\s*\.\s*(?:named|withType|getByName|register|configureEach)\b[^{\n]*[Tt]est[^{\n]*\{"
)
_GRADLE_LINE = re.compile(r"(?m)^[^\n]*(?<![\w.\"'/:-])(?:test|Test)\b(?![\"':-])[^\n]*$")
_VITE_BLOCK = re.compile(r"(?<![\w.$])test\s*:\s*\{")


def _gradle(text: str, _: frozenset[str]) -> Parts:
    pieces = list(_blocks(text, _GRADLE_BLOCK))
    counted = _Counted()
    for line in _GRADLE_LINE.finditer(_unquoted(text)):
        if not any(piece.start < line.end() and line.start() < piece.end for piece in pieces):
            pieces.append(Piece(counted("line"), line.start(), line.end()))
    return Parts(text, tuple(sorted(pieces, key=lambda piece: piece.start)), {"": len(text)})


def _vite(text: str, _: frozenset[str]) -> Parts:
    return Parts(text, tuple(_blocks(text, _VITE_BLOCK)), {})


def _blocks(text: str, head: re.Pattern[str]) -> Iterator[Piece]:
    unquoted, counted, at = _unquoted(text), _Counted(), 0
    while (match := head.search(text, at)) is not None:
        at = match.end()
        if unquoted[match.start()] != text[match.start()] or unquoted[at - 1] != "{":
            continue
        depth, end = 1, at
        while depth:
            if end == len(unquoted):
                raise ValueError("a block is not closed")
            depth += {"{": 1, "}": -1}.get(unquoted[end], 0)
            end += 1
        yield Piece(counted(re.sub(r"\s", "", match[0])), match.start(), end)
        at = end


def _unquoted(text: str) -> str:
    """The text with blanks in place of strings and comments."""
    return _QUOTED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _placeholder(number: int) -> str:
    """A member without a meaning: taking one out would leave a comma."""
    return f'"//{number}": ""'


_FORMATS: dict[str, Format] = {
    r"pyproject\.toml": _toml(_PYPROJECT),
    r"Cargo\.toml": _toml(_CARGO),
    r"setup\.cfg": _ini(_SETUP_CFG),
    r"tox\.ini": _ini(_TOX_INI),
    r"package\.json": Format(_package_json, "{},".format, _placeholder),
    r"pom\.xml": Format(_pom, "{}".format),
    r"build\.gradle(?:\.kts)?": Format(_gradle),
    r"vite\.config\..*": Format(_vite, removed=_placeholder),
}
