"""The table itself: complete in every run of the tests, and strict where `make conformance` uses it."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance.requirements import REQUIREMENTS
from tests.conformance.table import WIDTH, not_shown, rows, total

HERE = Path(__file__).parent
LISTED = {"A-1": "one thing", "A-2": "another"}
SHOWN = {"A-1": {"test_a.py::test_one": "passed"}, "A-2": {"test_a.py::test_two": "passed"}}


def named_ids(path: Path) -> Iterator[str]:
    """The arguments of every `pytest.mark.req(…)` in the file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.req":
            yield from (ast.literal_eval(argument) for argument in node.args)


def test_every_requirement_has_a_test_and_every_mark_a_requirement() -> None:
    named = {requirement for path in HERE.glob("test_*.py") for requirement in named_ids(path)}

    assert named == REQUIREMENTS.keys()


def test_the_page_counts_and_explains_the_requirements() -> None:
    page = (HERE.parent.parent / "docs/conformance.md").read_text()

    assert f"{len(REQUIREMENTS)} of {len(REQUIREMENTS)} requirements shown" in page
    groups = {tuple(name.split("-")[:2]) for name in REQUIREMENTS if name[0].isdigit()}
    unexplained = [
        f"{seed}-{group}" for seed, group in groups if f"`{group}`" not in page and f"`{seed}-{group}-1`" not in page
    ]
    assert sorted(unexplained) == []


def test_names_of_tests_fit_into_the_table() -> None:
    names = [
        f"{path.name}::{node.name}"
        for path in HERE.glob("test_*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
    ]

    assert max(map(len, names)) <= WIDTH - 20


def test_a_table_where_all_is_shown_has_no_problems() -> None:
    assert not_shown(LISTED, SHOWN) == []
    assert list(rows(LISTED, SHOWN)) == [
        "A-1        passed   test_a.py::test_one",
        "A-2        passed   test_a.py::test_two",
    ]
    assert total(LISTED, SHOWN) == "2 of 2 requirements shown by 2 tests"


@pytest.mark.parametrize(
    ("shown", "name", "result"),
    [
        ({"A-1": SHOWN["A-1"]}, "A-2", "no test"),
        ({**SHOWN, "A-2": {"test_a.py::test_two": "failed"}}, "A-2", "failed"),
        ({**SHOWN, "A-2": {"test_a.py::test_two": "skipped"}}, "A-2", "skipped"),
        ({**SHOWN, "A-3": {"test_a.py::test_three": "passed"}}, "A-3", "unknown"),
    ],
)
def test_whatever_did_not_pass_is_not_shown(shown: dict[str, dict[str, str]], name: str, result: str) -> None:
    assert not_shown(LISTED, shown) == [name]
    assert [row.split()[:2] for row in rows(LISTED, shown) if result in row] == [[name, *result.split()][:2]]


def test_the_run_fails_unless_everything_is_shown(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n"
        "@pytest.mark.req('AC-001a', 'AC-999z')\n@pytest.mark.parametrize('n', ['a/b', 2])\ndef test_one(n): pass\n"
        "@pytest.mark.req('AC-001b')\ndef test_two(): pytest.skip('not here')\n"
    )
    root = HERE.parent.parent
    plugin = ("-p", "tests.conformance.table", "-c", str(root / "pyproject.toml"), "-p", "no:cacheprovider")

    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", str(tmp_path), *plugin],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    table = run.stdout.partition(" conformance ")[2].partition("short test summary")[0]
    assert run.returncode == 1
    assert "AC-001a    passed   test_some.py::test_one\n" in table
    assert "AC-001b    skipped  test_some.py::test_two\n" in table
    assert "AC-001c    no test  -\n" in table
    assert "AC-999z    unknown  test_some.py::test_one\n" in table
    assert f"1 of {len(REQUIREMENTS)} requirements shown" in table
    assert max(map(len, table.splitlines())) <= WIDTH
