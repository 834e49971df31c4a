"""Tokens of the page. A one-time token opens a page; it is exchanged for the token of a page session.

The file in the user's state directory holds hashes only, and page sessions outlast the server that made them. A
program that may write that file may make a token: docs/page.md says what that means for `attended`.
"""

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec.structs import replace

from detent.store import disk
from detent.store.lock import exclusive
from detent.web.access import Unauthorized

#: Validity of a one-time token and of a page session.
LINK_FOR, SESSION_FOR = timedelta(minutes=5), timedelta(hours=12)
#: The most that are kept. The oldest make way.
MAX_LINKS, MAX_SESSIONS = 16, 64
_BYTES = 32
_WAIT_S = 10.0
LINK = "detent ui --link opens another page"
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The rights of a token's holder, and their end."""

    digest: str
    expires: _Moment
    #: An attended person opened the page.
    can_decide: bool = False
    #: The process and the terminal that it was opened from.
    opened: str = ""


class _Kept(msgspec.Struct, frozen=True, kw_only=True):
    links: tuple[Grant, ...] = ()
    sessions: tuple[Grant, ...] = ()


class Tokens:
    def __init__(self, directory: str, clock: Callable[[], datetime]) -> None:
        """`directory`: where the file is kept."""
        self._directory, self._path, self._clock = directory, os.path.join(directory, "tokens.json"), clock
        self._threads = threading.Lock()
        self._known: tuple[tuple[int, int, int], _Kept] | None = None

    def new_link(self, *, can_decide: bool, opened: str) -> str:
        """A one-time token."""
        token = secrets.token_urlsafe(_BYTES)
        grant = Grant(
            digest=_digest(token), expires=self._clock() + LINK_FOR, can_decide=can_decide, opened=opened[:1000]
        )
        with self._changing() as kept:
            self._put(replace(kept, links=(*kept.links, grant)[-MAX_LINKS:]))
        return token

    def exchange(self, token: str) -> tuple[str, Grant]:
        """The token of a page session for a one-time token, which is void from then on."""
        digest, now = _digest(token), self._clock()
        with self._changing() as kept:
            link = next((link for link in kept.links if link.digest == digest and link.expires > now), None)
            if link is None:
                raise Unauthorized("this link was used before, is unknown, or is older than 5 minutes", way_out=LINK)
            fresh = secrets.token_urlsafe(_BYTES)
            grant = replace(link, digest=_digest(fresh), expires=now + SESSION_FOR)
            links = tuple(other for other in kept.links if other is not link)
            self._put(_Kept(links=links, sessions=(*kept.sessions, grant)[-MAX_SESSIONS:]))
        return fresh, grant

    def grant(self, token: str) -> Grant:
        """The rights of a page session's token; `Unauthorized` if it is not valid."""
        if not token:
            raise Unauthorized("the request has no token", way_out=LINK)
        digest, now = _digest(token), self._clock()
        for grant in self._read().sessions:
            if grant.digest == digest and grant.expires > now:
                return grant
        raise Unauthorized("the token is unknown or has expired", way_out=LINK)

    @contextmanager
    def _changing(self) -> Iterator[_Kept]:
        with disk.failing_as("write", self._path):
            disk.make_directory(self._directory)
            fd = disk.open_lock(self._path + ".lock")
        try:
            with exclusive(fd, self._threads, wait_s=_WAIT_S, what="the tokens of the page"):
                kept, now = self._read(), self._clock()
                yield _Kept(
                    links=tuple(link for link in kept.links if link.expires > now),
                    sessions=tuple(session for session in kept.sessions if session.expires > now),
                )
        finally:
            os.close(fd)

    def _put(self, kept: _Kept) -> None:
        with disk.failing_as("write", self._path):
            disk.replace(self._path, msgspec.json.encode(kept), durable=True)

    def _read(self) -> _Kept:
        """A file that is missing or cannot be read grants nothing."""
        try:
            status = os.stat(self._path)
            mark = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._known is None or self._known[0] != mark:
                self._known = mark, msgspec.json.decode(disk.read_file(self._path), type=_Kept)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return _Kept()
        return self._known[1]


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
