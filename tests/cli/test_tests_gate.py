"""The verbs about the tests of a session: the command that decides, the baseline, and a loss that a person accepts."""

import json

import pytest

from tests.support.cheats import BROKEN, CODE, COMMAND, FILES, MEND, SETTINGS, python_on_path
from tests.support.project import build_project, write

LOST = "tests/test_sub.py::test_sub"
AGENT = """
[agents.script]
adapter = "command"
command = "true"
"""


@pytest.fixture
def work(detent):
    """In a session that has just begun to implement."""
    detent.environment["PATH"] = python_on_path()
    build_project(detent.directory, f'{SETTINGS}agent = "script"\n{AGENT}', files=FILES)
    detent("start", MEND, "Mend it").ok()
    detent("finish", "-m", "traced").ok()
    detent("begin").ok()
    return detent


def test_the_start_says_which_threshold_it_leaves_out(detent):
    build_project(detent.directory, SETTINGS, files=FILES)

    assert "no coverage threshold: the project has no coverage tool" in detent("start", MEND, "Mend it").ok().err


def test_gate_run_uses_the_test_command_of_the_settings(work):
    ran = work("gate", "run", "tests", "--json").ok().json()

    [judged] = ran["gates"]["06-implementation"]
    assert judged["reason"] == f"passed: {COMMAND}: 3 tests (start: 3)"


def test_a_part_given_to_gate_run_is_refused_with_the_command_that_decides(work):
    code, message, way_out = work("gate", "run", "tests", "--", "pytest", "-k", "add").error()

    assert (code, way_out) == (1, "detent gate run tests")
    assert f"gate tests is decided by its own command: {COMMAND}" in message


def test_another_test_command_for_a_run_is_refused_with_the_way_to_change_it(work):
    code, message, way_out = work("run", "--tests", "pytest -k add").error()

    assert code == 1
    assert f"is decided by `{COMMAND}`, and --tests says `pytest -k add`" in message
    assert way_out == "leave --tests out, or: detent gate set tests --command 'pytest -k add' -m WHY"


@pytest.fixture
def silent(detent):
    """In a session that has begun to implement and knows no test command."""
    detent.environment["PATH"] = python_on_path()
    build_project(detent.directory, "[run]\n", files=FILES)
    detent("start", "fix", "Mend it").ok()
    detent("finish", "-m", "traced").ok()
    detent("begin").ok()
    return detent


def test_a_session_without_a_test_command_asks_for_it_once(silent):
    assert silent("next", "--json").ok().json()["next"] == ["detent gate run tests -- YOUR TEST COMMAND"]


@pytest.mark.parametrize("verb", [("status",), ("next",), ("gates",), ("why",), ("finish", "-m", "mended")])
def test_a_test_command_that_is_set_later_is_not_asked_for(silent, verb):
    before = silent(*verb, "--json").json()
    write(silent.directory, "detent.toml", '[run]\ntests = "python -m pytest -q"\n')

    after = silent(*verb, "--json").json()

    assert "YOUR TEST COMMAND" in json.dumps(before)
    assert "YOUR TEST COMMAND" not in json.dumps(after)
    assert "detent gate run tests" in json.dumps(after)
    silent("gate", "run", "tests").ok()


def test_a_run_sets_the_command_of_a_session_that_has_none(detent):
    detent.environment["PATH"] = python_on_path()
    build_project(detent.directory, f'[run]\nagent = "script"\n{AGENT}', files=FILES)
    detent("start", "fix", "Mend it").ok()

    detent("run", "--tests", COMMAND, "--no-wait")

    events = [event for commit in detent("log", "--json").ok().json()["commits"] for event in commit["events"]]
    [event] = [event for event in events if event["type"] == "gate_command_set"]
    # The regression gate follows the tests gate.
    assert (event["gate"], event["command"], event["reason"]) == ("tests", COMMAND, "detent run --tests")


def test_a_person_changes_the_command(work):
    said = work("gate", "set", "tests", "--command", "make test", "-m", "it needs a build").ok().out

    assert "PENDING tests: no run yet" in said
    assert "passed: make test: 3 tests" in " ".join(work("gate", "run", "tests").ok().out.split())
    assert "set the command of tests to make test" in " ".join(work("log").ok().out.split())


def test_a_loss_is_named_and_accepted_by_a_person_with_a_reason(work):
    assert work("gate", "baseline", "--json").ok().json()["tests"]["count"] == 3
    write(work.directory, "tests/test_sub.py", "")

    closed = work("gate", "run", "tests", "--json")
    assert closed.code == 3
    [judged] = closed.json()["gates"]["06-implementation"]
    assert judged["reason"] == f"1 test of the baseline did not pass: {LOST} (missing)"

    assert work("gate", "accept", "tests", "-m", "gone").code == 2
    assert work("gate", "accept", "tests", "tests/test_add.py::test_add", "-m", "gone").code != 0
    opened = work("gate", "accept", "tests", "--all", "-m", "nobody subtracts", "--json").ok().json()
    assert opened["gates"]["06-implementation"][0]["verdict"] == "PASS"
    work("finish", "-m", "done").ok()
    report = json.dumps(work("log", "--json").ok().json())
    assert "loss_accepted" in report
    assert "nobody subtracts" in report


def test_a_recorded_baseline_is_replaced_with_a_reason_only(work):
    work("gate", "baseline").ok()

    assert "a reason to replace the baseline" in work("gate", "baseline").error()[1]
    assert "3 tests" in work("gate", "baseline", "-m", "once more").ok().out


def test_the_tests_that_show_a_bug_are_named_to_gate_run(detent):
    detent.environment["PATH"] = python_on_path()
    build_project(detent.directory, SETTINGS, files=FILES | {"calc.py": BROKEN})
    for words in (("start", "fix", "Mend it"), ("finish", "-m", "traced"), ("begin",)):
        detent(*words).ok()
    assert detent("gate", "run", "regression").code == 3
    write(detent.directory, "calc.py", CODE)

    named = detent("gate", "run", "regression", "--json", "--", LOST).ok().json()

    [judged] = named["gates"]["06-implementation"]
    assert judged["reason"] == f"{LOST} failed on the files of the start, and passes now"
