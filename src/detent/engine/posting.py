"""Sends one HTTP request with the standard library: no redirects, no proxy, a limit on time and on the answer."""

import http.client
import os
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from detent.errors import Invalid

#: Bytes of an answer that are read.
_MAX_ANSWER = 64 * 1024
#: Answers after which the same request may succeed later.
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


class Address(NamedTuple):
    scheme: str
    host: str
    port: int
    path: str

    def below(self, path: str) -> "Address":
        return self._replace(path=self.path.rstrip("/") + path)


class Answer(NamedTuple):
    """The result of a request: `problem` is empty if the receiver took it."""

    problem: str = ""
    #: Whether it may succeed later.
    is_passing: bool = False


def address(url: str, setting: str) -> Address:
    """The parts of a URL; `Invalid` with the name of the setting if it cannot be used."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise Invalid(f"{setting}: {url[:200]!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise Invalid(
            f"{setting}: {url[:200]!r} is no address",
            way_out="name it as http://HOST:PORT or https://HOST, without a password",
        )
    query = f"?{parts.query}" if parts.query else ""
    default = 443 if parts.scheme == "https" else 80
    return Address(parts.scheme, parts.hostname, port or default, (parts.path or "/") + query)


def expanded(headers: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Headers in which `$NAME` is the value of a variable."""
    return {name: environment.get(value[1:], "") if value.startswith("$") else value for name, value in headers.items()}


def post(to: Address, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Answer:
    """Send the body and wait for the status of the answer."""
    kind = http.client.HTTPSConnection if to.scheme == "https" else http.client.HTTPConnection
    connection = kind(to.host, to.port, timeout=timeout_s)
    try:
        connection.request("POST", to.path, body, {"User-Agent": "detent", **headers})
        answer = connection.getresponse()
        answer.read(_MAX_ANSWER)
    except (OSError, http.client.HTTPException, ValueError) as error:
        return Answer(str(error) or type(error).__name__, is_passing=True)
    finally:
        connection.close()
    if answer.status < 300:
        return Answer()
    return Answer(f"status {answer.status}", is_passing=answer.status in _PASSING)


def secret_of(variable: str | None) -> bytes | None:
    """The secret in a variable of the environment; None if none is set."""
    value = os.environ.get(variable, "") if variable else ""
    return value.encode() or None
