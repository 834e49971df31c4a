"""Reads a JUnit XML report into named tests. The report comes from a process that may be hostile, so it has limits."""

from xml.parsers import expat

from detent.core.testrun.suite import Outcome, Suite, TestCase, suite_of

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 32
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
_DOCUMENT = b"<?xml"
_NOT_COLLECTED = "collection failure"
_NOT_IMPORTED = ("ImportError", "ModuleNotFoundError")


class Unreadable(ValueError):
    """The report is no JUnit XML, or beyond a limit."""


def read_junit(data: bytes) -> Suite:
    """The tests of a report, or of several that follow one another. Raises `Unreadable`."""
    if len(data) > MAX_BYTES:
        raise Unreadable(f"the report has {len(data)} bytes; the limit is {MAX_BYTES}")
    cases: list[TestCase] = []
    # Inside of a document the mark is always escaped.
    first, *others = data.split(_DOCUMENT)
    for document in (*((first,) if first.strip() or not others else ()), *(_DOCUMENT + each for each in others)):
        cases += _cases(document)
        if len(cases) > MAX_CASES:
            raise Unreadable(f"the reports have more than {MAX_CASES} tests")
    return suite_of(cases)


def _cases(document: bytes) -> list[TestCase]:
    reader = _Reader()
    try:
        reader.parser.Parse(document, True)  # noqa: FBT003 - its signature
    except expat.ExpatError as error:
        raise Unreadable(f"the report is not valid XML: {error}") from error
    if not reader.is_report:
        raise Unreadable("the report has no test suite")
    return reader.cases


class _Reader:
    def __init__(self) -> None:
        self.cases: list[TestCase] = []
        self.is_report = False
        self._depth = 0
        self._name = ""
        self._outcome = Outcome.PASSED
        self._is_inside = False
        self._is_case = False
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.StartDoctypeDeclHandler = _refuse_doctype

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH or len(self.cases) >= MAX_CASES:
            raise Unreadable(f"the report is deeper than {MAX_DEPTH} or has more than {MAX_CASES} tests")
        if tag in ("testsuite", "testsuites"):
            self.is_report = True
        elif tag == "testcase":
            self._is_case, self._outcome, self._is_inside = True, Outcome.PASSED, False
            self._name = _name(attributes)
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

    def _end(self, tag: str) -> None:
        self._depth -= 1
        if tag == "testcase":
            self._is_case = False
            self.cases.append(TestCase(self._name, self._outcome, self._is_inside))


def _name(attributes: dict[str, str]) -> str:
    """`file::Class::function`; `class::function` where the report names no file."""
    function, owner, file = (attributes.get(key, "") for key in ("name", "classname", "file"))
    if file:
        # In the class name of pytest the path of the file comes first.
        module = file.rpartition(".")[0].replace("/", ".").replace("\\", ".")
        owner = owner.removeprefix(module).strip(".").replace(".", "::")
    return "::".join(part for part in (file, owner, function) if part)[:MAX_NAME]


def _refuse_doctype(*_: object) -> None:
    raise Unreadable("the report declares a document type, which no test runner writes")
