"""The difference between two checkpoints, for people: a summary, then file by file."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from detent.core.checkpoint.compare import CheckpointDiff
from detent.core.counted import counted
from detent.core.path_text import to_text
from detent.core.session.phase_name import Named
from detent.render.terminal.canvas import Canvas, columns_of

#: Longer lines of a file are cut.
_MAX_COLUMNS = 1_000
_MAX_LISTED = 30
_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "modified": ("~", "yellow")}
_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """One file: added, removed or modified, with its unified diff or a line that replaces it."""

    path: str
    change: str
    lines: Sequence[str]

    @property
    def is_text(self) -> bool:
        return any(line.startswith("@@") for line in self.lines)

    @property
    def counts(self) -> tuple[int, int] | None:
        """Lines added and removed; None if there is no text diff."""
        if not self.is_text:
            return None
        first = next(number for number, line in enumerate(self.lines) if line.startswith("@@"))
        body = self.lines[first:]
        return sum(line.startswith("+") for line in body), sum(line.startswith("-") for line in body)


def diff_text(
    diff: CheckpointDiff, files: Sequence[FileDiff], *, named: Named, left_out: int, canvas: Canvas, limit: int
) -> str:
    """`left_out` is the number of files beyond `limit` lines, or shown only in part."""
    lines = [*_summary_lines(diff, named, canvas)]
    for file in files:
        lines += ["", *_file_lines(file, canvas)]
    if left_out:
        lines += [
            "",
            *canvas.wrap(
                f"{limit} lines shown, {counted(left_out, 'file')} not or not in full; -n 0 shows all, --stat counts"
            ),
        ]
    return "\n".join(lines)


def files_text(files: Sequence[FileDiff], canvas: Canvas) -> str:
    """The files alone, each as a unified diff."""
    return "\n".join(line for file in files for line in _file_lines(file, canvas))


def stat_text(diff: CheckpointDiff, files: Sequence[FileDiff], *, named: Named, canvas: Canvas) -> str:
    """The number of lines added and removed, file by file."""
    counts = [(to_text(file.path), file.change, _counts(file)) for file in files]
    room = max((columns_of(text) for _, _, text in counts), default=0)
    name = min(max((columns_of(canvas.clean(path)) for path, _, _ in counts), default=0), canvas.width - room - 4)
    lines = [*_summary_lines(diff, named, canvas), *([""] if counts else [])]
    for path, change, text in counts:
        sign, colour = _SIGNS[change]
        lines.append(f"{canvas.paint(sign, colour)} {canvas.pad(path, name)}  {text}")
    return "\n".join(lines)


def _summary_lines(diff: CheckpointDiff, named: Named, canvas: Canvas) -> Iterator[str]:
    arrow = "→" if canvas.has_glyphs else "->"
    for line in canvas.wrap(f"{diff.a} {arrow} {diff.b}"):
        yield canvas.paint(line, "bold")
    if diff.is_empty:
        yield "nothing differs"
        return
    if diff.newly_completed:
        yield from canvas.hanging(f"completed since: {', '.join(map(named, diff.newly_completed))}", "  ", "")
    if diff.no_longer_completed:
        yield from canvas.hanging(f"no longer completed: {', '.join(map(named, diff.no_longer_completed))}", "  ", "")
    if diff.gates:
        yield "gates:"
        gates = (f"{gate.gate}  {gate.before or 'none'} {arrow} {gate.after or 'none'}" for gate in diff.gates)
        yield from _limited(gates, canvas)
    if diff.agents:
        yield "agents:"
        yield from _limited(
            (
                _agent(agent.agent, agent.before, agent.after, arrow) + _spent(agent.input_tokens, agent.output_tokens)
                for agent in diff.agents
            ),
            canvas,
        )
        read = sum(agent.input_tokens for agent in diff.agents)
        written = sum(agent.output_tokens for agent in diff.agents)
        if read or written:
            yield f"tokens: {read:+,} read, {written:+,} written"
    changes = [f"{len(paths)} {change}" for change in _SIGNS if (paths := getattr(diff, change))]
    yield f"files: {', '.join(changes) or 'the same'}"


def _limited(texts: Iterable[str], canvas: Canvas) -> Iterator[str]:
    lines = list(texts)
    for text in lines[:_MAX_LISTED]:
        yield from canvas.hanging(text, "    ", "  ")
    if len(lines) > _MAX_LISTED:
        yield f"  and {len(lines) - _MAX_LISTED} more; --json lists all"


def _agent(agent: str, before: str | None, after: str | None, arrow: str) -> str:
    if before == after:
        return f"{agent}  {after}"
    return f"{agent}  {before or 'not begun'} {arrow} {after or 'not begun'}"


def _spent(read: int, written: int) -> str:
    return f", {read:+,}/{written:+,} tokens" if read or written else ""


def _file_lines(file: FileDiff, canvas: Canvas) -> Iterator[str]:
    """The diff with the indentation of the file, and control characters made visible."""
    in_body = False
    for line in file.lines:
        in_body = in_body or line.startswith("@@")
        shown = canvas.cut((line[:1] + line[1:].expandtabs()).replace("\r", "\\r"), _MAX_COLUMNS)
        if in_body:
            yield canvas.paint(shown, _COLOURS[line[0]]) if line[:1] in _COLOURS else shown
        else:
            yield canvas.paint(shown, "bold")


def _counts(file: FileDiff) -> str:
    if file.counts is None:
        return " ".join(file.lines).removeprefix(f"{to_text(file.path)}: ").removesuffix(", differs")
    added, removed = file.counts
    return f"+{added} -{removed}"
