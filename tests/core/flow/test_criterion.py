import re

import pytest

from detent.core.flow.criterion import MAX_PATTERN, MAX_SEARCHED, Criterion, compiled, judge, parse
from detent.errors import Invalid


def passes(criteria, *, exit_code=0, output="", files=()):
    return judge(criteria, exit_code=exit_code, output=output, exists=lambda path: path in files).passed


@pytest.mark.parametrize(
    ("text", "criterion"),
    [
        ("exit_code:0", Criterion(kind="exit_code", argument="0")),
        ("exit_code: !=2", Criterion(kind="exit_code", argument="!=2")),
        ("contains: a:b", Criterion(kind="contains", argument=" a:b")),
        ("not_contains:x", Criterion(kind="not_contains", argument="x")),
        ("matches:^a+$", Criterion(kind="matches", argument="^a+$")),
        ("non_empty", Criterion(kind="non_empty")),
        ("file_exists:a/b c", Criterion(kind="file_exists", argument="a/b c")),
    ],
)
def test_a_criterion_is_read(text, criterion):
    assert parse(text) == criterion


@pytest.mark.parametrize(
    "text",
    [
        *("", "works", "exit_code", "exit_code:", "exit_code:x", "exit_code:-1", "exit_code:256", "exit_code:=0"),
        *("exit_code:!0", "EXIT_CODE:0", "contains:", "contains", "matches:", "matches:(", "matches:[", "matches:a**"),
        *("matches:(a+)+", "matches:((ab*)c)*", "matches:(a{2,})+", "matches:a*+", "matches:(?>a)", "matches:a{1,}+"),
        *("matches:(\\w+\\s?)*$", "matches:([a-z]+)*", "matches:(a|b*)+", "matches:x?+", "matches:(?P<n>a+)+"),
        *("non_empty:x", "file_exists:", "file_exists: ", "matches:" + "a" * (MAX_PATTERN + 1)),
    ],
)
def test_what_is_no_criterion_is_refused(text):
    with pytest.raises(Invalid):
        parse(text)


@pytest.mark.parametrize(
    "pattern",
    [
        "a+b*",
        "(ab)+",
        "(a|b)*c",
        "[+*]+",
        "[]a+]+",
        "[^]+]*x",
        "\\(a+\\)+",
        "(a+)?",
        "(a+)b",
        "(?:x)+",
        "a+?",
        "(?i)a+",
    ],
)
def test_ordinary_patterns_are_used(pattern):
    assert isinstance(compiled(pattern), re.Pattern)


@pytest.mark.parametrize(
    ("criteria", "given", "passed"),
    [
        (None, {}, True),
        (None, {"exit_code": 1}, False),
        ([], {"exit_code": 1}, False),
        ("exit_code:3", {"exit_code": 3}, True),
        ("exit_code:!=3", {"exit_code": 3}, False),
        ("exit_code:!=3", {"exit_code": 0}, True),
        ("contains:ok", {"output": "it is ok", "exit_code": 1}, True),
        ("contains:ok", {"output": "OK"}, False),
        ("not_contains:error", {"output": "fine"}, True),
        ("not_contains:error", {"output": "an error"}, False),
        ("matches:^b$", {"output": "a\nb\nc"}, True),
        ("matches:^b$", {"output": "ab"}, False),
        ("non_empty", {"output": " \n"}, False),
        ("non_empty", {"output": "x"}, True),
        ("file_exists:a", {"files": ("a",)}, True),
        ("file_exists:a", {"files": ("b",)}, False),
        (["exit_code:0", "non_empty"], {"output": "x"}, True),
        (["exit_code:0", "non_empty"], {"output": ""}, False),
        (["non_empty", "exit_code:0"], {"output": "x", "exit_code": 2}, False),
    ],
)
def test_the_judgement(criteria, given, passed):
    assert passes(criteria, **given) is passed


@pytest.mark.parametrize("criteria", [None, "non_empty", "exit_code:!=0", ["contains:x"]])
def test_what_did_not_finish_never_passes(criteria):
    assert not passes(criteria, exit_code=None, output="x")


def test_a_reason_is_always_given():
    for output in ("x", ""):
        assert judge("non_empty", exit_code=0, output=output, exists=lambda _: False).reason


def test_only_the_beginning_of_a_long_output_is_searched_and_that_is_said():
    judged = judge("matches:end", exit_code=0, output="x" * MAX_SEARCHED + "end", exists=lambda _: False)

    assert not judged.passed
    assert str(MAX_SEARCHED) in judged.reason


def test_a_pattern_that_could_take_for_ever_is_refused():
    with pytest.raises(Invalid):
        judge("matches:^(a+)+$", exit_code=0, output="a" * 40 + "b", exists=lambda _: False)
