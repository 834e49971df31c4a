"""What a person signs is one text, whoever writes it."""

from datetime import UTC, datetime

import pytest

from detent.core.decision.statement import Statement, challenge, read_statement, signed_bytes
from detent.errors import Invalid

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
STATEMENT = Statement(project="p", session="WFS-a", decision="approve", reason="füg ein", at=NOON, nonce="00" * 16)


def test_the_signed_text_is_canonical():
    text = signed_bytes(STATEMENT).decode()

    assert text.startswith('{"at":"2026-01-01T12:00:00Z","attempt":0,"choice":"","decision":"approve","format":')
    assert "füg ein" in text
    assert ": " not in text
    assert read_statement(text) == STATEMENT


def test_the_challenge_is_the_digest_of_the_signed_text():
    assert len(challenge(STATEMENT)) == 32
    changed = read_statement(signed_bytes(STATEMENT).decode().replace("füg ein", "fug ein"))
    assert challenge(changed) != challenge(STATEMENT)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "terminal /dev/pts/1; detent < bash",
        '{"at":1}',
        signed_bytes(STATEMENT).decode() + " ",
        signed_bytes(STATEMENT).decode().replace('"attempt":0,', '"attempt":0,"attempt":0,'),
        signed_bytes(STATEMENT).decode().replace('{"at"', '{"aa":1,"at"'),
        signed_bytes(STATEMENT).decode().replace("detent-decision/1", "detent-decision/2"),
    ],
)
def test_no_other_text_is_a_statement(text):
    with pytest.raises(Invalid):
        read_statement(text)
