"""The report that a pull request gets: files, tests, who worked, who decided, without remnants of a terminal."""

import msgspec
import pytest

from detent.core.session.phase_state import Report, Worker
from detent.engine.project import open_project
from tests.support.people import ME
from tests.support.project import write
from tests.support.stops import STOPS, TESTS, Stop


@pytest.fixture
def told(detent):
    """A session with tests, a change, an agent's turn and a decision."""
    Stop(gates=f'{TESTS}, {{ kind = "approval" }}').build(detent.directory)
    with open_project(detent.directory) as project:
        handle = project.session()
        handle.gates.run("tests")
        write(detent.directory, "a.py", "A = 1\nB = 2\n")
        write(detent.directory, "new.py", "C = 3\n")
        handle.record_agent_started("work", "engineer", "run-1/work/1")
        worker = Worker(agent="claude-code", model="opus", version="2.1.0")
        handle.record_agent_ended("run-1/work/1", succeeded=True, report=Report(summary="did it", worker=worker))
        handle.gates.run("tests")
        handle.approve("looked at it")
    return detent


def test_changed_files_have_a_diffstat(told):
    text = told("report").ok().out

    assert "2 files changed, 2 lines added, 0 lines removed, from PRE\\_work\\_v1 to now." in text
    assert "| a.py | modified | +1 | -0 |" in text
    assert "| new.py | added | +1 | -0 |" in text


def test_tests_before_and_after_who_worked_and_who_decided(told):
    text = told("report").ok().out

    assert "| 1 of 2 work | tests | 2 passed | 2 tests |" in text
    assert "| 1 of 2 work | claude-code | opus | 2.1.0 | 1 |" in text
    assert f"- {ME} approved approval at 1 of 2 work ({ME}" in text
    assert "attended: " in text


def test_as_json_the_facts_are_fields(told):
    record = msgspec.json.decode(told("report", "--format", "json").ok().out)

    assert [file["path"] for file in record["changes"]["files"]] == ["a.py", "new.py"]
    assert record["tests"] == [{"phase": "work", "gate": "tests", "before": 2, "after": {"passed": 2}, "lost": 0}]
    assert record["workers"][0]["worker"] == {"agent": "claude-code", "model": "opus", "version": "2.1.0"}
    assert record["decisions"][-1]["proof"]["assurance"] == "attended"
    assert {gate["gate"]: gate["verdict"] for gate in record["gates"]} == {"tests": "PASS", "approval": "PASS"}


def test_as_html_it_is_one_page_and_nothing_in_it_is_obeyed(told):
    with open_project(told.directory) as project:
        project.session().ask("<script>alert(1)</script> | **bold**?")

    page = told("report", "--format", "html").ok().out

    assert page.startswith("<!doctype html>")
    assert "<td>a.py</td><td>modified</td><td>+1</td><td>-0</td>" in page
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; | **bold**?" in page


def test_no_colour_of_a_terminal_is_left(detent):
    write(detent.directory, "red.txt", "\x1b[31mred\x1b[0m text\n")
    gate = '{ kind = "command", name = "check", command = "cat red.txt; exit 1" }'
    Stop(lambda _, handle: handle.gates.run("check"), gates=gate).build(detent.directory)

    for form in ("md", "html"):
        text = detent("report", "--format", form).ok().out
        assert "red text" in text
        assert "[31m" not in text


def test_a_gate_that_is_not_passed_is_never_called_open(detent):
    STOPS["closed gate"][1].build(detent.directory)

    [line] = [line for line in detent("report").ok().out.splitlines() if line.startswith("| 1 of 2 work | check |")]

    assert "| FAIL |" in line
    assert "open" not in line
