"""Reads JUnit XML into named tests."""

import re

from detent.core.reports.limits import Unreadable, check_size
from detent.core.reports.reading import read_xml
from detent.core.testrun.suite import Outcome, TestCase

MAX_CASES = 500_000
MAX_NAME = 500

#: Element inside of a test case to its outcome; without one the case passed.
_OUTCOMES = {
    "failure": Outcome.FAILED,
    "error": Outcome.FAILED,
    "skipped": Outcome.SKIPPED,
}
#: How pytest marks a failure that the test expects.
_EXPECTED = "pytest.xfail"
#: How Playwright does.
_EXPECTED_PROPERTY = "fail"
#: How runners of C and C++ mark a test that did not run.
_NOT_RUN = ("notrun", "disabled", "skipped")
_DOCUMENT = b"<?xml"
_NOT_COLLECTED = "collection failure"
#: The parameters of a case, `test_x[1-2]`. A title with brackets, `parses [1]`, is the name of a test of its own.
_PARAMETERS = re.compile(r"(?<=\S)\[.*\]\Z", re.DOTALL)
_NOT_IMPORTED = ("ImportError", "ModuleNotFoundError")


def junit_cases(data: bytes) -> list[TestCase]:
    """The tests of a report, or of several that follow one another. Raises `Unreadable`."""
    check_size(len(data))
    try:
        return _cases(data, MAX_CASES)
    except Unreadable:
        # Several runners may have written to one pipe. Inside of a document of pytest the mark is always escaped.
        first, *others = data.split(_DOCUMENT)
        if first.strip() or len(others) < 2:
            raise
    cases: list[TestCase] = []
    for document in others:
        cases += _cases(_DOCUMENT + document, MAX_CASES - len(cases))
    return cases


def _cases(document: bytes, most: int) -> list[TestCase]:
    reader = _Reader(most)
    read_xml(document, reader.start, reader.end)
    if not reader.is_report:
        raise Unreadable("the report has no test suite")
    return reader.cases


class _Reader:
    def __init__(self, most: int) -> None:
        self.cases: list[TestCase] = []
        self.is_report = False
        self._most = most
        self._name = ""
        self._outcome = Outcome.PASSED
        self._is_inside = False
        self._is_case = False

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if len(self.cases) >= self._most:
            raise Unreadable(f"the reports have more than {MAX_CASES} tests")
        if tag in ("testsuite", "testsuites"):
            self.is_report = True
        elif tag == "testcase":
            is_run = attributes.get("status", "").lower() not in _NOT_RUN
            self._is_case, self._is_inside = True, False
            self._outcome = Outcome.PASSED if is_run else Outcome.SKIPPED
            self._name = _name(attributes)
        elif self._is_case and tag == "property" and attributes.get("name") == _EXPECTED_PROPERTY:
            self._outcome = Outcome.EXPECTED_FAIL if self._outcome is Outcome.PASSED else self._outcome
        elif self._is_case and tag in _OUTCOMES:
            self._set_outcome(_OUTCOMES[tag], attributes)
            # An error is one of the setup or of the teardown.
            self._is_inside |= tag == "failure" and not attributes.get("message", "").startswith(_NOT_IMPORTED)

    def _set_outcome(self, outcome: Outcome, attributes: dict[str, str]) -> None:
        if attributes.get("type") == _EXPECTED:
            outcome = Outcome.EXPECTED_FAIL
        if attributes.get("message") == _NOT_COLLECTED:
            # The name is that of a file, and no test.
            self._name = ""
        if self._outcome is not Outcome.FAILED:
            self._outcome = outcome

    def end(self, tag: str) -> None:
        if tag == "testcase":
            self._is_case = False
            self.cases.append(TestCase(self._name, self._outcome, self._is_inside))


def _name(attributes: dict[str, str]) -> str:
    """`file::Class::function`; `class::function` where the report names no file. Without the parameters of a case."""
    function, owner, file = (attributes.get(key, "") for key in ("name", "classname", "file"))
    if file:
        # In the class name of pytest the path of the file comes first.
        module = file.rpartition(".")[0].replace("/", ".").replace("\\", ".")
        owner = owner.removeprefix(module).strip(".").replace(".", "::")
    return "::".join(part for part in (file, owner, _PARAMETERS.sub("", function)) if part)[:MAX_NAME]
