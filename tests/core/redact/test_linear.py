"""Redaction is linear in its input. The work is counted, so that a busy machine changes nothing.

The work of a search is the number of characters between its start and the end of what it found, or of the text. That
holds for patterns that give up after a bounded number of characters, which the first test checks by their structure.
"""

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]

import pytest

from detent.core.redact import MAX_PASSES, name, redact
from detent.core.redact.form import FORMS

#: Work on one character, over all patterns and passes; a text without secrets needs less than a tenth.
MAX_A_CHARACTER = MAX_PASSES * (len(FORMS) + 10)
_REPEATS = (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT)


def unbounded(parsed, *, inside=False):
    """The repeats without an upper limit that are inside of another repeat."""
    for operation, value in parsed:
        if operation in _REPEATS:
            is_unbounded = value[1] is sre.MAXREPEAT
            if is_unbounded and inside:
                yield str(value[2])
            yield from unbounded(value[2], inside=inside or is_unbounded)
        elif operation is sre.SUBPATTERN:
            yield from unbounded(value[3], inside=inside)
        elif operation is sre.BRANCH:
            for branch in value[1]:
                yield from unbounded(branch, inside=inside)
        elif operation in (sre.ASSERT, sre.ASSERT_NOT):
            yield from unbounded(value[1], inside=inside)


@pytest.mark.parametrize("form", [form for form in FORMS if form.kind != "private-key"], ids=lambda form: form.kind)
def test_no_pattern_repeats_without_limit_inside_of_a_repeat(form):
    assert list(unbounded(parser.parse(form.pattern.pattern, form.pattern.flags & re.IGNORECASE))) == []


class Counting:
    """A pattern that counts the characters it looks at."""

    def __init__(self, pattern, counted):
        self._pattern, self._counted = pattern, counted

    def __getattr__(self, method):
        def counting(*arguments):
            text = next(each for each in reversed(arguments[:2]) if isinstance(each, str))
            found = getattr(self._pattern, method)(*arguments)
            start = arguments[1] if len(arguments) > 1 and isinstance(arguments[1], int) else 0
            is_match = isinstance(found, re.Match)
            if method in ("match", "fullmatch"):
                self._counted.append(found.end() - start if is_match else 1)
            else:
                self._counted.append((found.end() if is_match else len(text)) - start)
            return found

        return counting


PIECES = {
    "plain": "some words that say nothing of interest at all ",
    "names": "password token secret api_key ",
    "assignments": "DB_PASS=hunter2hunter2\n",
    "unfinished": 'password="',
    "quotes": "'\"`",
    "keys cut off": "-----BEGIN RSA PRIVATE KEY-----\n",
    "URLs": "https://ada:",
    "addresses": "https://ada:b/c@d ",
    "cookies": "Cookie: a=",
    "commands": "mysql -u root curl ",
    "one word": "M",
    "dots": "a.b.",
    "redacted": "[redacted:",
    "elements": "<password>",
    "digits": "12345678:AA",
}


def work(text, monkeypatch):
    counted = []
    with monkeypatch.context() as patch:
        for form in FORMS:
            patch.setitem(form.__dict__, "pattern", Counting(form.pattern, counted))
        for pattern in ("_PAIR", "_BARE_REST", "_ELEMENT", "_TO_BLANK", "_NOTHING", "_CODE", "_LETTERS", "_ATTRIBUTE"):
            patch.setattr(name, pattern, Counting(getattr(name, pattern), counted))
        redact(text)
    return sum(counted)


@pytest.mark.parametrize("piece", PIECES)
def test_twice_the_text_is_twice_the_work(piece, monkeypatch):
    once, twice = (PIECES[piece] * (size // len(PIECES[piece])) for size in (20_000, 40_000))

    assert work(twice, monkeypatch) <= 2.2 * work(once, monkeypatch) + 1_000
    assert work(twice, monkeypatch) <= MAX_A_CHARACTER * len(twice)
