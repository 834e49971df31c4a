"""The address of a database: a URL of libpq without a password. Needs no driver, so that settings can be checked."""

from urllib.parse import parse_qs, urlsplit

from detent.errors import Invalid

SCHEMES = ("postgresql", "postgres")
#: Parameters of libpq that are secrets.
_SECRET = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_WAY_OUT = (
    "leave it out of the URL: libpq reads ~/.pgpass, the file in PGPASSFILE, PGPASSWORD, or a service "
    "(postgresql:///?service=NAME with ~/.pg_service.conf)"
)


def is_address(text: str) -> bool:
    return text.partition("://")[0] in SCHEMES


def check_address(url: str) -> str:
    """The URL, if it is one of a database and holds no secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        password, query = parts.password, parse_qs(parts.query)
    except ValueError as error:
        raise Invalid(f"the URL of the store cannot be read: {error}") from error
    if parts.scheme not in SCHEMES:
        raise Invalid(f"{described(url)} is no URL of a database", way_out="write postgresql://USER@HOST:PORT/DATABASE")
    secrets = [name for name in _SECRET if name in query]
    if password is not None or secrets:
        raise Invalid(f"the URL of the store {described(url)} holds a password", way_out=_WAY_OUT)
    return url


def described(url: str) -> str:
    """The URL for people: without a password and without parameters."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    scheme = f"{parts.scheme}://" if parts.scheme else ""
    return f"{scheme}{f'{user}@' if user else ''}{host}{parts.path}"
