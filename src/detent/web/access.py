"""Access to the server: the checks of Host, Origin and fetch metadata, and the headers of every answer.

A page of another site can send requests to localhost, and another name can lead to it. Neither passes here. Nothing is
kept in a cookie: cookies ignore ports, so every other program on localhost would get them.
"""

from collections.abc import Mapping

import msgspec

from detent.errors import DetentError

#: Size of the body of a request, of all its headers together, and of its path with the query.
MAX_BODY, MAX_HEADERS, MAX_TARGET = 1024 * 1024, 16 * 1024, 8 * 1024
#: Methods that change nothing.
READING = ("GET", "HEAD")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Forbidden(DetentError):
    """A request that does not come from the page of this server."""

    kind = "forbidden"


class Unauthorized(DetentError):
    """A request without a token that is valid now."""

    kind = "unauthorized"


class ReadOnly(DetentError):
    """A request to change something, by a page that only reads."""

    kind = "read_only"


class TooLarge(DetentError):
    """A request beyond the limits."""

    kind = "too_large"


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The one address of this server."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The value of the Host header; the port of the scheme is left out, as browsers do."""
        usual = {"http": 80, "https": 443}[self.scheme]
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == usual else f"{name}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}"


def check_request(origin: Origin, method: str, path: str, headers: Mapping[str, str]) -> None:
    """Refuse a request that the page of this server cannot have made. Names of headers are in lower case."""
    host = headers.get("host", "")
    if host.lower() != origin.authority:
        raise Forbidden(f"the Host {host[:80]!r} is not {origin.authority}", way_out=f"open {origin}")
    sent = headers.get("origin")
    if method in READING:
        _check_site(headers, may_open=not path.startswith("/api/"))
        if sent is not None and sent != str(origin):
            raise Forbidden(f"the Origin {sent[:80]!r} is not {origin}")
        return
    if sent != str(origin):
        what = "no Origin" if sent is None else f"the Origin {sent[:80]!r}"
        raise Forbidden(f"a change needs the Origin {origin}, and this request has {what}")
    _check_site(headers, may_open=False)


def _check_site(headers: Mapping[str, str], *, may_open: bool) -> None:
    """Fetch metadata: a browser says which page a request comes from. Other programs do not send it.

    `may_open`: a person may open the address itself, by typing it or by following a link.
    """
    site = headers.get("sec-fetch-site")
    if site is None or site == "same-origin" or (site == "none" and may_open):
        return
    is_opened = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if not (may_open and is_opened):
        raise Forbidden(f"the request comes from another site (Sec-Fetch-Site: {site[:40]})")
