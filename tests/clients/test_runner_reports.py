"""Real runners are asked for a report by the gate, and real tools find what it names."""

import pytest

from detent.core.gate.evidence import Verdict
from tests.clients.client import ClientUnavailable
from tests.clients.runners import installed_tools, path_of
from tests.support.gated import started
from tests.support.project import write
from tests.support.record_reports import CODE, GO_TEST, JEST, LINTED, PLAYWRIGHT, VITEST

IGNORED = "node_modules\ntest-results\n__pycache__\nout.sarif\n"
RUNNERS = {
    "jest": ("jest --ci", {"a.test.js": JEST, "package.json": "{}"}, "a.test.js::calc::fails"),
    "vitest": (
        "npm test",
        {"test/a.test.js": VITEST, "package.json": '{"type": "module", "scripts": {"test": "vitest run"}}'},
        "test/a.test.js::calc > fails",
    ),
    "playwright": ("playwright test", {"a.spec.js": PLAYWRIGHT, "package.json": "{}"}, "a.spec.js::calc \u203a fails"),
    "go": ("go test ./...", {"go.mod": "module calc\n\ngo 1.20\n", "a_test.go": GO_TEST}, "calc::TestFails"),
}
WEAK = "from calc import sub\n\n\ndef test_sub():\n    assert sub(99, 1) is None\n"


@pytest.fixture(scope="session")
def tools():
    try:
        return installed_tools()
    except ClientUnavailable as why:
        pytest.skip(str(why))


@pytest.fixture
def place(tools, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", path_of(tools))
    (tmp_path / "node_modules").symlink_to(tools / "node_modules")
    write(tmp_path, ".gitignore", IGNORED)
    return tmp_path


def judged(handle, gate):
    handle.gates.run(gate)
    [judgement] = handle.gates.judgements("work")["work"]
    return judgement.verdict, judgement.reason


@pytest.mark.parametrize("runner", RUNNERS)
def test_the_gate_names_the_tests_of_the_runner(place, runner):
    command, files, failing = RUNNERS[runner]
    for path, text in files.items():
        write(place, path, text)
    project, handle = started(place, f'{{ kind = "tests", command = "{command}" }}')
    with project:
        verdict, reason = judged(handle, "tests")

        receipt = handle.state.phases["work"].gates["tests"].receipt
        assert verdict is Verdict.FAIL, reason
        assert failing in receipt.failing
        assert len(receipt.skipped) >= 1


def test_mutants_that_survive_are_named(place):
    write(place, "calc.py", "def add(a, b):\n    return a + b\n")
    write(place, "test_calc.py", WEAK)
    gate = '{ kind = "mutation", command = "python -m pytest -q -x", max_mutants = 12, minutes = 5 }'
    project, handle = started(place, gate)
    with project:
        write(place, "calc.py", CODE)
        verdict, reason = judged(handle, "mutation")
        assert verdict is Verdict.FAIL, reason
        assert "calc.py:8 core/" in reason
        assert "calc.py:2" not in reason
        assert (place / "calc.py").read_text() == CODE

        write(place, "test_calc.py", "def test_broken():\n    assert 0\n")
        assert judged(handle, "mutation") == (
            Verdict.ERROR,
            "the check could not run: the tests do not pass without a mutant",
        )


def test_ruff_finds_what_is_new(place):
    write(place, "calc.py", LINTED)
    gate = (
        '{ kind = "findings", command = "ruff check --isolated --no-cache --output-format sarif -o out.sarif .", '
        'report = "out.sarif" }'
    )
    project, handle = started(place, gate)
    with project:
        assert judged(handle, "findings")[0] is Verdict.PASS

        write(place, "calc.py", LINTED.replace("    x = 1\n", "    x = 1\n    y = 2\n"))
        verdict, reason = judged(handle, "findings")
        assert verdict is Verdict.FAIL
        assert reason.startswith("1 new finding of level warning or worse: calc.py:6 F841 (error)"), reason
