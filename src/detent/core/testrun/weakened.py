"""Whether a change of one file weakens the tests that stood, told from its text alone.

A first net for commits, not a proof: the gate that runs the tests as they were is the proof. Every rule is strict where
text cannot tell: lines of a test that stood may be added to, and not changed or removed.
"""

import re
from enum import StrEnum

from detent.core.testrun.runner_files import Role
from detent.core.testrun.runner_part import runner_part

#: Words in added lines with which the known runners leave a test out, or expect it to fail.
_LEFT_OUT = re.compile(
    r"\b(?:skip\w*|xfail|expectedFailure|Ignore[d]?|Disabled|unittest\.SkipTest|collect_ignore\w*|__test__"
    r"|x(?:it|test|describe|context)|(?:it|test|describe|context)\.(?:only|skip|todo|fails?|failing|concurrent\.skip)"
    r"|f(?:it|describe)|t\.Skip\w*|#\[ignore|pytestmark|should_panic)\b"
)
#: Lines that carry no test: blanks, comments, imports, brackets alone.
_IDLE = re.compile(r"\s*(?:#(?!\[).*|//.*|/\*.*|\*.*|import\b.*|from\b.*\bimport\b.*|use\b.*;|[\])}(\[{;,]*)\s*")
#: The name of a test in Python.
_PYTHON_TEST = re.compile(rb"^\s*(?:async\s+)?def\s+(test\w*)", re.MULTILINE)
_MAX_SHOWN = 80


class Weakening(StrEnum):
    DELETED = "deleted"
    #: Lines of a test that stood are changed or gone.
    CHANGED = "changed"
    #: A test is skipped, or expected to fail.
    LEFT_OUT = "left out"
    #: The configuration of the runner differs.
    SETTINGS = "settings"


def weakening(path: str, role: Role, before: bytes | None, after: bytes | None) -> tuple[Weakening, str] | None:
    """The harm that the change does to the tests, with a sentence about it; None if none can be seen."""
    if before == after:
        return None
    match role:
        case Role.SETTINGS:
            how = "added" if before is None else "deleted" if after is None else "changed"
            return Weakening.SETTINGS, f"{path} steers the test runner and is {how}"
        case Role.STAND_IN:
            return (Weakening.SETTINGS, f"{path} takes the place of a module of the runner") if before is None else None
        case Role.SHARED:
            old, new = runner_part(path, before), runner_part(path, after)
            if old is not None and old == new:
                return None
            which = sorted(key for key in {*(old or ()), *(new or ())} if (old or {}).get(key) != (new or {}).get(key))
            what = ", ".join(which) or "it cannot be read"
            return Weakening.SETTINGS, f"the test runner's part of {path} differs ({what})"
        case Role.TEST:
            return _of_test(path, before, after)


def _of_test(path: str, before: bytes | None, after: bytes | None) -> tuple[Weakening, str] | None:
    if before is None:
        return None
    if after is None:
        return Weakening.DELETED, f"{path} is deleted"
    old, new = _lines(before), _lines(after)
    added = new[:]
    for line in old:
        if line in added:
            added.remove(line)
    for line in added:
        if _LEFT_OUT.search(line):
            return Weakening.LEFT_OUT, f"{path} leaves a test out: {line.strip()[:_MAX_SHOWN]}"
    lost = _first_lost(old, new)
    return (
        None if lost is None else (Weakening.CHANGED, f"{path} changes a test that stood: {lost.strip()[:_MAX_SHOWN]}")
    )


def _first_lost(old: list[str], new: list[str]) -> str | None:
    """The first line that is no longer there in its order."""
    rest = iter(new)
    return next((line for line in old if all(line != other for other in rest)), None)


def _lines(content: bytes) -> list[str]:
    text = content.decode("utf-8", "replace")
    return [line.rstrip() for line in text.splitlines() if not _IDLE.fullmatch(line)]


def removed_tests(before: bytes | None, after: bytes | None) -> frozenset[str]:
    """The names of the Python tests that the file had and has no more."""
    old, new = (frozenset(_PYTHON_TEST.findall(content or b"")) for content in (before, after))
    return frozenset(name.decode() for name in old - new)
