"""The baseline: the tests that stood when the session began. A run that passes may not lose any of them."""

from collections.abc import Collection

import msgspec

from detent.core.testrun.suite import Outcome, Suite

#: A name that a person accepts stands for a test; with a prefix for a program that runs the tests, or for a file.
OTHERS = ("program:", "file:")


#: What the baseline is while no run has named its tests.
FILES_ONLY = "files only"


class KnownTests(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tests of the baseline for one command."""

    #: Cases that passed in the run that set the baseline.
    count: int
    #: Digest of the list of their functions; None if the run named no test.
    names: str | None = None


class Baseline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The known tests as they were when the session began."""

    #: Command to its tests. The key of a gate without a known command is empty.
    tests: dict[str, KnownTests] = {}
    #: Names of lost tests that a person accepted.
    accepted: tuple[str, ...] = ()
    #: Command to the tests of its last pass.
    last: dict[str, KnownTests] = {}

    def is_named(self, command: str | None) -> bool:
        """Whether the tests of the command are known by name."""
        known = self.tests.get(command or "")
        return known is not None and known.names is not None


def lost_tests(names: Collection[str], suite: Suite) -> dict[str, Outcome]:
    """The tests of the baseline that did not pass in this run, with what became of each."""
    outcomes = suite.outcomes
    return {
        name: outcome
        for name in sorted(names)
        if (outcome := outcomes.get(name, Outcome.MISSING)) is not Outcome.PASSED
    }


def unaccepted(lost: dict[str, Outcome], accepted: Collection[str]) -> dict[str, Outcome]:
    return {name: outcome for name, outcome in lost.items() if name not in accepted}
