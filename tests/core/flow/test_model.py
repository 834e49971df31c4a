"""Random commands against a model that knows nothing of how they are expanded: each piece says what it stands for."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from detent.core.flow.expansion import expand
from tests.support.hostile import VALUES, bash, canaries, encoded, scope_of

#: Source text and what a shell makes of it, in each kind of quotes.
BARE = [("a", "a"), ("\\ ", " "), ("\\'", "'"), ('\\"', '"'), ("\\\\", "\\"), ("=", "="), ("\\;", ";"), ("[z]", "[z]")]
BARE += [("\\[v]", "[v]"), ("\\[w.x]", "[w.x]"), ("''", ""), ('""', ""), ("[a-c]", "[a-c]"), ("\\$", "$"), ("-", "-")]
SINGLE = [
    ("a", "a"),
    (" ", " "),
    ('"', '"'),
    ("$", "$"),
    ("`", "`"),
    ("\\\\", "\\\\"),
    ("\n", "\n"),
    ("$(", "$("),
    ("#", "#"),
]
SINGLE += [("\\[v]", "[v]"), ("[z]", "[z]"), (")", ")"), (";", ";"), ("${x}", "${x}"), ("[[ ]]", "[[ ]]"), ("é", "é")]
DOUBLE = [
    ("a", "a"),
    (" ", " "),
    ("'", "'"),
    ('\\"', '"'),
    ("\\$", "$"),
    ("\\`", "`"),
    ("\\\\", "\\"),
    ("\n", "\n"),
    ("(", "("),
]
DOUBLE += [
    ("\\[v]", "[v]"),
    ("[z]", "[z]"),
    (")", ")"),
    (";", ";"),
    ("${x}", ""),
    ("#", "#"),
    ("\\n", "\\n"),
]
ANSI = [
    ("a", "a"),
    (" ", " "),
    ("\\'", "'"),
    ('"', '"'),
    ("$", "$"),
    ("`", "`"),
    ("\\\\", "\\"),
    ("\\n", "\n"),
    ("\\[v]", "[v]"),
]
IN_BACKQUOTES = [("a", "a"), ("b", "b"), ("=", "=")]

values = st.text(max_size=12).filter(lambda text: "\0" not in text and text.isprintable()) | st.sampled_from(
    [value for value in VALUES.values() if len(value) < 300]
)


@st.composite
def pieces(draw, literals, given_values, more=()):
    """Source and meaning of literals and references in one kind of quotes."""
    references = [(f"[{name}]", value) for name, value in given_values.items()]
    options = [st.sampled_from(literals), st.sampled_from(references), *more]
    chosen = draw(st.lists(st.one_of(options), max_size=5))
    return "".join(source for source, _ in chosen), "".join(meaning for _, meaning in chosen)


@st.composite
def words(draw, given_values, depth=0):
    """Source and meaning of one word."""
    source, meaning = "", ""
    for kind in draw(
        st.lists(st.sampled_from(["bare", "single", "double", "ansi", "nested", "backquoted"]), max_size=3)
    ):
        if kind == "bare":
            text, means = draw(pieces(BARE, given_values))
        elif kind == "single":
            text, means = draw(pieces(SINGLE, given_values))
            text = f"'{text}'"
        elif kind == "ansi":
            text, means = draw(pieces(ANSI, given_values))
            text = f"$'{text}'"
        elif kind == "double" or depth == 2:
            text, means = draw(pieces(DOUBLE, given_values))
            text = f'"{text}"'
        elif kind == "nested":
            before, meant = draw(pieces(DOUBLE, given_values))
            inner, means = draw(words(given_values, depth + 1))
            text, means = f"\"{before}$(printf '%s.' {inner or 'x'})\"", f"{meant}{means if inner else 'x'}."
        else:
            inner, means = draw(pieces(IN_BACKQUOTES, given_values))
            text, means = f'"`printf "%s." "{inner}"`"', f"{means}."
        source, meaning = source + text, meaning + means
    return source, meaning


@st.composite
def commands(draw):
    """Values, a command, and the arguments that it must give to its program."""
    given_values = {"v": draw(values), "w": draw(values)}
    items = draw(st.lists(values, max_size=3))
    source, meant = [], []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.integers(0, 5)) == 0:
            source.append("[focus_paths]")
            meant += items
        else:
            text, means = draw(words(given_values))
            if text:
                source.append(text)
                meant.append(means)
    return given_values, items, source, meant


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(commands())
def test_a_program_gets_the_arguments_that_were_meant(tmp_path, drawn):
    given_values, items, source, meant = drawn
    scope = scope_of(given_values, focus_paths=items)
    made = expand(f"printf '%s\\0' {' '.join(source)} end", scope)

    printed, errors = bash(made.command, made.env, tmp_path)

    assert printed == b"".join(encoded(text) + b"\0" for text in [*meant, "end"]), (made, errors)
    assert canaries(tmp_path) == []
