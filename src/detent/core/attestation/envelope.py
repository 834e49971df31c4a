"""The DSSE envelope of a statement: the bytes that are signed, and its JSON."""

from base64 import b64encode
from typing import Any

import msgspec

PAYLOAD_TYPE = "application/vnd.in-toto+json"


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    keyid: str
    sig: bytes


def payload(statement: dict[str, Any]) -> bytes:
    """The statement as bytes. The same statement makes the same bytes."""
    return msgspec.json.encode(statement, order="sorted")


def signed_bytes(data: bytes) -> bytes:
    """The bytes that a key signs: type and payload, each with its length."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(data), data)


def envelope(data: bytes, signatures: tuple[Signature, ...]) -> dict[str, Any]:
    return {
        "payload": b64encode(data).decode(),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": each.keyid, "sig": b64encode(each.sig).decode()} for each in signatures],
    }
