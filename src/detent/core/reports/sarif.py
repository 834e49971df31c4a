"""Findings of analysis tools, from SARIF 2.1.0."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum
from urllib.parse import unquote

import msgspec

from detent.core.reports.limits import Unreadable
from detent.core.reports.reading import read_json

MAX_FINDINGS = 200_000
MAX_MESSAGE = 200
#: The versions that are read: 2.1.0, and its drafts.
_VERSION = "2.1."
#: Kinds of results that report nothing wrong.
_NO_FINDING = ("pass", "notApplicable", "informational")


class Level(StrEnum):
    """The level of a finding, the worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"
    NONE = "none"

    def reaches(self, least: "Level") -> bool:
        order = list(Level)
        return order.index(self) <= order.index(least)


class Finding(msgspec.Struct, frozen=True):
    rule: str
    level: Level
    path: str
    message: str
    line: int = 0
    suppressed: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """Equal for the same finding before and after other lines were added above it."""
        return self.rule, self.path, self.message

    def describe(self) -> str:
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where} {self.rule} ({self.level}{', suppressed' if self.suppressed else ''}): {self.message}"


class _Camel(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _Text(_Camel, frozen=True):
    text: str = ""
    markdown: str = ""
    id: str = ""


class _Configuration(_Camel, frozen=True):
    level: Level | None = None


class _Rule(_Camel, frozen=True):
    id: str = ""
    default_configuration: _Configuration = _Configuration()


class _Component(_Camel, frozen=True):
    name: str = ""
    rules: list[_Rule] = []


class _Tool(_Camel, frozen=True):
    driver: _Component = _Component()
    extensions: list[_Component] = []


class _Uri(_Camel, frozen=True):
    uri: str = ""


class _Region(_Camel, frozen=True):
    start_line: int = 0


class _Physical(_Camel, frozen=True):
    artifact_location: _Uri = _Uri()
    region: _Region = _Region()


class _Location(_Camel, frozen=True):
    physical_location: _Physical = _Physical()


class _RuleReference(_Camel, frozen=True):
    id: str = ""
    index: int = -1


class _Suppression(_Camel, frozen=True):
    status: str = "accepted"


class _Result(_Camel, frozen=True):
    rule_id: str = ""
    rule_index: int = -1
    rule: _RuleReference = _RuleReference()
    level: Level | None = None
    kind: str = "fail"
    message: _Text = _Text()
    locations: list[_Location] = []
    suppressions: list[_Suppression] = []


class _Invocation(_Camel, frozen=True):
    execution_successful: bool = True


class _Run(_Camel, frozen=True):
    tool: _Tool = _Tool()
    results: list[_Result] | None = None
    invocations: list[_Invocation] = []


class _Log(_Camel, frozen=True):
    version: str
    runs: list[_Run]


def read_sarif(data: bytes, directory: str = "") -> tuple[Finding, ...]:
    """The findings of a report, with paths below `directory`. Raises `Unreadable`, also if the tool did not finish."""
    log = read_json(data, _Log)
    if not log.version.startswith(_VERSION):
        raise Unreadable(f"the report is SARIF {log.version[:20]}; only 2.1.0 is read")
    if not log.runs:
        raise Unreadable("the report has no run of a tool")
    if sum(len(run.results or ()) for run in log.runs) > MAX_FINDINGS:
        raise Unreadable(f"the report has more than {MAX_FINDINGS} findings")
    findings: list[Finding] = []
    for run in log.runs:
        name = run.tool.driver.name[:MAX_MESSAGE] or "the tool"
        if run.results is None or not all(each.execution_successful for each in run.invocations):
            raise Unreadable(f"{name} says that it did not finish")
        findings += (_finding(run, result, directory) for result in run.results if result.kind not in _NO_FINDING)
    return tuple(findings)


def new_findings(now: Iterable[Finding], before: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that were not there before: of several equal ones as many as there are more now."""
    known = Counter(finding.key for finding in before)
    new = []
    for finding in now:
        if known[finding.key] > 0:
            known[finding.key] -= 1
        else:
            new.append(finding)
    return tuple(new)


def _finding(run: _Run, result: _Result, directory: str) -> Finding:
    rule = _rule(run, result)
    place = result.locations[0].physical_location if result.locations else _Physical()
    # Without a level that of the rule counts, and without that the standard says warning.
    level = result.level or (rule.default_configuration.level if rule is not None else None) or Level.WARNING
    text = result.message.text or result.message.markdown or result.message.id
    return Finding(
        rule=(result.rule_id or result.rule.id or (rule.id if rule is not None else "") or "?")[:MAX_MESSAGE],
        level=level,
        path=_path(place.artifact_location.uri, directory)[: MAX_MESSAGE * 2],
        message=" ".join(text.split())[:MAX_MESSAGE],
        line=place.region.start_line,
        suppressed=any(each.status in ("accepted", "") for each in result.suppressions),
    )


def _path(uri: str, directory: str) -> str:
    path = unquote(uri.removeprefix("file://"))
    return path.removeprefix(f"{directory.rstrip('/')}/").removeprefix("./") if directory else path


def _rule(run: _Run, result: _Result) -> _Rule | None:
    rules = run.tool.driver.rules
    index = result.rule_index if result.rule_index >= 0 else result.rule.index
    if 0 <= index < len(rules):
        return rules[index]
    named = result.rule_id or result.rule.id
    return next((rule for rule in rules if rule.id and rule.id == named), None)
