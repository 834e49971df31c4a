"""Compares the program that a check used with the one that the session knows by the same word."""

from collections.abc import Mapping

from detent.core.gate.evidence import Program


def other_program(known: Mapping[str, Program], used: Program | None) -> str | None:
    """The sentence that a run used another program than the session knows by that name; None if it did not."""
    before = known.get(used.name) if used is not None else None
    if before is None or used is None or before == used:
        return None
    where = f"{used.path} instead of {before.path}" if used.path != before.path else f"{used.path} was changed"
    return f"{used.name} is another program than before: {where}"


def accepted_name(program: Program) -> str:
    """The name by which a person accepts a changed program. It holds for this content only."""
    return f"program:{program.name}:{program.digest[:12]}"
