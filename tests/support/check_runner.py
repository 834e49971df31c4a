"""A `CheckRunner` for kinds of gates on values: every run has a given end."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from detent.core.gate.kind import KnownNames
from detent.core.reports.limits import ReportFile


class Ran(NamedTuple):
    output: str = ""
    exit_code: int | None = 0
    duration_s: float = 0.1
    problem: str | None = None
    reports: tuple[bytes, ...] = ()
    directory: str = ""
    files: tuple[ReportFile, ...] = ()
    unread: Mapping[str, str] = MappingProxyType({})


def ran(
    *passed: str,
    skipped: Iterable[str] = (),
    expected: Iterable[str] = (),
    failed: Iterable[str] = (),
    broken: Iterable[str] = (),
    unimported: Iterable[str] = (),
    exit_code: int = 0,
    output: str = "",
) -> Ran:
    """A run of pytest with a report of these tests; `broken` ones failed before the test itself began."""
    inner = dict.fromkeys(passed, "")
    inner |= dict.fromkeys(skipped, "<skipped type='pytest.skip'/>")
    inner |= dict.fromkeys(expected, "<skipped type='pytest.xfail'/>")
    inner |= dict.fromkeys(failed, "<failure message='x'/>")
    inner |= dict.fromkeys(broken, "<error message='failed on setup'/>")
    inner |= dict.fromkeys(unimported, "<failure message='ImportError: cannot import name x'/>")
    cases = "".join(
        f"<testcase classname='t' name='{name}' file='t.py'>{body}</testcase>" for name, body in inner.items()
    )
    return Ran(output=output, exit_code=exit_code, reports=(f"<testsuite>{cases}</testsuite>".encode(),))


class Runner:
    """`run` is the end of every run in the project and in a copy of it, `before` that on the files of the start."""

    def __init__(
        self,
        run: Ran,
        *,
        protected: Ran | None = None,
        known: KnownNames | None = None,
        keeps: bool = False,
        part: str | None = None,
        rewrites: bool = False,
        accepted: Iterable[str] = (),
        original: Ran | None = None,
        before: Ran | None = None,
        stood: Collection[str] = (),
        command: str | None = "pytest -q",
        named: tuple[str, ...] = (),
        has_new_tests: bool = True,
        last: KnownNames | None = None,
        begun: Ran | None = None,
        changed: Mapping[str, Mapping[int, bytes]] = MappingProxyType({}),
        present: Collection[str] = (),
        settings: tuple[str, ...] = (),
    ) -> None:
        self._run, self._protected, self._known, self._keeps, self._part = run, protected, known, keeps, part
        self._rewrites, self._accepted = rewrites, frozenset(accepted)
        self._before, self._stood, self._command, self._named = before or Ran(), stood, command, named
        self._has_new_tests, self._original = has_new_tests, original
        self._last, self._begun, self._settings = last, begun, settings
        self._changed, self._present = changed, present
        self.kept: list[list[str]] = []
        self.asked: list[tuple[str, ...]] = []

    def run(self, command: str) -> Ran:
        return self._run

    def run_protected(self, command: str) -> Ran | None:
        return self._protected

    def run_original(self, command: str) -> Ran | None:
        return self._original

    def run_copy(self, command: str, *, of_start: bool, only: Collection[str] = ()) -> Ran:
        self.asked.append(tuple(only))
        return self._before if of_start else self._run

    def known(self, command: str) -> KnownNames | None:
        return self._known

    def last_pass(self, command: str) -> KnownNames | None:
        return self._last

    def accepted(self) -> frozenset[str]:
        return self._accepted

    def keep(self, names: frozenset[str]) -> str:
        self.kept.append(sorted(names))
        return f"kept-{len(self.kept)}"

    def rewrites_tests(self) -> bool:
        return self._rewrites

    def tests_rewritten_by(self) -> str | None:
        return None

    def is_protected(self) -> bool:
        return self._keeps

    def selection(self, command: str) -> str | None:
        return self._part

    def test_command(self) -> str | None:
        return self._command

    def named(self) -> tuple[str, ...]:
        return self._named

    def stood(self, test: str) -> bool:
        return test in self._stood

    def run_before(self, command: str) -> Ran | None:
        return self._begun

    def run_mutants(self, command: str, lines: Mapping[str, Collection[int]], *, most: int, minutes: float) -> Ran:
        return self._run

    def changed_lines(self, against: str) -> Mapping[str, Mapping[int, bytes]]:
        return self._changed

    def present(self) -> Collection[str]:
        return self._present

    def changed_settings(self) -> tuple[str, ...]:
        return self._settings

    def changed_files(self, patterns: Sequence[str]) -> tuple[str, ...]:
        return self._settings

    def has_new_tests(self) -> bool:
        return self._has_new_tests
