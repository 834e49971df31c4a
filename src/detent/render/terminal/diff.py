"""What separates two checkpoints, as people read it: the summary first, then file by file."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from detent.core.checkpoint.compare import CheckpointDiff
from detent.core.path_text import to_text
from detent.render.size import counted
from detent.render.terminal.canvas import Canvas, columns_of

#: A line of a file that is longer is cut: nobody reads it, and a terminal should not choke on it.
_MAX_COLUMNS = 1_000
_MAX_LISTED = 30
_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "modified": ("~", "yellow")}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One file: added, removed or modified, with the lines of its unified diff or the line that stands for it."""

    path: str
    change: str
    lines: Sequence[str]

    @property
    def is_text(self) -> bool:
        return any(line.startswith("@@") for line in self.lines)

    @property
    def counts(self) -> tuple[int, int] | None:
        """Lines added and removed; none where there are no lines to count."""
        if not self.is_text:
            return None
        first = next(number for number, line in enumerate(self.lines) if line.startswith("@@"))
        body = self.lines[first:]
        return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def diff_text(diff: CheckpointDiff, files: Sequence[FileDiff], *, left_out: int, canvas: Canvas, limit: int) -> str:
    """`left_out` files are not shown, or not in full, because that would be more than `limit` lines."""
    lines = [*_summary_lines(diff, canvas)]
    for one in files:
        lines += ["", *_file_lines(one, canvas)]
    if left_out:
        lines += [
            "",
            *canvas.wrap(
                f"{limit} lines shown, {counted(left_out, 'file')} not or not in full; -n 0 shows all, --stat counts"
            ),
        ]
    return "\n".join(lines)


def stat_text(diff: CheckpointDiff, files: Sequence[FileDiff], *, canvas: Canvas) -> str:
    """Only how many lines were added and removed, file by file."""
    told = [(one, _told(one)) for one in files]
    room = max((columns_of(text) for _, text in told), default=0)
    name = min(
        max((columns_of(canvas.clean(to_text(one.path))) for one, _ in told), default=0), canvas.width - room - 4
    )
    lines = [*_summary_lines(diff, canvas), *([""] if told else [])]
    for one, text in told:
        sign, colour = _SIGNS[one.change]
        lines.append(f"{canvas.paint(sign, colour)} {canvas.pad(to_text(one.path), name)}  {text}")
    return "\n".join(lines)


def _summary_lines(diff: CheckpointDiff, canvas: Canvas) -> Iterator[str]:
    arrow = "→" if canvas.has_glyphs else "->"
    for line in canvas.wrap(f"{diff.a} {arrow} {diff.b}"):
        yield canvas.paint(line, "bold")
    if diff.is_empty:
        yield "nothing differs"
        return
    if diff.newly_completed:
        yield from _list("completed since", diff.newly_completed, canvas)
    if diff.no_longer_completed:
        yield from _list("no longer completed", diff.no_longer_completed, canvas)
    if diff.gates:
        yield "gates:"
        gates = (f"{one.gate}  {one.before or 'none'} {arrow} {one.after or 'none'}" for one in diff.gates)
        yield from _limited(gates, canvas)
    if diff.agents:
        yield "agents:"
        yield from _limited(
            (
                _agent(one.agent, one.before, one.after, arrow) + _spent(one.input_tokens, one.output_tokens)
                for one in diff.agents
            ),
            canvas,
        )
        read, written = (sum(getattr(one, name) for one in diff.agents) for name in ("input_tokens", "output_tokens"))
        if read or written:
            yield f"tokens: {read:+,} read, {written:+,} written"
    found = [f"{len(paths)} {what}" for what in _SIGNS if (paths := getattr(diff, what))]
    yield f"files: {', '.join(found) or 'the same'}"


def _list(label: str, names: Sequence[str], canvas: Canvas) -> Iterator[str]:
    first, *rest = canvas.wrap(f"{label}: {', '.join(names)}", "  ")
    yield from (first.strip(), *rest)


def _limited(texts: Iterable[str], canvas: Canvas) -> Iterator[str]:
    found = list(texts)
    for text in found[:_MAX_LISTED]:
        first, *rest = canvas.wrap(text, "    ")
        yield from ("  " + first.strip(), *rest)
    if len(found) > _MAX_LISTED:
        yield f"  and {len(found) - _MAX_LISTED} more; --json lists all"


def _agent(agent: str, before: str | None, after: str | None, arrow: str) -> str:
    if before == after:
        return f"{agent}  {after}"
    return f"{agent}  {before or 'not begun'} {arrow} {after or 'not begun'}"


def _spent(read: int, written: int) -> str:
    return f", {read:+,}/{written:+,} tokens" if read or written else ""


def _file_lines(one: FileDiff, canvas: Canvas) -> Iterator[str]:
    """Indented as they are in the file; nothing in them is obeyed by the terminal."""
    in_body = False
    for line in one.lines:
        in_body = in_body or line.startswith("@@")
        shown = canvas.cut((line[:1] + line[1:].expandtabs()).replace("\r", "\\r"), _MAX_COLUMNS)
        if in_body:
            yield canvas.paint(shown, _COLOURS[line[0]]) if line[:1] in _COLOURS else shown
        else:
            yield canvas.paint(shown, "bold")


def _told(one: FileDiff) -> str:
    if one.counts is None:
        return " ".join(one.lines).removeprefix(f"{to_text(one.path)}: ").removesuffix(", differs")
    added, removed = one.counts
    return f"+{added} -{removed}"
