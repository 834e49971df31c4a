import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.guard_corpus import CALLS, CASES, DENIED, HARMLESS, HOME, NOTICED, ROOT
from tests.support.guarding import denial

PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")


def denied(command, cwd=ROOT):
    return denial(command, cwd, ROOT, home=HOME)


@pytest.mark.parametrize("case", DENIED, ids=lambda case: case.note)
def test_a_command_that_could_write_a_guarded_file_is_denied(case):
    assert denied(case.command, case.cwd) is not None


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case.note)
def test_a_harmless_command_is_not(case):
    assert denied(case.command, case.cwd) is None


@pytest.mark.parametrize("case", NOTICED, ids=lambda case: case.note)
def test_a_command_that_shows_nothing_is_left_to_drift_detection(case):
    assert denied(case.command) is None


def test_the_corpus_is_large_and_says_each_thing_once():
    assert len(DENIED) + len(NOTICED) + len(HARMLESS) + len(CALLS) >= 272
    assert len(HARMLESS) >= 100
    assert len({case.command for case in CASES}) == len(CASES)
    assert len({case.note for case in CASES}) == len(CASES)
    assert len({case.note for case in NOTICED} | {call.note for call in CALLS}) == len(NOTICED) + len(CALLS)


@pytest.mark.parametrize("case", DENIED, ids=lambda case: case.note)
def test_a_command_that_is_only_spoken_of_is_not(case):
    spoken = shlex.quote(case.command)

    for command in (f"echo {spoken}", f"git commit -m {spoken}", f"grep -r {spoken} docs", f"x={spoken}"):
        assert denied(command) is None
    if "\n" not in case.command:
        assert denied(f"ls # {case.command}") is None
    assert denied(f"cat > notes.md <<'END-OF-NOTES'\n{case.command}\nEND-OF-NOTES\n") is None


@given(st.data())
def test_quoting_a_word_of_a_harmless_command_creates_no_hit(data):
    case = data.draw(st.sampled_from([case for case in HARMLESS if not set(case.command) & set("'\"\\`#\n$")]))
    words = case.command.split(" ")
    plain = [at for at, word in enumerate(words) if word and set(word) <= PLAIN]
    at = data.draw(st.sampled_from(plain))
    quote = data.draw(st.sampled_from(["'{}'", '"{}"', "$'{}'", "''{}", '{}""']))

    words[at] = quote.format(words[at])

    assert denied(" ".join(words), case.cwd) is None


@given(st.text(max_size=80), st.sampled_from(["echo {}", "cat {} > /tmp/x", "git log --grep {}", "[ -n {} ] && ls"]))
def test_a_quoted_text_is_never_a_command(text, around):
    assert denied(around.format(shlex.quote(text))) is None


@given(st.sampled_from(DENIED), st.sampled_from(HARMLESS), st.sampled_from([";", "&&", "\n"]))
def test_a_write_is_seen_whatever_harmless_command_stands_behind_it(case, other, join):
    if case.command.endswith("&") or "<<" in case.command:
        join = "\n"

    assert denied(case.command + join + other.command, case.cwd) is not None
