import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.guard_corpus import CASES, HARMLESS, HOME, ROOT, WRITES
from tests.support.guarding import command_hits

PLAIN = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-")


def hits(command, cwd=ROOT):
    return command_hits(command, cwd, ROOT, home=HOME)


@pytest.mark.parametrize("case", [case for case in WRITES if case.seen], ids=lambda case: case.note)
def test_a_command_that_writes_a_guarded_file_is_seen_with_its_kind(case):
    found = hits(case.command, case.cwd)

    assert case.kind in [kind for _, _, kind in found], found


@pytest.mark.parametrize("case", HARMLESS, ids=lambda case: case.note)
def test_a_harmless_command_hits_nothing(case):
    assert hits(case.command, case.cwd) == []


def test_the_parser_misses_only_what_is_left_to_drift_detection():
    missed = [case.command for case in WRITES if not hits(case.command, case.cwd)]

    assert missed == [case.command for case in WRITES if not case.seen]
    assert len(missed) <= 14


def test_the_corpus_is_large_and_says_each_thing_once():
    assert len(WRITES) >= 75
    assert len(HARMLESS) >= 75
    assert len({case.command for case in CASES}) == len(CASES)
    assert len({case.note for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.note)
def test_a_command_that_is_only_spoken_of_hits_nothing(case):
    spoken = shlex.quote(case.command)

    for command in (f"echo {spoken}", f"git commit -m {spoken}", f"grep -r {spoken} docs", f"x={spoken}"):
        assert hits(command) == []
    if "\n" not in case.command:
        assert hits(f"ls # {case.command}") == []
    assert hits(f"cat > notes.md <<'END-OF-NOTES'\n{case.command}\nEND-OF-NOTES\n") == []


@given(st.data())
def test_quoting_a_word_of_a_harmless_command_creates_no_hit(data):
    case = data.draw(st.sampled_from([case for case in HARMLESS if not set(case.command) & set("'\"\\`#\n$")]))
    words = case.command.split(" ")
    plain = [at for at, word in enumerate(words) if word and set(word) <= PLAIN]
    at = data.draw(st.sampled_from(plain))
    quote = data.draw(st.sampled_from(["'{}'", '"{}"', "$'{}'", "''{}", '{}""']))

    words[at] = quote.format(words[at])

    assert hits(" ".join(words), case.cwd) == []


@given(st.text(max_size=80), st.sampled_from(["echo {}", "cat {} > /tmp/x", "git log --grep {}", "[ -n {} ] && ls"]))
def test_a_quoted_text_is_never_a_command(text, around):
    assert hits(around.format(shlex.quote(text))) == []


@given(
    st.sampled_from([case for case in WRITES if case.seen]),
    st.sampled_from(HARMLESS),
    st.sampled_from([";", "&&", "\n"]),
)
def test_a_write_is_seen_whatever_harmless_command_stands_behind_it(case, other, join):
    alone = hits(case.command, case.cwd)
    if case.command.endswith("&") or "<<" in case.command:
        join = "\n"

    assert hits(case.command + join + other.command, case.cwd)[: len(alone)] == alone
