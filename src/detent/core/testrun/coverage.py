"""The coverage that a test run printed, in percent."""

import re
from collections.abc import Iterator

_TOTAL = re.compile(r"^TOTAL[ \t].*$", re.MULTILINE)
_PERCENT = re.compile(r"(?<![\d.])(\d{1,3}(?:\.\d+)?)%")
_DIRECT = tuple(
    re.compile(pattern, re.MULTILINE)
    for pattern in (
        r"^[#\u2139 \t]*[Aa]ll files[ \t]*\|[ \t]*(\d{1,3}(?:\.\d+)?)[ \t]*\|",
        r"^[ \t]*(?:Statements|Lines)[ \t]*:[ \t]*(\d{1,3}(?:\.\d+)?)%",
        r"\bcoverage: (\d{1,3}(?:\.\d+)?)% of statements",
        r"^(\d{1,3}(?:\.\d+)?)% coverage, \d+/\d+ lines covered",
        r"^\| Total[ \t]+\| (\d{1,3}(?:\.\d+)?)%",
        r"^(?:Line Coverage|Total coverage|[ \t]*lines\.+): (\d{1,3}(?:\.\d+)?)%",
    )
)


def coverage(text: str) -> float | None:
    """The lowest where there are several, one per package for instance: a threshold has to hold for each of them."""
    percents = [percent for percent in _percents(text) if percent <= 100]
    return min(percents, default=None)


def _percents(text: str) -> Iterator[float]:
    for line in _TOTAL.finditer(text):
        percents = [float(percent) for percent in _PERCENT.findall(line[0][:500])]
        # Python tools print one number; LLVM prints regions, functions and then lines.
        if percents:
            yield percents[2] if len(percents) > 2 else percents[-1]
    for pattern in _DIRECT:
        yield from (float(match[1]) for match in pattern.finditer(text))
