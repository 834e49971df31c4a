"""Evidence and protected files in the store: documents of a session that are named by the digest of their content."""

import hashlib

#: Directories of a session.
EVIDENCE, PROTECTED = "evidence", "protected"
_CHARACTERS = 32


def content_name(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:_CHARACTERS]


def is_intact(name: str, data: bytes) -> bool:
    """Whether the data is what was stored by that name."""
    return content_name(data) == name
