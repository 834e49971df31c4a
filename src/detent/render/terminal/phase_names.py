"""Names the phases in a table: position, title, and the key that people type."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from detent.core.session.session import Session
from detent.core.session.status import Status
from detent.core.workflow.graph import Workflow
from detent.core.workflow.phase_title import own_title
from detent.render.terminal.canvas import Canvas, columns_of

_GAP = 2


class PhaseNames(msgspec.Struct, frozen=True, kw_only=True):
    """The columns of a table that name its phases. A phase without a title of its own has its key in place of it."""

    canvas: Canvas
    #: By key: the position and the title, and the key if it is not the title.
    cells: Mapping[str, tuple[str, str]]
    name_columns: int
    #: 0 if no key has a column of its own.
    key_columns: int

    @property
    def width(self) -> int:
        return self.name_columns + (_GAP + self.key_columns if self.key_columns else 0)

    def within(self, columns: int, *, spare: int = 0) -> "PhaseNames":
        """In at most so many columns, and with the keys only if they leave `spare` of them."""
        if self.width <= columns - spare:
            return self
        return msgspec.structs.replace(self, name_columns=max(min(self.name_columns, columns), 0), key_columns=0)

    def cell(self, phase: str) -> str:
        name, key = self.cells[phase]
        shown = self.canvas.pad(name, self.name_columns)
        if not self.key_columns:
            return shown
        return f"{shown}{' ' * _GAP}{self.canvas.paint(key, 'dim')}{' ' * (self.key_columns - len(key))}"

    def left_out(self, phase: str) -> str:
        """The key, unless the cell shows all of it."""
        name, key = self.cells[phase]
        is_shown = self.key_columns > 0 if key else columns_of(name) <= self.name_columns
        return "" if is_shown else phase


def phase_names(workflow: Workflow, order: Sequence[str], canvas: Canvas, *, only: Sequence[str] = ()) -> PhaseNames:
    """`order` has the phases with a position, which are all but the skipped ones; `only` the phases of the table."""
    places = {key: str(at) for at, key in enumerate(order, 1)}
    digits = len(str(len(order)))
    cells = {}
    for key in only or workflow.order:
        title = canvas.clean(own_title(workflow.by_key[key]))
        cells[key] = (f"{places.get(key, ''):>{digits}} {title or key}", key if title else "")
    return PhaseNames(
        canvas=canvas,
        cells=cells,
        name_columns=max(columns_of(name) for name, _ in cells.values()),
        key_columns=max(len(key) for _, key in cells.values()),
    )


def phase_rows(
    session: Session, texts: Mapping[str, tuple[Status, str]], *, canvas: Canvas, indent: str
) -> Iterator[str]:
    """A line per phase of `texts`: the glyph of a status, the name, and a text."""
    if not texts:
        return
    names = phase_names(session.workflow, session.active_order, canvas, only=tuple(texts))
    widest = max(columns_of(text) for _, text in texts.values())
    names = names.within(canvas.width - len(indent) - 2 - _GAP - widest)
    for key, (status, text) in texts.items():
        yield f"{indent}{canvas.glyph(status)} {names.cell(key)}{' ' * _GAP}{text}"
        yield from canvas.wrap(names.left_out(key), f"{indent}    ") if names.left_out(key) else ()
