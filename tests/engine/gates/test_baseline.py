"""The tests that stood when the session began: how they are recorded, how a loss is shown, and who may accept it."""

import os

import pytest

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import RanBy, Result, Verdict
from detent.core.guard import state_reader
from detent.core.run.run_event import End, GateStarted
from detent.core.session.commands import RecordBaseline
from detent.core.session.describe import event_lines
from detent.core.task.title import escaped
from detent.core.testrun.baseline import KnownTests
from detent.documents import state as state_document
from detent.documents.checkpoint import governance
from detent.engine.actor import account
from detent.engine.project import open_project
from detent.errors import Corrupt, GateClosed, Invalid, Refused
from detent.render.markdown.report import report_text
from detent.render.prompt.prompt import phase_prompt
from tests.support.cheats import BROKEN, CODE, COMMAND, FILES, MEND, SETTINGS, SUB, python_on_path
from tests.support.project import build_project, write
from tests.support.scripted_run import Cast, bounded, done, scenes

AGENT = Actor(name="bot", kind=ActorKind.AGENT, channel=Channel.TERMINAL)
PHASE = "06-implementation"
LOST = "tests/test_sub.py::test_sub"


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())


@pytest.fixture
def project(tmp_path):
    build_project(tmp_path, SETTINGS, files=FILES)
    with open_project(tmp_path, actor="ada") as opened:
        yield opened


@pytest.fixture
def handle(project):
    """A session that has just begun to implement."""
    session = project.start(MEND, "mend it")
    session.finish("traced")
    session.begin()
    return session


def verdict(handle, phase=PHASE):
    [judged] = handle.gates.judgements(phase)[phase]
    return judged.verdict, judged.reason


def known(handle):
    return handle.state.baseline.tests


# The command


def test_the_test_command_of_the_settings_is_pinned_when_the_session_starts(project, handle):
    write(project.place.base, "detent.toml", '[run]\ntests = "true"\n')

    commands = {gate.runnable() for phase in handle.state.workflow.phases for gate in phase.gates if gate.runs_tests}

    assert commands == {COMMAND}
    with open_project(project.place.base, actor="ada") as again:
        again.session().gates.run("tests")
    assert verdict(handle) == (Verdict.PASS, f"passed: {COMMAND}: 3 tests (start: 3)")


def test_a_command_that_is_set_later_is_used_by_a_gate_that_has_none(tmp_path):
    build_project(tmp_path, "", files=FILES)
    with open_project(tmp_path, actor="ada") as project:
        project.start("fix", "mend it").finish("traced")
        project.session().begin()
    write(tmp_path, "detent.toml", SETTINGS)
    with open_project(tmp_path, actor="ada") as project:
        handle = project.session()

        handle.gates.run("tests")

        # It was not known when the session started, so what it selects counts.
        state = handle.state.phases[PHASE].gates["tests"]
        assert state.receipt is None
        assert state.aside is not None
        assert state.aside.aside == "it runs a part of the tests (-p); run all of them"


def test_a_person_sets_the_command_and_the_record_shows_it(handle):
    handle.gates.run("tests")

    handle.gates.set_command("tests", "make test", "it needs a build")

    assert verdict(handle) == (Verdict.PENDING, "no run yet; baseline: files only")
    handle.gates.run("tests")
    assert verdict(handle)[1] == "passed: make test: 3 tests (start: 3)"
    text = report_text(handle.state, handle.log())
    assert f"the command of tests became make test ({account()}, as ada, " in text
    assert "it needs a build" in text


# What was seen


def test_a_later_run_of_a_part_does_not_replace_the_verdict_of_the_whole(handle):
    handle.gates.run("tests")
    for output, exit_code in (("1 passed in 0.1s\n", 0), ("1 failed in 0.1s\n", 1)):
        handle.gates.observe(PHASE, "pytest tests/test_add.py", output, exit_code)

    assert verdict(handle)[0] is Verdict.PASS
    state = handle.state.phases[PHASE].gates["tests"]
    assert (state.receipt.by, state.aside.by, state.iterations) == (RanBy.DETENT, RanBy.SEEN, 1)


# The baseline


def test_the_first_run_that_passes_names_the_tests(handle):
    write(handle._project.place.base, "calc.py", BROKEN)
    handle.gates.run("tests")
    assert known(handle) == {}

    write(handle._project.place.base, "calc.py", CODE)
    handle.gates.run("tests")

    assert known(handle)[COMMAND].count == 3
    assert handle.gates.checks.names(known(handle)[COMMAND].names) == {
        f"tests/test_{name}.py::test_{name}" for name in ("add", "sub", "mul")
    }


def test_anybody_records_the_first_baseline_and_a_person_replaces_it(project, handle):
    agent = open_project(project.place.base, actor=AGENT).session()
    agent.gates.baseline("tests")
    assert known(handle)[COMMAND].count == 3
    write(project.place.base, "tests/test_sub.py", "")

    with pytest.raises(Refused, match="replacing a baseline is a person's decision"):
        agent.gates.baseline("tests", reason="fewer are enough")
    with pytest.raises(Refused, match="replacing a baseline is a person's decision"):
        agent.execute(RecordBaseline(command=COMMAND, tests=KnownTests(count=1), reason="fewer are enough"))
    with pytest.raises(Invalid, match="a reason to replace the baseline"):
        handle.gates.baseline("tests")
    handle.gates.baseline("tests", reason="sub is gone")

    assert known(handle)[COMMAND].count == 2
    assert f"2 tests became the baseline ({account()}, as ada, " in report_text(handle.state, handle.log())


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        (None, "missing"),
        ("", "missing"),
        (f"import pytest\n\n{SUB}\n\npytestmark = pytest.mark.skip\n", "skipped"),
        ("import pytest\n\n\ndef test_sub():\n    pytest.xfail('later')\n", "expected to fail"),
    ],
    ids=["deleted", "emptied", "skipped", "expected to fail"],
)
def test_a_lost_test_is_named_everywhere_until_a_person_accepts_it(project, handle, text, outcome):
    handle.gates.baseline("tests")
    base = project.place.base
    if text is None:
        os.unlink(f"{base}/tests/test_sub.py")
    else:
        write(base, "tests/test_sub.py", text)
    handle.gates.run("tests")

    reason = f"1 test of the baseline did not pass: {LOST} ({outcome})"
    assert verdict(handle) == (Verdict.FAIL, reason)
    with pytest.raises(GateClosed) as closed:
        handle.finish("done")
    assert closed.value.way_out == "bring the tests back; or, as a person, detent gate accept tests NAME… -m WHY"
    assert f"  - {escaped(LOST)}: {outcome}\n" in report_text(handle.state, handle.log())
    judged = handle.gates.judgements(PHASE)[PHASE]
    prompt = phase_prompt(handle.state, handle.handover(PHASE), judged, turn=2)
    assert f"Tests that passed when the session began and do not now:\n- {LOST}: {outcome}\n" in prompt
    [line] = event_lines(list(handle.log())[-1].events)
    assert line == f"tests at {PHASE}: passed, but it lost 1 of the tests of the baseline"

    agent = open_project(base, actor=AGENT).session()
    with pytest.raises(Refused, match="gate accept is a person's decision"):
        agent.gates.accept("tests", [LOST], "not needed")
    handle.gates.accept("tests", [], "sub is not used")

    accepted = f"passed: {COMMAND}: 2 tests (start: 3)"
    assert verdict(handle)[0] is Verdict.PASS
    assert verdict(handle)[1].startswith(accepted)
    assert "the loss of 1 test was accepted" in verdict(handle)[1]
    handle.finish("done")
    # The next phase is not asked again.
    handle.begin()
    handle.gates.run("tests")
    assert verdict(handle, "16-quality-loop")[0] is Verdict.PASS
    assert f"was accepted ({account()}, as ada, " in report_text(handle.state, handle.log())


def test_fewer_cases_of_a_function_are_no_loss(project, handle):
    cases = "import pytest\n\n\n@pytest.mark.parametrize('n', {})\ndef test_n(n):\n    assert n\n"
    write(project.place.base, "tests/test_n.py", cases.format("[1, 2, 3]"))
    handle.gates.baseline("tests")
    assert known(handle)[COMMAND].count == 6

    write(project.place.base, "tests/test_n.py", cases.format("[1]"))
    handle.gates.run("tests")

    assert verdict(handle) == (Verdict.PASS, f"passed: {COMMAND}: 4 tests (start: 6)")


def test_a_list_of_tests_that_was_rewritten_opens_nothing(project, handle):
    handle.gates.baseline("tests")
    digest = known(handle)[COMMAND].names
    write(project.place.base, f".workflow/{handle.id}/evidence/{digest}", "[]")
    with pytest.raises(Corrupt, match=digest):
        handle.gates.checks.names(digest)
    write(project.place.base, "tests/test_sub.py", "")

    handle.gates.run("tests")

    assert verdict(handle)[0] in (Verdict.ERROR, Verdict.FAIL)


# Coverage


def thresholds(session):
    return {gate.coverage for phase in session.workflow.phases for gate in phase.gates if gate.runs_tests}


def test_without_a_coverage_tool_the_threshold_of_a_shipped_workflow_is_left_out(project):
    handle = project.start(MEND, "mend it")

    assert thresholds(handle.state) == {None}
    assert "no coverage threshold: the project has no coverage tool" in project.left_out


def test_a_command_that_does_not_ask_the_tool_of_the_project_leaves_the_threshold_out_and_says_so(project):
    write(project.place.base, "requirements-dev.txt", "pytest-cov\n")

    handle = project.start(MEND, "mend it")

    assert thresholds(handle.state) == {None}
    reason = f"no coverage threshold: `{COMMAND}` does not measure coverage; `pytest --cov` would"
    assert reason in project.left_out


@pytest.mark.parametrize(
    ("command", "file", "text"),
    [
        (COMMAND, "pytest.ini", "[pytest]\naddopts = --cov=calc\n"),
        ("make test", "requirements-dev.txt", "pytest-cov\n"),
        ("make test", "package.json", '{"devDependencies": {"c8": "9"}}'),
        (f"{COMMAND} --cov", "notes.txt", ""),
    ],
)
def test_a_command_that_may_measure_coverage_keeps_the_threshold(tmp_path, command, file, text):
    build_project(tmp_path, SETTINGS.replace(COMMAND, command), files=FILES | {file: text})
    with open_project(tmp_path, actor="ada") as project:
        handle = project.start(MEND, "mend it")

        assert thresholds(handle.state) == {80}
        assert not [line for line in project.left_out if "coverage" in line]


def test_coverage_that_was_not_measured_keeps_the_gate_closed_and_names_the_command(tmp_path):
    build_project(tmp_path, SETTINGS.replace(COMMAND, "make test"), files=FILES | {"requirements.txt": "pytest-cov\n"})
    with open_project(tmp_path, actor="ada") as project:
        handle = project.start(MEND, "mend it")
        handle.finish("traced")
        handle.begin()

        handle.gates.run("tests")

        assert verdict(handle)[0] is Verdict.PENDING
        assert "coverage was not measured, and 80 % are needed" in verdict(handle)[1]


def test_a_threshold_of_the_projects_settings_always_holds(tmp_path):
    own = f'{SETTINGS}[phases.06-implementation]\ngates = [{{ kind = "tests", coverage = 60 }}]\n'
    build_project(tmp_path, own, files=FILES)
    with open_project(tmp_path, actor="ada") as project:
        handle = project.start(MEND, "mend it")

        assert thresholds(handle.state) == {60, None}


# One verdict


def test_the_run_on_the_protected_files_is_what_everybody_shows(tmp_path):
    gate = f'{{ kind = "tests", command = "{COMMAND}", protected = ["tests/**"] }}'
    build_project(tmp_path, f'[phases.a]\ngates = [{gate}]\n[workflows.w]\nphases = ["a", "b"]\n', files=FILES)
    with open_project(tmp_path, actor="ada") as project:
        handle = project.start("w", "mend it")
        write(tmp_path, "calc.py", BROKEN)
        write(tmp_path, "tests/test_sub.py", SUB.replace("== 1", "== 6"))

        handle.gates.run("tests")

        state = handle.state
        failed = "the tests as they were when the session began did not pass"
        assert verdict(handle, "a")[0] is Verdict.FAIL
        assert f"{failed}: FAILED {LOST} - assert 6 == 1" in verdict(handle, "a")[1]
        receipt = state.phases["a"].gates["tests"].receipt
        assert (receipt.result, receipt.exit_code, receipt.protected.failing) == (Result.FAILED, 1, (LOST,))
        [checked] = governance(state, "a")["quality_gates"]
        assert (checked["verdict"], checked["exit_code"]) == ("FAIL", 1)
        document = state_document.write(state)
        assert state_reader.closed_gates(document, "a", lambda _: True)
        record = document["phases"]["a"]["iteration_requirements"]["test_iteration"]
        assert (record["completed"], record["last_test_result"]) == (False, "failed")
        assert event_lines(list(handle.log())[-1].events) == ["tests at a: failed"]
        report = report_text(state, handle.log())
        assert "exit code 0" not in report
        assert "| FAIL |" in report


# In a run


def test_in_a_run_the_runner_runs_the_command_whatever_an_agent_ran(tmp_path):
    build_project(tmp_path, SETTINGS, files=FILES)
    with scenes(tmp_path) as make:
        scene = make("", more=SETTINGS, workflow=MEND)

        def act(turn, stopping):
            if turn.phase == PHASE:
                scene.handle.gates.run("tests", phase=PHASE)
                assert verdict(scene.handle)[0] is Verdict.PASS
            yield done()

        assert bounded(scene, Cast(act)) in (End.COMPLETED, End.WAITING)

        started = [event.phase for event in scene.heard(GateStarted)]
        assert started == [PHASE, "16-quality-loop"]
        assert scene.session.phases[PHASE].gates["tests"].receipt.by is RanBy.RUNNER
        assert scene.is_completed(PHASE)


def test_a_red_suite_does_not_end_green_because_a_hook_saw_a_part_of_it(tmp_path):
    build_project(tmp_path, SETTINGS, files=FILES)
    with scenes(tmp_path) as make:
        scene = make("", more=SETTINGS, workflow=MEND)

        def act(turn, stopping):
            if turn.phase == PHASE:
                write(tmp_path, "calc.py", BROKEN)
                scene.handle.gates.observe(PHASE, "pytest -q tests/test_add.py", "1 passed in 0.1s\n", 0)
            yield done()

        assert bounded(scene, Cast(act), turns=1) is End.WAITING

        assert scene.statuses[PHASE] == "in_progress"
        assert "test_sub" in scene.session.escalations[0].detail
