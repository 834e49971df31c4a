"""Coverage of lines from Cobertura XML, LCOV and the JSON of coverage.py."""

from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from detent.core.reports.limits import Unreadable, check_size
from detent.core.reports.reading import read_json, read_xml

#: Maximum number of lines that the reports of one run may have.
MAX_LINES = 5_000_000


class Lines(msgspec.Struct, frozen=True):
    """The lines of one file that can run."""

    covered: frozenset[int] = frozenset()
    missed: frozenset[int] = frozenset()

    @property
    def count(self) -> int:
        return len(self.covered) + len(self.missed)


#: Path as the report names it, to its lines.
Coverage = Mapping[str, Lines]


def read_coverage(data: bytes) -> Coverage:
    """The lines of a report in any of the formats. Raises `Unreadable`."""
    check_size(len(data))
    start = data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"<"):
        return _cobertura(data)
    if start.startswith(b"{"):
        return _coverage_json(data)
    if start.startswith((b"TN:", b"SF:")):
        return _lcov(data)
    raise Unreadable("the report is neither Cobertura XML nor LCOV nor the JSON of coverage.py")


def merged(reports: Iterable[Coverage]) -> Coverage:
    """Several reports as one: a line is covered if one of them covers it."""
    hits: dict[str, dict[int, bool]] = {}
    for report in reports:
        for path, lines in report.items():
            known = hits.setdefault(path, {})
            for line in lines.covered | lines.missed:
                known[line] = known.get(line, False) or line in lines.covered
    return _coverage(hits)


def in_project(report: Coverage, base: str, files: Collection[str]) -> Coverage:
    """The report with paths of the project. A path that is none of its files is left out.

    Tools name files absolutely, below a source directory, or relative to it: the only file that ends so is meant.
    """
    by_name: dict[str, list[str]] = {}
    for file in files:
        by_name.setdefault(file.rpartition("/")[2], []).append(file)
    placed: list[Coverage] = []
    for path, lines in report.items():
        own = path.replace("\\", "/").removeprefix(f"{base.rstrip('/')}/").removeprefix("./")
        named = [own] if own in files else _ending(by_name.get(own.rpartition("/")[2], []), own)
        if len(named) == 1:
            placed.append({named[0]: lines})
    return merged(placed)


def _ending(files: Iterable[str], path: str) -> list[str]:
    return [file for file in files if file.endswith(f"/{path}") or path.endswith(f"/{file}")]


def percent(covered: int, count: int) -> float:
    """Rounded down to two digits, so that 79.999 is not 80."""
    return 100.0 if not count else covered * 10_000 // count / 100


def total(report: Coverage) -> float | None:
    """The share of lines that ran; None if there is no line."""
    count = sum(lines.count for lines in report.values())
    return percent(sum(len(lines.covered) for lines in report.values()), count) if count else None


def _coverage(hits: Mapping[str, Mapping[int, bool]]) -> Coverage:
    return {
        path: Lines(
            frozenset(line for line, hit in lines.items() if hit),
            frozenset(line for line, hit in lines.items() if not hit),
        )
        for path, lines in hits.items()
    }


def _add(hits: dict[str, dict[int, bool]]) -> Callable[[str, int, int], None]:
    left = MAX_LINES

    def add(path: str, line: int, count: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Unreadable(f"the report has more than {MAX_LINES} lines")
        known = hits.setdefault(path, {})
        known[line] = known.get(line, False) or count > 0

    return add


def _cobertura(data: bytes) -> Coverage:
    hits: dict[str, dict[int, bool]] = {}
    add, file, is_report, inside = _add(hits), "", False, 0

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal file, is_report, inside
        if tag == "coverage":
            is_report = True
        elif tag == "class":
            file = attributes.get("filename", "")
        elif tag == "method":
            # The lines of a method stand below its class too.
            inside += 1
        elif tag == "line" and not inside and file:
            add(file, _number(attributes.get("number", "")), _number(attributes.get("hits", "")))

    def end(tag: str) -> None:
        nonlocal inside
        inside -= tag == "method"

    read_xml(data, start, end)
    if not is_report:
        raise Unreadable("the report is no Cobertura XML: it has no coverage element")
    return _coverage(hits)


class _File(msgspec.Struct):
    executed_lines: list[int] = []
    missing_lines: list[int] = []


class _Report(msgspec.Struct):
    files: dict[str, _File]


def _coverage_json(data: bytes) -> Coverage:
    report = read_json(data, _Report)
    if sum(len(file.executed_lines) + len(file.missing_lines) for file in report.files.values()) > MAX_LINES:
        raise Unreadable(f"the report has more than {MAX_LINES} lines")
    return {
        path: Lines(frozenset(file.executed_lines), frozenset(file.missing_lines) - frozenset(file.executed_lines))
        for path, file in report.files.items()
    }


def _lcov(data: bytes) -> Coverage:
    hits: dict[str, dict[int, bool]] = {}
    add, file = _add(hits), ""
    for row in data.splitlines():
        tag, _, rest = row.partition(b":")
        if tag == b"SF":
            file = rest.decode("utf-8", "replace").strip()
            hits.setdefault(file, {})
        elif tag == b"DA" and file:
            line, _, count = rest.partition(b",")
            add(file, _number(line.decode()), _number(count.partition(b",")[0].decode()))
    if data.splitlines()[-1:] != [b"end_of_record"]:
        raise Unreadable("the report is cut off: its last record has no end")
    return _coverage(hits)


def _number(text: str) -> int:
    try:
        return int(float(text))
    except (ValueError, OverflowError):
        raise Unreadable(f"{text[:40]!r} is no number of a line or of its hits") from None
