"""What verifying the objects found."""

from collections.abc import Iterator, Sequence

from detent.render.size import counted
from detent.render.terminal.canvas import Canvas

_MAX_SHOWN = 8
#: Digest, where it is, what is wrong, and who needs it: session, checkpoint, path.
Found = tuple[str | None, str, str, Sequence[tuple[str, str, str]]]
_WAY_OUT = (
    "put back .workflow/checkpoints/artifacts from a backup; checkpoints that do not need what is damaged are as good"
    " as before"
)


def damage_text(count: int, found: Sequence[Found], *, canvas: Canvas) -> str:
    if not found:
        return f"{counted(count, 'object')}, all whole"
    lines = [canvas.paint(f"{counted(count, 'object')}, {len(found)} damaged or missing", "red")]
    for _, where, reason, used_by in found:
        first, *rest = canvas.wrap(f"{where}: {reason}" if where else reason, "    ")
        lines += ["", "  " + first.strip(), *rest, *_use_lines(used_by, canvas)]
    return "\n".join([*lines, "", *canvas.wrap(f"try: {_WAY_OUT}")])


def _use_lines(used_by: Sequence[tuple[str, str, str]], canvas: Canvas) -> Iterator[str]:
    """Each file once, with the checkpoints that have it."""
    by_path: dict[tuple[str, str], list[str]] = {}
    for session, checkpoint, path in used_by:
        by_path.setdefault((session, path), []).append(checkpoint)
    for (session, path), names in list(by_path.items())[:_MAX_SHOWN]:
        more = f" and {len(names) - _MAX_SHOWN} more" if len(names) > _MAX_SHOWN else ""
        first, *rest = canvas.wrap(f"{path} in {', '.join(names[:_MAX_SHOWN])}{more} of {session}", "      ")
        yield from ("    " + first.strip(), *rest)
    if len(by_path) > _MAX_SHOWN:
        yield f"    and {len(by_path) - _MAX_SHOWN} more; --json lists all"
    if not by_path:
        yield "    no checkpoint needs it"
