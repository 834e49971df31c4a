"""Checkpoints as values: what one is and what it is called.

A checkpoint is a journal position plus a manifest of files. Everything else about it follows from the session as it
stood there, so the event that takes one is small.
"""

import hashlib
from datetime import datetime
from enum import StrEnum

import msgspec


class CheckpointKind(StrEnum):
    """Before a phase, or after it."""

    PRE = "PRE"
    POST = "POST"


class Taken(StrEnum):
    """Why a checkpoint was taken, which is also how the attempt stood."""

    STARTED = "started"
    SUCCESS = "success"
    FAILED = "failed"
    APPROVED = "approved"
    ROLLBACK = "rollback"
    NOTE = "note"
    #: Of the present, before a rollback changes it.
    SAFETY = "safety"


class Tree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The files at one moment: the digest of their manifest, and how much there is of it."""

    manifest: str
    files: int
    bytes: int
    #: Files that were seen and not taken: too large, unreadable, or no files at all. The manifest names them.
    left_out: int = 0


def checkpoint_id(session: str, at: datetime, name: str) -> str:
    """A UUID that follows from what the checkpoint is, so that the same command makes the same journal."""
    digest = bytearray(hashlib.sha256(f"{session}\0{at.isoformat()}\0{name}".encode()).digest()[:16])
    digest[6] = digest[6] & 0x0F | 0x80  # version 8: made by a rule of our own
    digest[8] = digest[8] & 0x3F | 0x80
    text = digest.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def checkpoint_name(kind: CheckpointKind, phase: str, attempt: int, version: int, *, first: bool) -> str:
    """`PRE_planning_v1`; a second one of the same attempt also says at which commit it was taken."""
    return f"{kind}_{phase}_v{attempt}" + ("" if first else f"_at{version}")
