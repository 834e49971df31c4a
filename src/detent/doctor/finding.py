"""Findings and repairs: the values that the modules of the doctor exchange."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

ERROR, WARNING = "error", "warning"
FIX = "detent doctor --fix"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A violated invariant, as `detent doctor` reports it."""

    invariant: str
    severity: str
    subject: str
    message: str
    way_out: str


class Repair(NamedTuple):
    """A change that restores an invariant, and its description."""

    text: str
    act: Callable[[], object]
    #: `act` returns the descriptions, because only it knows what became of an edit.
    tells: bool = False


def finding(invariant: str, subject: str, message: str, way_out: str, severity: str = ERROR) -> Finding:
    return Finding(invariant=invariant, severity=severity, subject=subject, message=message, way_out=way_out)


def apply_repairs(repairs: Iterable[Repair], *, dry_run: bool) -> list[str]:
    """Make the repairs and describe them; with `dry_run`, only describe them."""
    done: list[str] = []
    for repair in list(repairs):
        result = repair.act() if not dry_run else None
        done += result if repair.tells and isinstance(result, list) else [repair.text]
    return done
