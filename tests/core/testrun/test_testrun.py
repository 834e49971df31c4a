"""Each runner's own words, as it prints them: green, red and empty."""

import shlex
import shutil
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from detent.core.testrun.verdict import Result, coverage, judge, repeats, runner, signature
from tests.support.gated import WITHOUT_PLUGINS
from tests.support.test_commands import RUNS

PASSED, FAILED, UNCLEAR = Result.PASSED, Result.FAILED, Result.UNCLEAR

SAMPLES = tomllib.loads(Path(__file__).with_name("testrun_output.toml").read_text("utf-8"))
GREEN = {name: (sample["output"], sample.get("passed")) for name, sample in SAMPLES["green"].items()}
RED = {name: (sample["output"], sample.get("failures")) for name, sample in SAMPLES["red"].items()}
EMPTY = {name: sample["output"] for name, sample in SAMPLES["empty"].items()}


@pytest.mark.parametrize("name", GREEN)
@pytest.mark.parametrize("exit_code", [0, None])
def test_a_recognised_success_is_passed(name, exit_code):
    output, passed = GREEN[name]

    run = judge(output, exit_code)

    assert (run.result, run.passed, run.failures or 0, run.error) == (PASSED, passed, 0, None)


@pytest.mark.parametrize("name", GREEN)
@pytest.mark.parametrize("exit_code", [1, 8, 101, 134, 139, -11, 255])
def test_no_output_makes_a_failing_exit_code_passed(name, exit_code):
    assert judge(GREEN[name][0], exit_code).result is FAILED


@pytest.mark.parametrize("name", RED)
@pytest.mark.parametrize("exit_code", [0, 1, None])
def test_no_exit_code_hides_a_failure_that_was_told(name, exit_code):
    output, failures = RED[name]

    run = judge(output, exit_code)

    assert (run.result, run.failures or None) == (FAILED, failures)
    assert run.error
    assert run.signature


@pytest.mark.parametrize("name", EMPTY)
@pytest.mark.parametrize("exit_code", [0, 1, 5, None])
def test_a_run_without_tests_is_never_passed(name, exit_code):
    run = judge(EMPTY[name], exit_code)

    assert run.result is UNCLEAR
    assert "no test" in run.error


@pytest.mark.parametrize("output", ["", "done\n", "2 xfailed in 0.1s\n"])
def test_an_exit_code_alone_is_no_success(output):
    assert judge(output, 0).result is UNCLEAR
    assert judge(output, None).result is UNCLEAR


@pytest.mark.parametrize("exit_code", [-9, -15, -2, 124, 129, 130, 137, 143])
def test_a_run_that_was_stopped_is_unclear_unless_a_failure_was_counted(exit_code):
    cut_short = judge("test_a.py ..", exit_code)

    assert cut_short.result is UNCLEAR
    assert "stopped" in cut_short.error
    assert judge("3 passed in 0.02s", exit_code).result is UNCLEAR
    assert judge("1 failed, 3 passed in 0.02s", exit_code).result is FAILED


@pytest.mark.parametrize("exit_code", [126, 127])
def test_a_command_that_did_not_start_tells_nothing_about_the_tests(exit_code):
    assert judge("sh: 1: jest: not found", exit_code).result is UNCLEAR


@pytest.mark.parametrize("exit_code", [2, 3, 4, 5])
def test_pytest_says_by_its_exit_code_that_it_did_not_test(exit_code):
    assert judge("", exit_code, by="pytest").result is UNCLEAR
    assert judge("=== test session starts ===\nKeyboardInterrupt", exit_code).result is UNCLEAR
    assert judge("1 failed, 1 passed in 1.00s", exit_code).result is FAILED
    assert judge("make: *** [Makefile:3: test] Error 1", exit_code).result is FAILED


def test_pytest_that_the_code_ended_did_not_pass():
    ended = "..\n!!!!!!!!!!!!!!!!!!!!!!!! _pytest.outcomes.Exit: enough !!!!!!!!!!!!!!!!!!!!!!!!\n2 passed in 0.01s\n"

    run = judge(ended, 0)

    assert (run.result, run.error) == (Result.UNCLEAR, "pytest was ended before its last test")
    assert judge(ended.replace("!", ""), 0).result is Result.PASSED


def test_a_green_run_below_its_coverage_is_failed_and_says_why():
    run = judge(
        "TOTAL   100   20   80%\nFAIL Required test coverage of 90% not reached. Total: 80.00%\n3 passed in 1s",
        1,
    )

    assert (run.result, run.passed, run.coverage) == (FAILED, 3, 80.0)
    assert run.error.startswith("FAIL Required test coverage of 90%")


def test_words_inside_a_line_are_not_a_summary():
    chatter = "it says '1 failed' somewhere\nthe last run had 3 passed in 2s\nno BUILD FAILURE today\n2 passed in 0.01s"

    assert judge(chatter, 0).result is PASSED


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("pytest", "FAILED t.py::test_x - assert 1 == 2"),
        ("pytest, collection", "E   ModuleNotFoundError: No module named 'x'"),
        ("unittest", "AssertionError: 1 != 2"),
        ("go", "x_test.go:10: got 2"),
        ("go -json", "x_test.go:5: got 2, want 3"),
        ("cargo", "thread 'tests::bad' (17762) panicked at src/lib.rs:2:100:"),
        ("cargo, not built", "error[E0308]: mismatched types"),
        ("jest", "● calc \u203a adds"),
        ("vitest", "FAIL  src/a.test.ts > calc > adds"),
        ("mocha", "AssertionError: 2 == 3"),
        ("node, TAP", "error: '2 == 3'"),
        ("maven", "[ERROR]   CalcTest.adds:12 expected: <3> but was: <2>"),
        ("rspec", "10 examples, 1 failure, 2 pending"),
        ("go, not built", "./x.go:3:2: undefined: y"),
    ],
)
def test_the_error_is_the_line_that_tells_most(name, error):
    assert judge(RED[name][0], 1).error == error


def test_without_any_telling_line_the_last_one_or_the_exit_code_is_the_error():
    assert judge("one\ntwo\n\n", 3).error == "two"
    assert judge("", 3).error == "exit code 3"


def test_an_error_is_cut():
    run = judge("E   " + "x" * 5000, 1)

    assert len(run.error or "") == 200


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("failed 2026-02-11T10:30:00.123Z", "failed 2026-03-12 11:31:01,5"),
        ("at 0x7fff5fbff8c0", "at 0x1"),
        ("a.js:1:2 broke", "a.js:30:4 broke"),
        ("at <anonymous>:1:2", "at <anonymous>:3:4"),
        ("SyntaxError at :1:2", "SyntaxError at :3:4"),
        ('File "a.py", line 3, in f', 'File "a.py", line 4, in f'),
        ("1 failed, 11 passed in 0.40s", "1 failed, 11 passed in 12.91s"),
        ("took (1.038138ms)", "took (22ms)"),
        ("no /tmp/pytest-of-me/pytest-1/x.json", "no /tmp/pytest-of-me/pytest-22/x.json"),
        ("thread 'a' (17762) panicked at src/lib.rs:2:100:", "thread 'a' (9) panicked at src/lib.rs:3:7:"),
        ("session 123e4567-e89b-12d3-a456-426614174000", "session 00000000-e89b-12d3-a456-426614174000"),
    ],
)
def test_the_same_failure_has_the_same_signature_whenever_and_wherever_it_ran(one, other):
    assert signature(one) == signature(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("assert 1 == 2", "assert 1 == 3"),
        ("a.js:1:2 broke", "b.js:1:2 broke"),
        ("port 8080 in use", "port 8081 in use"),
        ("{'a':1} is wrong", "{'a':2} is wrong"),
        ("1 failed", "2 failed"),
        ("expected 3 but was 4", "expected 3 but was 5"),
        ("http://localhost:80/a", "http://localhost:80/b"),
    ],
)
def test_different_failures_keep_different_signatures(one, other):
    assert signature(one) != signature(other)


@given(st.text())
def test_a_signature_is_its_own(error):
    assert signature(signature(error)) == signature(error)


def test_fewer_failures_of_the_same_kind_are_not_the_same_failure():
    first = judge("FAILED t.py::test_x - assert 1 == 2\n3 failed in 0.40s", 1)
    later = judge("FAILED t.py::test_x - assert 1 == 2\n2 failed, 1 passed in 0.50s", 1)

    assert first.error == later.error
    assert first.signature != later.signature


def test_repeats_counts_the_last_runs_that_failed_alike():
    assert repeats("E", []) == 1
    assert repeats("E", ["E", "E"]) == 3
    assert repeats("E", ["E", "F", "E"]) == 2
    assert repeats("E", ["E", None]) == 1
    assert repeats(None, [None, None]) == 0


@pytest.mark.parametrize(
    ("output", "percent"),
    [
        ("Name  Stmts  Miss  Cover\nTOTAL    100    17    83%", 83),
        ("TOTAL    100     17     20     3  81.25%", 81.25),
        ("All files |   85.71 |       80 |      90 |   85.71 |", 85.71),
        ("# all files  |  91.50 |  80.00 |  90.00 |", 91.5),
        ("Statements   : 85.71% ( 12/14 )\nLines        : 90% ( 9/10 )", 85.71),
        ("ok  \tx\t0.01s\tcoverage: 83.1% of statements\nok  \ty\t0.01s\tcoverage: 90.0% of statements", 83.1),
        ("83.10% coverage, 12/15 lines covered", 83.1),
        ("TOTAL  12  3  75.00%  5  1  80.00%  20  4  81.00%  0  0  -", 81),
        ("| Total   | 85.71% | 80% | 90% |", 85.71),
        ("coverage: [no statements]", None),
        ("we want 100% of it", None),
        ("Statements : 185%", None),
    ],
)
def test_coverage_is_read_where_a_tool_prints_it(output, percent):
    assert coverage(output) == percent


RUNS_NOT = [
    "cat jest.config.js",
    "grep pytest x",
    "grep -rn 'npm test' .",
    "pip install pytest",
    "pip install -r requirements-test.txt",
    "uv add --dev pytest",
    "uv pip install pytest",
    "npm install --save-dev jest",
    "npm init test",
    "npm run build",
    "npm run latest",
    "yarn add jest",
    "git commit -m pytest",
    "git checkout test",
    "test -f pytest.ini",
    "[ -x pytest ]",
    "echo pytest",
    "which pytest",
    "pytest --version",
    "pytest --collect-only -q",
    "python -m pytest --help",
    "python test.py",
    "python -c 'import pytest'",
    "python -m pip install pytest",
    "python -m coverage report",
    "python manage.py migrate test",
    "node test.js --test",
    "node jest.config.js",
    "cargo build --tests",
    "cargo test --no-run",
    "cargo add test",
    "go vet ./test",
    "go test -c ./pkg",
    "go build test",
    "mvn package",
    "gradle assembleAndroidTest",
    "make build",
    "make latest",
    "make -n --dry-run test",
    "docker build -t test .",
    "ls tests",
    "rm -rf pytest",
    "env",
    "timeout 5",
    "sudo",
    "npx",
    "uv run",
    "A=1",
    "npx --yes create-vite",
    "dotnet build Test.sln",
]


@pytest.mark.parametrize("command", RUNS)
def test_a_command_that_runs_tests_is_known(command):
    assert runner(words(command)) == RUNS[command]


@pytest.mark.parametrize("command", RUNS_NOT)
def test_a_command_that_only_names_a_runner_is_none(command):
    assert runner(words(command)) is None


def words(command):
    return shlex.split(command)


@given(
    st.lists(
        st.sampled_from(["npx", "uv", "run", "timeout", "-m", "python", "env", "--", "-", "", "A=1", "node", "npm"])
    )
)
def test_no_command_is_too_odd(parts):
    runner(parts)


PYTHON_TESTS = {
    "green": ("def test_ok(): pass\n", PASSED),
    "red": ("def test_ok(): pass\ndef test_bad(): assert 1 == 2\n", FAILED),
    "broken": ("import nowhere_to_be_found\n", FAILED),
    "empty": ("", UNCLEAR),
    "skipped": ("import pytest\n@pytest.mark.skip\ndef test_x(): pass\n", UNCLEAR),
}


@pytest.mark.parametrize("name", PYTHON_TESTS)
def test_pytest_itself(name, tmp_path):
    source, result = PYTHON_TESTS[name]
    (tmp_path / "test_it.py").write_text(source)

    run = executed([sys.executable, "-m", "pytest", *WITHOUT_PLUGINS.split(), "test_it.py"], tmp_path)

    assert run.result is result


def test_pytest_called_wrongly(tmp_path):
    assert (
        executed([sys.executable, "-m", "pytest", *WITHOUT_PLUGINS.split(), "--no-such-option"], tmp_path).result
        is UNCLEAR
    )


UNITTESTS = {
    "green": ("def test_a(self): pass", PASSED, 1, 0),
    "red": ("def test_a(self): pass\ndef test_b(self): self.fail()\ndef test_c(self): 1 / 0", FAILED, 1, 2),
    "empty": ("x = 1", UNCLEAR, 0, 0),
}


@pytest.mark.parametrize("name", UNITTESTS)
def test_unittest_itself(name, tmp_path):
    body, result, passed, failures = UNITTESTS[name]
    source = "import unittest\nclass T(unittest.TestCase):\n" + textwrap.indent(body, "    ")
    (tmp_path / "case.py").write_text(source)

    run = executed([sys.executable, "-m", "unittest", "case"], tmp_path)

    assert (run.result, run.passed, run.failures) == (result, passed, failures)


NODE_TESTS = {
    "green": ("test('adds', () => {});", PASSED, "# tests 1\n# pass 1\n# fail 0\n", 0),
    "red": ("test('breaks', () => { throw new Error('no'); });", FAILED, "# tests 1\n# pass 0\n# fail 1\n", 1),
}


@pytest.mark.parametrize("name", NODE_TESTS)
@pytest.mark.parametrize("reporter", ["tap", "spec"])
def test_node_itself(name, reporter, tmp_path):
    source, result, recorded, recorded_exit = NODE_TESTS[name]
    (tmp_path / "a.test.js").write_text(f"const test = require('node:test');\n{source}\n")

    if node := shutil.which("node"):
        run = executed([node, "--test", f"--test-reporter={reporter}", "a.test.js"], tmp_path)
    else:
        run = judge(recorded, recorded_exit)

    assert (run.result, run.failures) == (result, recorded_exit)


def executed(command, directory):
    done = subprocess.run(command, check=False, cwd=directory, capture_output=True, text=True, timeout=120)
    return judge(done.stdout + done.stderr, done.returncode)


@given(st.text(), st.none() | st.integers(-20, 260))
def test_any_output_is_judged(output, exit_code):
    run = judge(output, exit_code)

    assert (run.error is None) == (run.result is PASSED) == (run.signature is None)
    assert not exit_code or run.result is not PASSED


HOSTILE = [
    "\n",
    "FAILED " + ":" * 1990 + "\n",
    "1 tests, " + "1" * 1990 + "\n",
    "x" * 5000,
    '{"Action":',
    "\x1b]a",
    "a.b" * 900,
]


@pytest.mark.parametrize("piece", HOSTILE, ids=range(len(HOSTILE)))
def test_a_long_hostile_output_is_judged(piece):
    """Work that grows faster than the output would not end here."""
    assert judge(piece * (200_000 // len(piece)), 1).result is not PASSED
