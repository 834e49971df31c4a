"""JSON-RPC over lines, and the two eras of the protocol.

A client of the handshake era sends `initialize` first. A client of the stateless era sends its version and capabilities
with every request, in `_meta`; each result then says its type and its server. A request is judged by what it carries,
so that nothing depends on the requests before it.
"""

import os
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import msgspec

from detent import __version__

#: Versions of the handshake era, newest first.
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
#: Versions of the stateless era.
STATELESS = ("2026-07-28",)
SERVER = {"name": "detent", "title": "Detent", "version": __version__}
#: Bytes of one message. A longer one is answered with an error, and the next one is read.
MAX_MESSAGE = 1024 * 1024
#: How long a client may keep a list, in milliseconds. Lists change with the version of the server only.
LIST_TTL_MS = 3_600_000
_CHUNK = 65536
_PREFIX = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT = f"{_PREFIX}protocolVersion", f"{_PREFIX}clientCapabilities", f"{_PREFIX}clientInfo"


class Code(IntEnum):
    PARSE = -32700
    INVALID = -32600
    METHOD = -32601
    PARAMS = -32602
    INTERNAL = -32603
    #: The calls in progress have reached their limit.
    BUSY = -32000
    NO_RESOURCE = -32002
    VERSION = -32022


class Fault(Exception):
    """An answer that is an error of the protocol: the request could not be understood, or names nothing."""

    def __init__(self, code: Code, message: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data

    def as_record(self) -> dict[str, Any]:
        return {"code": int(self.code), "message": self.message} | ({"data": self.data} if self.data else {})


class Message(NamedTuple):
    """A request, or a notification if it has no id."""

    method: str
    params: dict[str, Any]
    id: str | int | None = None

    @property
    def meta(self) -> dict[str, Any]:
        meta = self.params.get("_meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def is_stateless(self) -> bool:
        return _VERSION in self.meta

    @property
    def client(self) -> str:
        """The name that the client gives itself; it is shown, and decides nothing."""
        info = self.meta.get(_CLIENT, self.params.get("clientInfo"))
        name = info.get("name") if isinstance(info, dict) else None
        return name if isinstance(name, str) else ""

    def check_version(self) -> None:
        """Refuse a request of the stateless era in another version, or without capabilities."""
        requested = self.meta[_VERSION]
        if requested not in STATELESS:
            supported = [*STATELESS, *HANDSHAKE]
            raise Fault(
                Code.VERSION,
                f"version {str(requested)[:40]} is not supported; these are: {', '.join(supported)}",
                {"supported": supported, "requested": str(requested)[:40]},
            )
        if not isinstance(self.meta.get(_CAPABILITIES), dict):
            raise Fault(Code.PARAMS, f"_meta needs {_CAPABILITIES}, an object")


class TooLong(NamedTuple):
    """A message beyond the limit, which was skipped."""

    bytes: int


def lines(descriptor: int) -> Iterator[bytes | TooLong]:
    """The lines of a pipe until its end, without empty ones. Of a line that is too long nothing is kept."""
    kept, size = bytearray(), 0
    while chunk := os.read(descriptor, _CHUNK):
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            size += len(part)
            kept += part if size <= MAX_MESSAGE else b""
            if size > MAX_MESSAGE:
                yield TooLong(size)
            elif kept.strip():
                yield bytes(kept)
            kept, size = bytearray(), 0
        size += len(rest)
        kept += rest if size <= MAX_MESSAGE else b""


def read_message(line: bytes) -> Message | None:
    """The message of a line; None for the answer to a request, which this server never makes. Raises `Fault`."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Fault(Code.PARSE, f"this is not JSON: {error}"[:300]) from error
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise Fault(Code.INVALID, 'a message is one JSON object with "jsonrpc": "2.0"; batches are not supported')
    if "method" not in value and ("result" in value or "error" in value):
        return None
    identity, method, params = value.get("id"), value.get("method"), value.get("params", {})
    if "id" in value and (isinstance(identity, bool) or not isinstance(identity, str | int)):
        raise Fault(Code.INVALID, "the id of a request is a text or a whole number")
    if not isinstance(method, str) or not isinstance(params, dict):
        raise Fault(Code.INVALID, "a message has a method, which is a text, and params, which is an object")
    return Message(method, params, identity)


def identity_of(line: bytes) -> str | int | None:
    """The id in a line that is no valid message, so that the client can tell which request failed."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    identity = value.get("id") if isinstance(value, dict) else None
    return identity if isinstance(identity, str | int) and not isinstance(identity, bool) else None


def in_era(message: Message, result: dict[str, Any], *, is_list: bool = False, is_read: bool = False) -> dict[str, Any]:
    """The result in the form of the era of its request."""
    if not message.is_stateless:
        return result
    shaped = {"resultType": "complete", **result, "_meta": {f"{_PREFIX}serverInfo": SERVER}}
    if is_list or is_read:
        shaped |= {"ttlMs": LIST_TTL_MS if is_list else 0, "cacheScope": "private"}
    return shaped


def negotiated(requested: object) -> str:
    """The version of a handshake: the requested one if it is known, else the newest."""
    return requested if isinstance(requested, str) and requested in HANDSHAKE else HANDSHAKE[0]
