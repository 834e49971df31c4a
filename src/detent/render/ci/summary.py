"""The summary of a check in CI, in Markdown."""

from collections.abc import Iterable, Sequence

from detent.core.ci import Level, RecordCheck
from detent.core.task.title import escaped as inline

_MARKS = {Level.ERROR: "❌", Level.WARNING: "⚠️", Level.NOTICE: "ℹ️"}  # noqa: RUF001 - the sign of a notice
#: Notes of one record that are listed.
_MOST = 50


def summary(checks: Sequence[RecordCheck]) -> str:
    if not checks:
        return "### ❌ Detent: no record\n\nThis branch has no `.detent/*.bundle`. `detent publish` writes it.\n"
    return "\n".join(line for check in checks for line in _record(check)) + "\n"


def _record(check: RecordCheck) -> Iterable[str]:
    mark = "✅" if check.holds and not check.is_closed else "❌"
    yield f"### {mark} {inline(check.session)}"
    yield ""
    held = "holds" if check.holds else "**does not hold**"
    yield f"The record {held}: {inline(check.status)}, {check.commits} commits, {check.gates} gates judged again."
    if check.reruns:
        yield ""
        yield "| check | here | reason | seconds |"
        yield "|---|---|---|---|"
        for row in check.reruns:
            check_name = f"{inline(row.phase)} {inline(row.gate)}"
            yield f"| {check_name} | {row.verdict} | {inline(row.reason)} | {row.seconds:.1f} |"
    for heading, lines in (
        ("Decisions", [inline(line) for line in check.decisions]),
        ("Findings", [f"{_MARKS[each.level]} {inline(each.message)}" for each in check.annotations]),
    ):
        if lines:
            yield ""
            yield f"<details{' open' if heading == 'Findings' and not check.holds else ''}><summary>{heading}</summary>"
            yield ""
            yield from (f"- {line}" for line in lines[:_MOST])
            if len(lines) > _MOST:
                yield f"- {len(lines) - _MOST} more"
            yield ""
            yield "</details>"
    yield ""
