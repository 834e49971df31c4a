"""The rules of gitignore(5), one by one in tables, and against git itself on random trees."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.core.checkpoint.ignore import Ignored, Rules

FILE, DIRECTORY = False, True


@pytest.mark.parametrize(
    ("lines", "path", "is_directory", "expected"),
    [
        # blank lines, comments, and what only looks like them
        ("", "a", FILE, None),
        ("   ", "   ", FILE, None),
        ("#a", "#a", FILE, None),
        (r"\#a", "#a", FILE, True),
        (" #a", " #a", FILE, True),
        ("a#", "a#", FILE, True),
        # blanks at the end
        ("a  ", "a", FILE, True),
        ("a  ", "a  ", FILE, None),
        ("a\\  ", "a ", FILE, True),
        ("a\\  ", "a  ", FILE, None),
        ("a\\ \\ ", "a  ", FILE, True),
        ("a\\\\  ", "a\\", FILE, True),
        ("a\t", "a", FILE, None),
        ("a\t", "a\t", FILE, True),
        ("a b", "a b", FILE, True),
        (" a", "a", FILE, None),
        # negation: the last rule that matches decides
        ("a*\n!ab", "ab", FILE, False),
        ("!ab\na*", "ab", FILE, True),
        ("a*\n!ab", "ac", FILE, True),
        ("!a", "b", FILE, None),
        (r"\!a", "!a", FILE, True),
        ("!!a", "!a", FILE, False),
        ("!", "!", FILE, None),
        ("*\n!*/\n!*.c", "src", DIRECTORY, False),
        ("*\n!*/\n!*.c", "src/a.c", FILE, False),
        ("*\n!*/\n!*.c", "src/a.h", FILE, True),
        ("/x/a\n!a\n/x/b", "x/a", FILE, False),
        ("!a\n/x/a", "x/a", FILE, True),
        # directories only
        ("a/", "a", FILE, None),
        ("a/", "a", DIRECTORY, True),
        ("a/", "x/a", DIRECTORY, True),
        ("a/\n!a", "a", DIRECTORY, False),
        ("a\n!a/", "a", FILE, True),
        ("a\n!a/", "a", DIRECTORY, False),
        ("a//", "a", DIRECTORY, None),
        ("/", "a", DIRECTORY, None),
        ("//", "a", DIRECTORY, None),
        # a slash at the start or in the middle ties a rule to its directory
        ("a", "x/y/a", FILE, True),
        ("a", "x/a/y", FILE, None),
        ("/a", "a", FILE, True),
        ("/a", "x/a", FILE, None),
        ("/a/", "ab", DIRECTORY, None),
        ("x/a", "x/a", FILE, True),
        ("x/a", "y/x/a", FILE, None),
        ("x/a/", "x/a", DIRECTORY, True),
        ("//a", "a", FILE, None),
        ("x//a", "x/a", FILE, None),
        ("./a", "a", FILE, None),
        # one star, one question mark
        ("*.o", "x/a.o", FILE, True),
        ("*.o", ".o", FILE, True),
        ("*", ".hidden", FILE, True),
        ("/*", "x/a", FILE, None),
        ("/*", "x", DIRECTORY, True),
        ("x/*", "x/a", FILE, True),
        ("x/*", "x/y/a", FILE, None),
        ("x/*/a", "x/a", FILE, None),
        ("x/*/a", "x/y/a", FILE, True),
        ("x/*/a", "x/y/z/a", FILE, None),
        ("a*b*c", "aXbXbXc", FILE, True),
        ("a*b*c", "ab", FILE, None),
        ("a*b*bc", "abbc", FILE, True),
        ("/a*b*bc", "abbc", FILE, True),
        ("a*a", "a", FILE, None),
        ("a?c", "abc", FILE, True),
        ("a?c", "ac", FILE, None),
        ("x?a", "x/a", FILE, None),
        ("/x?a", "x/a", FILE, None),
        # two stars
        ("**/a", "a", FILE, True),
        ("**/a", "x/y/a", FILE, True),
        ("/**/a", "x/y/a", FILE, True),
        ("**/x/a", "y/z/x/a", FILE, True),
        ("**/x/a", "xx/a", FILE, None),
        ("x/**", "x", DIRECTORY, None),
        ("x/**", "x/y/z", FILE, True),
        ("x/**/", "x/y", FILE, None),
        ("x/**/", "x/y", DIRECTORY, True),
        ("x/**/a", "x/a", FILE, True),
        ("x/**/a", "x/y/z/a", FILE, True),
        ("x/**/a", "x/ya", FILE, None),
        ("x/**/**/a", "x/a", FILE, True),
        ("x/***/a", "x/y/z/a", FILE, True),
        (r"x/**\/a", "x/a", FILE, None),
        (r"x/**\/a", "x/y/a", FILE, True),
        (r"x/**\/a", "x/y/z/a", FILE, True),
        ("**/a/**/a/b", "a/a/b", FILE, True),
        ("x/**/a*b/**/c", "x/ax/ab/c", FILE, True),
        ("x/**a", "x/ya", FILE, True),
        ("x/**a", "x/y/a", FILE, None),
        ("**", "x/y", FILE, True),
        ("/**", "x", DIRECTORY, True),
        ("**/", "x", FILE, None),
        ("**/", "x/y", DIRECTORY, True),
        ("a**c", "abbc", FILE, True),
        ("a**", "x/abc", FILE, True),
        ("a**/", "x/abc", DIRECTORY, True),
        # brackets
        ("[ab]", "b", FILE, True),
        ("[ab]", "c", FILE, None),
        ("[!ab]", "c", FILE, True),
        ("[^ab]", "a", FILE, None),
        ("[a-c]", "b", FILE, True),
        ("[c-a]", "b", FILE, None),
        ("[c-a]", "c", FILE, True),
        ("[a-]", "-", FILE, True),
        ("[-a]", "-", FILE, True),
        ("[--0]", ".", FILE, True),
        ("[a-c-e]", "d", FILE, None),
        ("[a-c-e]", "-", FILE, True),
        ("[]a]", "]", FILE, True),
        ("[!]a]", "]", FILE, None),
        ("[!]a]", "b", FILE, True),
        (r"[\]]", "]", FILE, True),
        (r"[a\-z]", "m", FILE, None),
        (r"[+-\]]", "A", FILE, True),
        ("[*]", "*", FILE, True),
        ("[*]", "a", FILE, None),
        ("x[/]a", "x/a", FILE, None),
        ("x[!a]b", "x/b", FILE, None),
        ("/x[!a]b", "x/b", FILE, None),
        ("x[a/]b", "xab", FILE, True),
        ("[[:digit:]x]", "7", FILE, True),
        ("[[:digit:]x]", "x", FILE, True),
        ("[![:digit:]]", "7", FILE, None),
        ("[[:digit:]-z]", "-", FILE, True),
        ("[[:digit]", ":", FILE, True),
        ("[a-[:digit:]]", "Z:]", FILE, None),
        # patterns that are for nothing
        ("[a", "[a", FILE, None),
        ("[]", "[]", FILE, None),
        ("[!]", "a", FILE, None),
        ("[[:upper", "A", FILE, None),
        ("[[:none:]a]", "a", FILE, None),
        ("[[::]]", ":", FILE, None),
        ("a\\", "a\\", FILE, None),
        ("a\\/", "a", DIRECTORY, None),
        ("[a-\\", "a", FILE, None),
        ("[\\", "\\", FILE, None),
        # backslashes
        (r"\a", "a", FILE, True),
        (r"\*", "*", FILE, True),
        (r"\*", "a", FILE, None),
        (r"\\", "\\", FILE, True),
        (r"x\/a", "x/a", FILE, True),
        (r"\/a", "a", FILE, None),
        # names of all kinds
        ("-a", "-a", FILE, True),
        ("a*b", "a\nb", FILE, True),
        ("a?b", "a\nb", FILE, True),
        ("a", "a\n", FILE, None),
        ("A", "a", FILE, None),
        ("[A-Z]", "a", FILE, None),
        ("a.b+(c)", "a.b+(c)", FILE, True),
        ("a.b", "aXb", FILE, None),
        ("é", "é", FILE, True),
        ("?", "é", FILE, None),
        ("??", "é", FILE, True),
        ("*", "\udcff", FILE, True),
        ("\udcff", "\udcff", FILE, True),
        ("?", "\udcff", FILE, True),
        ("a\0b", "a", FILE, True),
    ],
)
def test_a_rule_says_what_the_manual_and_git_say(lines, path, is_directory, expected):
    rules = Rules(lines.split("\n"))

    assert rules.decide(path, is_directory) is expected


@pytest.mark.parametrize(
    ("line", "path"), [("foo**/bar", "foobar"), ("foo**/bar", "foox/y/bar"), ("x/a**", "x/ab/c"), ("x/a**/b", "x/ab")]
)
def test_stars_after_a_literal_start_stay_within_their_segment(line, path):
    """The manual: "other consecutive asterisks are considered regular asterisks". Git before 2.52 cut a literal start
    off a pattern before it matched the rest and so took the stars here for the start of the pattern."""
    rules = Rules([line])

    assert rules.decide(path, FILE) is None


@pytest.mark.parametrize(
    ("line", "path", "expected"),
    [
        ("a", "d/e/x/a", True),
        ("/a", "d/e/a", True),
        ("/a", "d/e/x/a", None),
        ("x/a", "d/e/x/a", True),
        ("d/e/a", "d/e/a", None),
        ("**/a", "d/e/a", True),
        ("e/**", "d/e/a", None),
        ("/**", "d/e/a", True),
    ],
)
@pytest.mark.parametrize("base", ["d/e", "é/\udcff"])
def test_rules_are_for_what_is_below_their_base(line, path, expected, base):
    rules = Rules([line], base)

    assert rules.decide(base + path.removeprefix("d/e"), FILE) is expected


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        (b"\xef\xbb\xbfa\nb", "a", True),
        (b"\xef\xbb\xbf#a", "#a", None),
        (b"a\r\nb\r\n", "a", True),
        (b"a\r\nb \r", "b", True),
        (b"a\rb\n", "a\rb", True),
        (b"a\r\r\n", "a\r", True),
        (b"a\x0bb\x0cc\n", "a\x0bb\x0cc", True),
        (b"a\xff\n", "a\udcff", True),
        (b"\xc3\xa9\n", "é", True),
        (b"[\xc3]\xa9\n", "é", True),
        (b"\r\n\n", "\r", None),
    ],
)
def test_the_bytes_of_a_file_are_read_as_git_reads_them(data, path, expected):
    rules = Rules.parse(data)

    assert rules.decide(path, FILE) is expected


def test_the_innermost_rules_that_say_something_decide():
    outer = Ignored().with_rules(Rules(["*.log", "!keep.log", "tmp"]))
    inner = outer.with_rules(Rules(["!a.log", "keep.log"], "d"))

    assert outer.matches("a.log", FILE)
    assert not outer.matches("keep.log", FILE)
    assert not inner.matches("d/a.log", FILE)
    assert inner.matches("d/keep.log", FILE)
    assert inner.matches("d/tmp", DIRECTORY)
    assert not inner.matches("d/b", FILE)


def test_rules_that_say_nothing_add_nothing_to_the_stack():
    ignored = Ignored().with_rules(Rules(["a"]))

    assert ignored.with_rules(Rules(["# nothing", "", "[a"])) is ignored


def test_a_line_that_is_longer_than_any_path_is_for_nothing():
    assert Rules(["a" + "[a]" * 1_365]).decide("a" * 1_366, FILE)
    assert Rules(["ab" + "[a]" * 1_365]).decide("ab" + "a" * 1_365, FILE) is None


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 60 + "*b", "a" * 255),
        ("?*" * 60 + "b", "a" * 255),
        ("*[ab]" * 60 + "*c", "ab" * 127),
        ("x/" + "*a" * 60 + "b", "x/" + "a" * 255),
        ("**/a/" * 60 + "b", "a/" * 2000 + "a"),
        ("/" + "**/*a*a/" * 30 + "b", "aaaaaaa/" * 500 + "a"),
        ("**/" * 100 + "*" * 100 + "b/c", "a/" * 2000 + "a"),
        ("*/" * 60 + "b", "a/" * 2000 + "a"),
        ("*a*/" * 60 + "b", "aaa/" * 1000 + "a"),
        ("*a" * 2000 + "*b", "a" * 255),
        ("**/a/" * 800 + "b", "a/" * 2000 + "a"),
        ("[" + "[:" * 2000, ":"),
        ("a" * 1_000_000, "a"),
        ("[[:" * 1_000_000, ":"),
    ],
)
def test_no_pattern_makes_matching_run_away(line, path):
    looked_at = "/??"  # no start and no end of a path tells that this one is not for it

    decision = Rules([line, looked_at]).decide(path, FILE)

    assert decision is None  # milliseconds, or longer than anybody waits


NAMES = [
    "a",
    "b",
    "ab",
    "aab",
    "a b",
    " a",
    "a ",
    "-a",
    "#a",
    "!a",
    ".a",
    "a.b",
    "*",
    "a*",
    "[a]",
    "]",
    "a\\",
    "a\nb",
    "é",
]
NAMES += ["\udcff"] if sys.platform == "linux" else []  # other systems may refuse the name
FRAGMENTS = [
    *("a", "a", "b", "ab", "*", "*", "**", "/", "/", "**/", "/**", "/**/", "?", ".", "-", " ", "#", "!", "]"),
    *("\\", "\\*", "\\ ", "\\/", "\\!", "\\#", "\\a", "\\[", "é", "\udcff", "\t"),
    *("[ab]", "[!a]", "[^b]", "[]a]", "[!]a]", "[a-b]", "[b-a]", "[*-b]", "[a-", "[", "[/]", "[a/b]", "[!/]", "[\\]a]"),
    *("[[:alpha:]]", "[![:alpha:]]", "[[:punct:]]", "[[:none:]]", "[[:alpha]", "[\udcc3]", "[!\udcff]", "[a-\udcff]"),
]
#: Where git before 2.52 and its manual differ; see the test above.
STARS_AFTER_LITERAL = re.compile(r"!?/?[^*?\[\\]*[^*?\[\\/]\*\*+(?:/|\\/| *$)")

lines = st.builds(
    lambda sign, parts, end: sign + "".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=6),
    st.sampled_from(["", "", "/", " "]),
).filter(lambda line: "/" not in line.rstrip(" ").removesuffix("/") or not STARS_AFTER_LITERAL.match(line))
ignore_files = st.builds(
    lambda bom, lines, end: bom + os.fsencode(end.join(lines)),
    st.sampled_from([b"", b"", b"\xef\xbb\xbf"]),
    st.lists(lines | st.sampled_from(NAMES).filter(lambda name: "\n" not in name), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
)
paths = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def git(tmp_path_factory):
    """What git lists of a tree, with no settings but its own."""
    home = tmp_path_factory.mktemp("home")
    alone = {"PATH": os.environ["PATH"], "HOME": str(home), "GIT_CONFIG_GLOBAL": "/dev/null"}
    alone |= {"GIT_CONFIG_SYSTEM": "/dev/null", "GIT_DIR": str(home / "git")}
    subprocess.run(["git", "init", "-q", "--template=", "--bare", str(home / "git")], env=alone, check=True)

    def listed(root: Path) -> set[str]:
        command = ["git", "-c", "core.bare=false", "ls-files", "-co", "--exclude-standard", "-z"]
        done = subprocess.run(
            command, env={**alone, "GIT_WORK_TREE": "."}, cwd=root, check=True, stdout=subprocess.PIPE
        )
        return set(os.fsdecode(done.stdout).split("\0")) - {""}

    return listed


def made(root: Path, files: dict[str, bytes]) -> None:
    for path, data in files.items():
        at = root / path
        if not any(parent.is_file() for parent in at.parents) and not at.is_dir():
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(data)


def walked(root: Path, directory: str = "", ignored: Ignored = Ignored()) -> set[str]:  # noqa: B008 - it cannot change
    own = root / directory / ".gitignore"
    if own.is_file():
        ignored = ignored.with_rules(Rules.parse(own.read_bytes(), directory))
    found: set[str] = set()
    for entry in os.scandir(root / directory):
        path = f"{directory}/{entry.name}" if directory else entry.name
        if ignored.matches(path, entry.is_dir(follow_symlinks=False)):
            continue
        found |= walked(root, path, ignored) if entry.is_dir(follow_symlinks=False) else {path}
    return found


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files=st.lists(paths, min_size=1, max_size=15),
    outer=ignore_files,
    inner=st.dictionaries(st.integers(0, 30), ignore_files, max_size=4),
)
def test_a_walk_finds_what_git_lists(git, files, outer, inner):
    directories = sorted({path.rpartition("/")[0] for path in files} - {""})
    nested = {f"{directories[at % len(directories)]}/.gitignore": data for at, data in inner.items() if directories}

    with tempfile.TemporaryDirectory() as made_up:
        root = Path(made_up)
        made(root, {**dict.fromkeys(files, b""), ".gitignore": outer, **nested})

        assert walked(root) == git(root)


@pytest.mark.parametrize(
    "name",
    ["alnum", "alpha", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper", "xdigit"],
)
def test_a_class_has_the_characters_that_git_puts_in_it(git, tmp_path, name):
    most = 256 if sys.platform == "linux" else 128
    files = {os.fsdecode(b"x" + bytes([byte])): b"" for byte in range(1, most) if byte != ord("/")}
    made(tmp_path, {**files, ".gitignore": f"x[[:{name}:]]".encode()})

    assert walked(tmp_path) == git(tmp_path)
