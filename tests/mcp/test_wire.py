"""Messages: lines of a pipe, and what is no message."""

import os

import pytest

from detent.mcp import wire
from detent.mcp.wire import Code, Fault, TooLong, lines, negotiated, read_message


def piped(*chunks: bytes) -> list[bytes | TooLong]:
    ours, theirs = os.pipe()
    for chunk in chunks:
        os.write(theirs, chunk)
    os.close(theirs)
    try:
        return list(lines(ours))
    finally:
        os.close(ours)


def test_a_line_is_a_message_however_it_arrives():
    assert piped(b'{"a"', b":1}\n\n  \n{", b"}\nunfinished") == [b'{"a":1}', b"{}"]


def test_a_line_beyond_the_limit_is_skipped_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(wire, "MAX_MESSAGE", 8)

    assert piped(b"x" * 5, b"y" * 5 + b"\n{}\n12345678\n123456789\n{}\n") == [
        TooLong(10),
        b"{}",
        b"12345678",
        TooLong(9),
        b"{}",
    ]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"junk", Code.PARSE),
        (b"\xff", Code.PARSE),
        (b"[" * 100_000, Code.PARSE),
        (b"[]", Code.INVALID),
        (b'{"id":1,"method":"ping"}', Code.INVALID),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', Code.INVALID),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', Code.INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', Code.INVALID),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', Code.INVALID),
        (b'{"jsonrpc":"2.0","id":1}', Code.INVALID),
    ],
)
def test_what_is_no_message_is_refused_with_its_code(line, code):
    with pytest.raises(Fault) as refused:
        read_message(line)
    assert refused.value.code is code


def test_an_answer_of_the_client_is_no_request():
    assert read_message(b'{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}') is None


@pytest.mark.parametrize(
    ("requested", "agreed"),
    [("2025-11-25", "2025-11-25"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25"), (None, "2025-11-25")],
)
def test_a_handshake_agrees_on_a_known_version(requested, agreed):
    assert negotiated(requested) == agreed
