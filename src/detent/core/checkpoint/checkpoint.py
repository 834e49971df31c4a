"""Checkpoints: kinds, causes, ids and names.

A checkpoint is a journal position plus a manifest of files. Everything else follows from the session at that position,
so its event is small.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from detent.sha256 import sha256


class CheckpointKind(StrEnum):
    """Before or after a phase."""

    PRE = "PRE"
    POST = "POST"


class Taken(StrEnum):
    """The cause of a checkpoint."""

    STARTED = "started"
    SUCCESS = "success"
    FAILED = "failed"
    APPROVED = "approved"
    ROLLBACK = "rollback"
    NOTE = "note"
    #: Of the present, before a rollback.
    SAFETY = "safety"


class Tree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The captured files: the digest of their manifest, their number and their size."""

    manifest: str
    files: int
    bytes: int
    #: Number of files that were not captured: too large, unreadable, or special. The manifest names them.
    left_out: int = 0


def checkpoint_id(session: str, at: datetime, name: str) -> str:
    """A UUID derived from session, time and name, so that the same command makes the same journal."""
    digest = bytearray(sha256(f"{session}\0{at.isoformat()}\0{name}".encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80  # version 8: custom
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def checkpoint_name(kind: CheckpointKind, phase: str, attempt: int, version: int, *, first: bool) -> str:
    """`PRE_planning_v1`; a further one of the same attempt ends with the version of its commit."""
    return f"{kind}_{phase}_v{attempt}" + ("" if first else f"_at{version}")
