"""Edits of JSON text mean what they say and touch nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.clients.installing import json_text
from detent.errors import Invalid
from tests.support.installed_project import settings_texts


@given(settings_texts(), st.text(max_size=5), st.sampled_from([1, [], {"a": [1, {"b": "\n"}]}]))
def test_an_inserted_member_is_there_and_the_rest_means_the_same(text, key, value):
    text = text.decode()
    before = json_text.parse(text, "it")
    if key in before:
        return

    after = json_text.insert(text, (), value, key=key)

    assert json_text.parse(after, "it") == {**before, key: value}
    assert list(json_text.parse(after, "it")) == [*before, key]


@given(settings_texts(), st.text(max_size=5))
def test_removing_what_was_inserted_gives_the_same_text(text, key):
    text = text.decode()
    before = json_text.parse(text, "it")
    if key in before:
        return

    after = json_text.remove(json_text.insert(text, (), {"a": [1]}, key=key), (key,))

    assert after == text if before else json_text.parse(after, "it") == {}


@given(settings_texts(), st.data())
def test_removing_any_member_leaves_the_others(text, data):
    text = text.decode()
    before = json_text.parse(text, "it")
    if not before:
        return
    key = data.draw(st.sampled_from(sorted(before)))

    after = json_text.remove(text, (key,))

    assert json_text.parse(after, "it") == {k: v for k, v in before.items() if k != key}


def test_spelling_and_order_of_what_is_there_stay():
    text = '{\n    "z": 1.50e+1, "a": "\\u00e9",\n    "list": [1,2],\n    "empty": {}\n}'

    after = json_text.insert(text, ("list",), 3)
    after = json_text.insert(after, ("empty",), [1], key="k")

    assert after.splitlines() == [
        "{",
        '    "z": 1.50e+1, "a": "\\u00e9",',
        '    "list": [1,2, 3],',
        '    "empty": {',
        '        "k": [',
        "            1",
        "        ]",
        "    }",
        "}",
    ]


def test_other_line_ends_are_kept():
    text = '{\r\n  "a": []\r\n}\r\n'

    after = json_text.insert(json_text.insert(text, ("a",), {"b": 1}), (), [2], key="c")

    assert after.count("\n") == after.count("\r\n") == 10


def test_where_a_key_stands_twice_the_last_one_counts():
    text = '{"a": [1], "a": [2]}'

    assert json.loads(json_text.insert(text, ("a",), 3)) == {"a": [2, 3]}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1, // no\n}', "it has comments"),
        ('{"a": 1 /* no */}', "it has comments"),
        ('{"url": "http://x",}', "line 1"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[]", "not an object"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_not_a_plain_json_object_is_refused_with_the_reason(text, why):
    with pytest.raises(Invalid) as refusal:
        json_text.parse(text, "settings.json")

    assert why in refusal.value.message
    assert "settings.json" in refusal.value.message
