"""Damaged and missing objects, for people."""

from collections.abc import Iterator, Sequence

import msgspec

from detent.core.counted import counted, listed
from detent.render.terminal.canvas import Canvas

_MAX_SHOWN = 8
_WAY_OUT = (
    "restore .workflow/checkpoints/artifacts from a backup; checkpoints without damaged objects can still be used"
)


class Use(msgspec.Struct, frozen=True, kw_only=True):
    session: str
    checkpoint: str
    #: The file, or the other part of the checkpoint that needs the object.
    path: str


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """`digest` is None for bytes that belong to no known object."""

    digest: str | None
    where: str
    reason: str
    used_by: list[Use]


def damage_text(count: int, damaged: Sequence[Damage], *, canvas: Canvas) -> str:
    if not damaged:
        return f"{counted(count, 'object')}, all intact"
    lines = [canvas.paint(f"{counted(count, 'object')}, {len(damaged)} damaged or missing", "red")]
    for bad in damaged:
        lines += ["", *canvas.hanging(f"{bad.where}: {bad.reason}" if bad.where else bad.reason, "    ", "  ")]
        lines += _use_lines(bad.used_by, canvas)
    return "\n".join([*lines, "", *canvas.wrap(f"try: {_WAY_OUT}")])


def _use_lines(used_by: Sequence[Use], canvas: Canvas) -> Iterator[str]:
    """Each file once, with the checkpoints that contain it."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for use in used_by:
        by_path.setdefault((use.session, use.path), []).append(use.checkpoint)
    for (session, path), names in list(by_path.items())[:_MAX_SHOWN]:
        yield from canvas.hanging(f"{path} in {listed(names, _MAX_SHOWN)} of {session}", "      ", "    ")
    if len(by_path) > _MAX_SHOWN:
        yield f"    and {len(by_path) - _MAX_SHOWN} more; --json lists all"
    if not by_path:
        yield "    no checkpoint needs it"
