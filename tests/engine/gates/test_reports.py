"""What a receipt rests on: the reports of all pytest runs of a command, who ran it and where, and the baseline."""

import os
import subprocess
import sys
import threading

import pytest

from detent.core.gate.evidence import Verdict
from detent.core.reports.limits import MAX_BYTES
from detent.documents.checkpoint import governance
from detent.engine.actor import account
from detent.engine.gates.reports import collected_reports
from detent.render.markdown.report import report_text
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.status import status_text
from tests.support.cheats import BROKEN, COMMAND, FILES, python_on_path
from tests.support.gated import UNITTEST, calculator, started
from tests.support.project import build_project, write

TWICE = f"{COMMAND} tests/test_sub.py tests/test_mul.py && {COMMAND} tests/test_add.py"


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())


def begun(root, command, files=FILES):
    build_project(root, "", files=files)
    return started(root, f'{{ kind = "tests", command = "{command}" }}')


def judged(handle):
    [judgement] = handle.gates.judgements()["work"]
    return judgement.verdict, judgement.reason


def status(handle):
    return status_text(handle.state, now=handle.now(), canvas=Canvas(width=100))


# Reports


def test_the_tests_of_two_pytest_runs_in_one_command_are_counted_together(tmp_path):
    project, handle = begun(tmp_path, TWICE)
    with project:
        handle.gates.run("tests")
        assert judged(handle) == (Verdict.PASS, f"passed: {TWICE}: 3 tests (start: 3)")

        (tmp_path / "tests/test_sub.py").write_text("")
        write(tmp_path, "calc.py", BROKEN)
        handle.gates.run("tests")
        assert judged(handle)[0] is Verdict.FAIL


def test_what_several_processes_write_is_collected_and_nobody_waits_for_a_reader():
    write_it = "import sys; open(sys.argv[1], 'w').write(sys.argv[2] * 200_000)"
    with collected_reports() as reports:
        for text in "ab":
            subprocess.run([sys.executable, "-c", write_it, reports.path, text], check=True)

        assert reports.read() == (b"a" * 200_000 + b"b" * 200_000,)
        assert reports.read()
    assert not os.path.exists(reports.path)
    assert not [thread for thread in threading.enumerate() if "_collect" in thread.name]


def test_without_a_report_there_is_none_and_a_file_in_place_of_the_pipe_is_read():
    with collected_reports() as reports:
        assert reports.read() == ()
    with collected_reports() as reports:
        os.unlink(reports.path)
        with open(reports.path, "w") as file:
            file.write("<testsuite/>")
        assert reports.read() == (b"<testsuite/>",)


def test_a_report_beyond_the_limit_is_not_kept():
    with collected_reports() as reports:
        with open(reports.path, "wb") as pipe:
            for _ in range(MAX_BYTES // (1024 * 1024) + 8):
                pipe.write(b"x" * 1024 * 1024)

        [read] = reports.read()

    assert MAX_BYTES < len(read) < MAX_BYTES + 1024 * 1024


# Who and where


def test_a_receipt_says_who_ran_it_and_where(tmp_path):
    project, handle = begun(tmp_path, COMMAND)
    with project:
        handle.gates.run("tests")

        receipt = handle.state.phases["work"].gates["tests"].receipt
        here = account(), os.uname().nodename
        assert (receipt.account, receipt.host) == here
        [gate] = governance(handle.state, "work")["quality_gates"]
        assert (gate["ran_by"], gate["ran_as"], gate["ran_on"]) == ("detent", *here)
        assert f"exit code 0, 3 tests, {here[0]} on {here[1]}" in report_text(handle.state, handle.log()).replace(
            "\\", ""
        )


# Files only


def test_while_no_run_has_named_the_tests_gate_and_status_say_files_only(tmp_path):
    project, handle = begun(tmp_path, COMMAND)
    with project:
        assert judged(handle) == (Verdict.PENDING, "no run yet; baseline: files only")
        assert "baseline     files only; detent gate baseline tests names the tests" in status(handle)

        write(tmp_path, "tests/conftest.py", "import nothing\n")
        handle.gates.run("tests")
        assert judged(handle)[1].endswith("; baseline: files only")

        (tmp_path / "tests/conftest.py").unlink()
        handle.gates.baseline("tests")
        assert "files only" not in judged(handle)[1]
        assert "files only" not in status(handle)


def test_a_runner_that_does_not_name_its_tests_leaves_the_baseline_at_the_files(tmp_path):
    calculator(tmp_path)
    project, handle = started(tmp_path, f'{{ kind = "tests", command = "{UNITTEST}" }}')
    with project:
        handle.gates.run("tests")

        assert judged(handle) == (Verdict.PASS, f"passed: {UNITTEST}: 1 test (start: 1); baseline: files only")
        assert "files only; the test runner does not name its tests" in status(handle)


def test_without_a_command_the_first_whole_run_names_the_tests(tmp_path):
    build_project(tmp_path, "", files=FILES)
    project, handle = started(tmp_path, '{ kind = "tests" }')
    with project:
        assert "files only; the first whole run names the tests" in status(handle)


# Settings that cannot be told apart


def test_a_file_whose_part_cannot_be_told_names_the_gate_to_accept_it_at(tmp_path):
    files = FILES | {"package.json": "{}"}
    build_project(tmp_path, "", files=files)
    project, handle = started(tmp_path, f'{{ kind = "tests", name = "unit", command = "{COMMAND}" }}')
    with project:
        write(tmp_path, "package.json", "{")
        handle.gates.run("unit")

        [judgement] = handle.gates.judgements()["work"]
        assert "detent gate accept unit file:package.json -m WHY" in judgement.reason
