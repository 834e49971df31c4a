"""Draws a terminal recording as an SVG, from the commands and the output of a page that was run.

    python -m tests.support.attended python -m book.recording

The commands are those of the tutorial that `SHOWN` names. Lines appear one after the other and stay.
"""

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from detent.topics.walkthrough import Step, parts

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tutorial.md"
PICTURE = ROOT / "docs" / "images" / "terminal.svg"
#: The commands that are shown, without their arguments.
SHOWN = ("detent run", "detent approve")
_COLUMNS, _LINE_PX, _CHARACTER_PX, _MARGIN_PX, _BAR_PX = 80, 19, 8.4, 18, 34
_TYPED_S, _PRINTED_S, _PAUSE_S = 0.9, 0.12, 1.4
#: Words that are coloured, as the terminal colours them.
_COLOURS = (
    (r"\bPASS\b|✓|\bcompleted\b", "green"),
    (r"\bFAIL(?:ED)?\b", "red"),
    (r"\bPENDING\b|NEEDS YOU|needs a person", "yellow"),
    (r"▸|━+", "blue"),
    (r"^\d\d:\d\d:\d\d", "dim"),
)
_STYLE = """
  text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #d7dae0; white-space: pre; }
  .green { fill: #7fd18b } .red { fill: #ff7b72 } .yellow { fill: #e3b341 } .blue { fill: #79c0ff }
  .dim { fill: #7d8590 } .typed { font-weight: bold; fill: #ffffff }
  g.line { animation: appear 0.01s backwards }
  @keyframes appear { from { opacity: 0 } }
  @media (prefers-reduced-motion: reduce) { g.line { animation: none } }
"""


def shown_steps(page: str) -> list[Step]:
    """The commands of the page that the recording shows, each once, in their order."""
    steps = [part for part in parts(page) if isinstance(part, Step) and part.output is not None]
    return [step for step in steps if " ".join(step.command.split()[:2]) in SHOWN]


def drawn(steps: Sequence[Step]) -> str:
    """The recording as an SVG."""
    lines: list[tuple[float, str]] = []
    at = 0.5
    for step in steps:
        lines.append((at, f'<tspan class="green">$</tspan> <tspan class="typed">{escape(step.command)}</tspan>'))
        at += _TYPED_S
        for line in step.output or ():
            lines.append((at, _coloured(line)))
            at += _PRINTED_S
        lines.append((at, ""))
        at += _PAUSE_S
    width = _COLUMNS * _CHARACTER_PX + 2 * _MARGIN_PX
    height = len(lines) * _LINE_PX + _BAR_PX + 2 * _MARGIN_PX
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img"',
            '     aria-label="A terminal: a run is held by a failing test, a person approves, the run completes">',
            f"<style>{_STYLE}</style>",
            f'<rect width="{width:.0f}" height="{height}" rx="10" fill="#16191f"/>',
            *(f'<circle cx="{22 + 20 * dot}" cy="20" r="6" fill="#3a3f4b"/>' for dot in range(3)),
            *_placed(lines),
            "</svg>\n",
        )
    )


def _placed(lines: Iterable[tuple[float, str]]) -> Iterable[str]:
    for number, (at, content) in enumerate(lines, 1):
        if content:
            y = _BAR_PX + _MARGIN_PX + number * _LINE_PX
            yield (
                f'<g class="line" style="animation-delay:{at:.2f}s">'
                f'<text x="{_MARGIN_PX}" y="{y}" xml:space="preserve">{content}</text></g>'
            )


def _coloured(line: str) -> str:
    marks = sorted(
        (match.start(), match.end(), colour) for pattern, colour in _COLOURS for match in re.finditer(pattern, line)
    )
    text, position = "", 0
    for start, end, colour in marks:
        if start >= position:
            text += escape(line[position:start]) + f'<tspan class="{colour}">{escape(line[start:end])}</tspan>'
            position = end
    return text + escape(line[position:])


def main() -> int:
    """Draw the recording of the tutorial; `make test-docs` has shown that its output is real."""
    PICTURE.write_text(drawn(shown_steps(PAGE.read_text("utf-8"))), "utf-8")
    print(f"wrote {PICTURE.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
