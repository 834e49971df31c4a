"""The address of a scheduler of machines: `temporal://HOST:PORT/NAMESPACE`."""

from typing import NamedTuple
from urllib.parse import urlsplit

from detent.errors import Invalid, Refused

SCHEME, PORT, NAMESPACE = "temporal", 7233, "default"
_WAY_OUT = "give temporal://HOST:7233/NAMESPACE"


class Address(NamedTuple):
    host: str
    port: int
    namespace: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}://{host}:{self.port}/{self.namespace}"

    @property
    def target(self) -> str:
        """As the client of the scheduler wants it."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    try:
        parts = urlsplit(text)
        port = parts.port or PORT
    except ValueError as error:
        raise Invalid(f"{text!r} is no address of Temporal: {error}", way_out=_WAY_OUT) from error
    namespace = parts.path.strip("/") or NAMESPACE
    if parts.scheme != SCHEME or not parts.hostname or "/" in namespace:
        raise Invalid(f"{text!r} is no address of Temporal", way_out=_WAY_OUT)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise Refused(
            "an address of Temporal holds no secrets and no options",
            way_out="set TEMPORAL_API_KEY, TEMPORAL_TLS_… or a profile of Temporal's own configuration",
        )
    return Address(parts.hostname, port, namespace)
