import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.path_text import from_text, to_text
from detent.errors import Invalid

paths = (st.binary(max_size=40) | st.text(alphabet="ax89\\é/ \n", max_size=20).map(str.encode)).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)


@given(paths)
def test_every_path_comes_back_from_its_text(path):
    text = to_text(path)

    assert from_text(text) == path
    assert json.loads(json.dumps(text).encode("utf-8")) == text
    text.encode("utf-8")


@given(st.text(alphabet="ax89\\é", max_size=12))
def test_a_text_has_one_path_and_a_path_one_text(text):
    try:
        path = from_text(text)
    except Invalid:
        return

    assert to_text(path) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"src/a b.py", "src/a b.py"),
        ("größe\n.txt".encode(), "größe\n.txt"),
        (b"a\\b", "a\\\\b"),
        (b"caf\xe9", "caf\\xe9"),
        (b"\\xe9", "\\\\xe9"),
        (b"\\\xe9", "\\\\\\xe9"),
    ],
)
def test_what_people_see(raw, text):
    assert to_text(raw.decode("utf-8", "surrogateescape")) == text


@pytest.mark.parametrize("text", ["\\", "a\\b", "\\x41", "\\xE9", "\\x8", "\\\\\\"])
def test_a_text_that_no_path_has_is_refused(text):
    with pytest.raises(Invalid, match="not the text of a path"):
        from_text(text)
