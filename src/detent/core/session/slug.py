"""Makes and checks session ids."""

import hashlib
import unicodedata
from collections.abc import Collection

from detent.errors import Invalid, NotFound

PREFIX = "WFS-"
MAX_ID = 50


def slugify(topic: str) -> str:
    """Lower-case ASCII words joined by dashes; a hash if the topic has none."""
    ascii_text = unicodedata.normalize("NFKD", topic).encode("ascii", "ignore").decode().lower()
    words = "".join(c if c.isalnum() else " " for c in ascii_text).split()
    return "-".join(words) or f"session-{hashlib.sha256(topic.encode('utf-8', 'replace')).hexdigest()[:8]}"


def session_id(topic: str, taken: Collection[str]) -> str:
    """A free id for `topic`, with `-002`, `-003`, … if the plain one is taken."""
    slug = slugify(topic)
    candidate = PREFIX + _fit(slug, MAX_ID - len(PREFIX))
    count = 1
    while candidate in taken:
        count += 1
        suffix = f"-{count:03d}"
        candidate = PREFIX + _fit(slug, MAX_ID - len(PREFIX) - len(suffix)) + suffix
    return candidate


def check_session_id(text: str) -> str:
    """The id that a person chose, with or without its prefix; `Invalid` if it cannot be one."""
    slug = text.removeprefix(PREFIX)
    if slug != slugify(slug) or len(PREFIX + slug) > MAX_ID:
        raise Invalid(
            f"{text[:80]!r} cannot name a session: lower-case letters, digits and single dashes, "
            f"at most {MAX_ID - len(PREFIX)} characters",
            way_out=f"use {session_id(slug, ())}",
        )
    return PREFIX + slug


def matching_id(text: str, known: Collection[str]) -> str:
    """The known session that `text` names: its id, with or without the prefix, or a part that no other id has.

    Raises `Invalid` if the part fits several, and `NotFound` if it fits none.
    """
    wanted = text.strip()
    for exact in (wanted, PREFIX + wanted):
        if exact in known:
            return exact
    close = [name for name in known if wanted and wanted.lower() in name.lower()]
    if len(close) == 1:
        return close[0]
    if close:
        raise Invalid(
            f"{wanted!r} may be any of {', '.join(close)}", way_out="name more of it; detent sessions lists all"
        )
    raise NotFound(f"there is no session {check_session_id(wanted)}", way_out="detent sessions")


def _fit(slug: str, length: int) -> str:
    """The slug cut to `length`, at a word if that keeps at least half of it."""
    if len(slug) <= length:
        return slug
    at_word = slug[: length + 1].rpartition("-")[0]
    return at_word if len(at_word) * 2 >= length else slug[:length].rstrip("-")
