"""The tests of one run by name, and how many there were of each outcome."""

from collections.abc import Iterable
from enum import StrEnum

import msgspec


class Outcome(StrEnum):
    """The outcome of a test. MISSING: it is not in the run at all."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    EXPECTED_FAIL = "expected to fail"
    MISSING = "missing"


#: Of several cases of one function the first of these counts: it is skipped only if every case is.
_WORST_FIRST = (Outcome.FAILED, Outcome.EXPECTED_FAIL, Outcome.PASSED, Outcome.SKIPPED, Outcome.MISSING)


class Counts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cases of a run. A function with three parameter sets is three cases."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    expected_fail: int = 0


class TestCase(msgspec.Struct, frozen=True):
    #: pytest would take the name for a class of tests.
    __test__ = False

    #: File or class, `::`, function. Cases with other parameters have the same name. Empty for a file that could not be
    #: collected.
    name: str
    outcome: Outcome
    #: It failed in the test itself: not before it, and not because something could not be imported.
    is_inside: bool = False


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """The tests of one run."""

    counts: Counts
    #: Function to the worst outcome of its cases.
    outcomes: dict[str, Outcome]
    #: Failures without a name: files that could not be collected.
    unnamed: int = 0
    #: Functions of which a case failed in the test itself.
    failed_inside: frozenset[str] = frozenset()

    @property
    def tried(self) -> frozenset[str]:
        """The functions that passed or failed. A test that was skipped before is not missed afterwards."""
        counted = (Outcome.PASSED, Outcome.FAILED)
        return frozenset(name for name, outcome in self.outcomes.items() if outcome in counted)

    @property
    def left_out(self) -> tuple[str, ...]:
        """The functions that were skipped or expected to fail."""
        kinds = (Outcome.SKIPPED, Outcome.EXPECTED_FAIL)
        return tuple(name for name, outcome in self.outcomes.items() if outcome in kinds)

    @property
    def passed(self) -> frozenset[str]:
        return frozenset(name for name, outcome in self.outcomes.items() if outcome is Outcome.PASSED)

    @property
    def failed(self) -> tuple[str, ...]:
        return tuple(name for name, outcome in self.outcomes.items() if outcome is Outcome.FAILED)


def suite_of(cases: Iterable[TestCase]) -> Suite:
    """The suite of these cases. Cases of a function are merged."""
    outcomes: dict[str, Outcome] = {}
    failed_inside: set[str] = set()
    unnamed = 0
    numbers = dict.fromkeys(Outcome, 0)
    for case in cases:
        numbers[case.outcome] += 1
        name = case.name
        if not name:
            unnamed += 1
        else:
            known = outcomes.get(name, Outcome.MISSING)
            outcomes[name] = min(known, case.outcome, key=_WORST_FIRST.index)
            if case.is_inside:
                failed_inside.add(name)
    counts = Counts(
        passed=numbers[Outcome.PASSED],
        failed=numbers[Outcome.FAILED],
        skipped=numbers[Outcome.SKIPPED],
        expected_fail=numbers[Outcome.EXPECTED_FAIL],
    )
    return Suite(counts=counts, outcomes=outcomes, unnamed=unnamed, failed_inside=frozenset(failed_inside))
