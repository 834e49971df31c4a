"""Changes of a test file or of a runner's settings that weaken the tests, told from the text."""

import pytest

from detent.core.testrun.runner_files import Role
from detent.core.testrun.weakened import Weakening, removed_tests, weakening

STOOD = b"""import cart


def test_empty():
    # nothing in it
    assert cart.total([]) == 0


def test_sum():
    assert cart.total([1, 2]) == 3
"""


def change(after: bytes | None, before: bytes | None = STOOD, *, path="tests/test_cart.py", role=Role.TEST):
    seen = weakening(path, role, before, after)
    return None if seen is None else seen[0]


@pytest.mark.parametrize(
    "after",
    [
        STOOD,
        STOOD + b"\n\ndef test_more():\n    assert cart.total([4]) == 4\n",
        STOOD.replace(b"import cart\n", b"import cart\nimport sys\n"),
        STOOD.replace(b"    # nothing in it\n", b""),
        STOOD.replace(b"def test_sum", b"def test_two():\n    assert True\n\n\ndef test_sum"),
    ],
)
def test_what_stood_may_be_added_to(after):
    assert change(after) is None


@pytest.mark.parametrize(
    ("after", "how"),
    [
        (None, Weakening.DELETED),
        (STOOD.replace(b"== 3", b"== 4"), Weakening.CHANGED),
        (STOOD.replace(b"    assert cart.total([1, 2]) == 3\n", b"    pass\n"), Weakening.CHANGED),
        (STOOD.partition(b"def test_sum")[0], Weakening.CHANGED),
        (b"import pytest\n" + STOOD.replace(b"def test_sum", b"@pytest.mark.skip\ndef test_sum"), Weakening.LEFT_OUT),
        (STOOD.replace(b"def test_sum", b"@pytest.mark.xfail\ndef test_sum"), Weakening.LEFT_OUT),
        (STOOD.replace(b"import cart", b"import cart\npytestmark = []"), Weakening.LEFT_OUT),
        (b"", Weakening.CHANGED),
    ],
)
def test_a_test_that_is_gone_changed_or_left_out_is_weakened(after, how):
    assert change(after) is how


def test_other_runners_leave_tests_out_too():
    stood = b"it('adds', () => {\n  expect(1 + 1).toBe(2)\n})\n"
    for word in (b"it.skip", b"xit", b"it.only", b"it.todo"):
        assert change(stood.replace(b"it(", word + b"(", 1), stood, path="a.test.js") in (
            Weakening.LEFT_OUT,
            Weakening.CHANGED,
        )
    assert change(b"func TestA(t *testing.T) {\n\tt.Skip()\n}\n", b"func TestA(t *testing.T) {\n}\n", path="a_test.go")


def test_the_settings_of_a_runner_may_not_change():
    for before, after in ((b"[pytest]\n", b"[pytest]\naddopts = -k fast\n"), (None, b"x"), (b"x", None)):
        assert change(after, before, path="pytest.ini", role=Role.SETTINGS) is Weakening.SETTINGS


def test_only_the_runners_part_of_a_shared_file_counts():
    project = b'[project]\nname = "a"\n\n[tool.pytest.ini_options]\naddopts = "-q"\n'
    shared = {"path": "pyproject.toml", "role": Role.SHARED}

    assert change(project.replace(b'"a"', b'"b"'), project, **shared) is None
    assert change(project.replace(b'"-q"', b'"-k none"'), project, **shared) is Weakening.SETTINGS


def test_a_new_test_file_is_fine_and_a_stand_in_is_not():
    assert change(STOOD, None) is None
    assert change(b"x", None, path="json.py", role=Role.STAND_IN) is Weakening.SETTINGS
    assert change(b"y", b"x", path="json.py", role=Role.STAND_IN) is None


def test_removed_tests_are_named():
    assert removed_tests(STOOD, STOOD.partition(b"def test_sum")[0]) == {"test_sum"}
    assert removed_tests(STOOD, None) == {"test_empty", "test_sum"}
