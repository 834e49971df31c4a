"""`fix` as it is shipped: a test must show the bug on the files of the start, and the files must change."""

import pytest

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.gate.evidence import RanBy, Verdict
from detent.core.run.run_event import End
from detent.engine.project import open_project
from detent.errors import GateClosed, Refused
from tests.support.cheats import BROKEN, CODE, FILES, SETTINGS, python_on_path, test_file
from tests.support.project import build_project, write
from tests.support.scripted_run import Cast, bounded, done, scenes

PHASE = "06-implementation"
#: The bug: `sub` is wrong, and no test says so.
BUGGY = {path: text for path, text in FILES.items() if path != "tests/test_sub.py"} | {"calc.py": BROKEN, "old.py": ""}
SHOWS = test_file("sub", "1").replace("test_sub", "test_bug")
FIXTURE = (
    "import pytest\n\n\n@pytest.fixture\ndef it():\n    from calc import one\n    return one\n\n\n"
    "def test_bug(it):\n    assert it\n"
)
SHOWN = "tests/test_bug.py::test_bug"


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())


@pytest.fixture
def project(tmp_path):
    build_project(tmp_path, SETTINGS, files=BUGGY)
    with open_project(tmp_path, actor="ada") as opened:
        yield opened


@pytest.fixture
def handle(project):
    return implementing(project)


def implementing(project):
    session = project.start("fix", "mend sub")
    session.finish("traced")
    session.begin()
    return session


def judged(handle, gate="regression"):
    by_name = {each.gate: each for each in handle.gates.judgements(PHASE)[PHASE]}
    return by_name[gate].verdict, by_name[gate].reason


def mended(root, *, code=CODE, test=SHOWS):
    write(root, "calc.py", code)
    write(root, "tests/test_bug.py", test)


def test_a_fix_with_a_test_that_shows_the_bug_is_finished(tmp_path, handle):
    mended(tmp_path)

    handle.finish("mended")

    assert judged(handle) == (Verdict.PASS, f"{SHOWN} failed on the files of the start, and passes now")


def test_a_fix_without_any_change_is_held_and_says_why(handle):
    with pytest.raises(GateClosed) as refused:
        handle.finish("mended")

    assert "no test is new since the session began" in refused.value.message
    assert "changes is FAIL: no file has changed since the phase began" in refused.value.message


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("def test_bug():\n    assert True\n", "(passed)"),
        ("import calc\nONE = calc.one\n\n\ndef test_bug():\n    assert ONE\n", "(could not be collected)"),
        ("def test_bug():\n    from calc import one\n    assert one\n", "(failed outside of the test)"),
        (FIXTURE, "(failed outside of the test)"),
        ("import os\n\n\ndef test_bug():\n    assert 'detent' not in os.getcwd()\n", "(failed): it must pass now"),
    ],
    ids=["always green", "not collected", "import", "setup", "sees the copy"],
)
def test_a_test_that_does_not_fail_by_itself_at_the_start_shows_nothing(tmp_path, handle, test, reason):
    mended(tmp_path, code=f"{CODE}\n\none = 1\n", test=test)

    handle.gates.run("regression")

    verdict, told = judged(handle)
    assert verdict is Verdict.FAIL
    assert f"{SHOWN} {reason}" in told


def test_the_tests_are_named_where_some_of_the_new_ones_passed_before(tmp_path, handle):
    mended(tmp_path, test=f"{SHOWS}\n\ndef test_more():\n    assert sub(0, 0) != 5\n")

    handle.gates.run("regression")
    assert "tests/test_bug.py::test_more (passed)" in judged(handle)[1]

    handle.gates.run("regression", command=SHOWN)
    assert judged(handle)[0] is Verdict.PASS
    # `finish` keeps the names.
    write(tmp_path, "calc.py", f"{CODE}\n")
    handle.finish("mended")


def test_a_test_that_was_changed_shows_the_bug_if_it_is_named_with_the_data_and_fixtures_that_it_uses(tmp_path, handle):
    mended(tmp_path)
    write(tmp_path, "tests/data/want.txt", "1")
    write(tmp_path, "tests/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef want():\n    return 1\n")
    write(
        tmp_path,
        "tests/test_add.py",
        "from pathlib import Path\n\nfrom calc import sub\n\n\ndef test_add(want):\n"
        "    assert sub(3, 2) == want == int((Path(__file__).parent / 'data/want.txt').read_text())\n",
    )

    handle.gates.run("regression", command="tests/test_add.py")

    assert judged(handle) == (
        Verdict.PASS,
        "tests/test_add.py::test_add failed on the files of the start, and passes now",
    )


def test_a_package_that_is_installed_from_the_project_is_not_taken_for_that_of_the_start(tmp_path):
    gate = f'{{ kind = "regression", env = ["PYTHONPATH={tmp_path}/src"] }}'
    build_project(
        tmp_path,
        f"{SETTINGS}[phases.06-implementation]\ngates = [{gate}]\n",
        files={"src/calc.py": BROKEN, "tests/test_add.py": test_file("add", "5"), ".gitignore": "__pycache__/\n"},
    )
    with open_project(tmp_path, actor="ada") as project:
        handle = implementing(project)
        write(tmp_path, "src/calc.py", CODE)
        write(tmp_path, "tests/test_bug.py", SHOWS)

        handle.gates.run("regression")

        assert judged(handle)[0] is Verdict.PASS


def test_files_that_were_added_or_deleted_since_are_as_they_were_in_the_copy(tmp_path, handle):
    write(tmp_path, "tests/test_bug.py", "import os\n\n\ndef test_bug():\n    assert os.path.exists('new.py')\n")
    write(
        tmp_path, "tests/test_gone.py", "import os\n\n\ndef test_gone():\n    assert not os.path.exists('Makefile')\n"
    )
    write(tmp_path, "new.py", "")
    (tmp_path / "calc.py").rename(tmp_path / "calc_too.py")
    for test in ("add", "mul"):
        (tmp_path / f"tests/test_{test}.py").unlink()

    handle.gates.run("regression", command="tests/test_bug.py")

    assert judged(handle)[0] is Verdict.PASS


def test_a_secret_among_the_names_is_not_recorded(tmp_path, handle):
    secret = "ghp_" + "a1B2" * 9

    handle.gates.run("regression", command=secret)

    journal = (tmp_path / ".workflow" / handle.id / "journal.jsonl").read_text()
    assert "no such test in" in judged(handle)[1]
    assert secret not in journal


# People


def test_only_a_person_decides_that_no_test_is_possible(tmp_path, project, handle):
    write(tmp_path, "calc.py", CODE)
    agent = project.session(handle.id, actor=Actor(name="bot", kind=ActorKind.AGENT, channel=Channel.TERMINAL))

    with pytest.raises(Refused):
        agent.approve("no test", gate="regression")
    handle.approve("it is a matter of timing", gate="regression")

    handle.finish("mended")
    assert judged(handle)[1].endswith(": it is a matter of timing")


def test_without_a_known_test_command_the_gate_takes_that_of_the_tests_that_counted(tmp_path):
    build_project(tmp_path, "", files=BUGGY)
    with open_project(tmp_path, actor="ada") as project:
        handle = implementing(project)
        mended(tmp_path)
        assert judged(handle) == (Verdict.PENDING, "no test command is known, so no test has shown the bug yet")

        handle.gates.run("tests", command="python -m pytest -q")
        handle.gates.run("regression")

        assert judged(handle)[0] is Verdict.PASS


@pytest.mark.parametrize("capture", ["off", "declared"])
def test_a_session_whose_files_are_not_captured_has_neither_gate_and_says_so(tmp_path, capture):
    build_project(tmp_path, f'{SETTINGS}[checkpoint]\ncapture = "{capture}"\n', files=BUGGY)
    with open_project(tmp_path, actor="ada") as project:
        handle = implementing(project)

        assert [each.gate for each in handle.gates.judgements(PHASE)[PHASE]] == ["tests"]
        assert any(reason.startswith("no changes and regression gates: ") for reason in project.left_out)


# Changes


def test_what_an_earlier_attempt_changed_counts_and_a_rollback_takes_it_back(tmp_path, handle):
    write(tmp_path, "calc.py", CODE)
    handle.fail("not sure")
    handle.redo(PHASE)
    assert judged(handle, "changes")[0] is Verdict.PASS

    handle.checkpoints.rollback(f"PRE_{PHASE}_v1")
    assert judged(handle, "changes")[0] is Verdict.FAIL


def test_a_phase_of_the_project_can_ask_for_changes_and_leave_them_to_chance(tmp_path):
    settings = (
        '[workflows.w]\nphases = [{ key = "a", changes = "required" }, "b"]\n'
        '[phases.06-implementation]\nchanges = "any"\n'
    )
    build_project(tmp_path, settings, files=BUGGY)
    with open_project(tmp_path, actor="ada") as project:
        assert [gate.kind for gate in project.catalogue.workflow("w").by_key["a"].gates] == ["changes"]
        assert "changes" not in [gate.kind for gate in project.catalogue.workflow("fix").by_key[PHASE].gates]


# In a run


def test_in_a_run_the_runner_tries_the_test_and_the_agent_is_told_what_is_missing(tmp_path):
    build_project(tmp_path, SETTINGS, files=BUGGY)
    with scenes(tmp_path) as make:
        scene = make("", more=SETTINGS, workflow="fix")
        cast = Cast()

        def act(turn, stopping):
            if turn.phase == PHASE:
                write(tmp_path, "calc.py", CODE)
                if len(cast.prompts(PHASE)) > 1:
                    mended(tmp_path, test=f"{SHOWS}\n\ndef test_more():\n    assert sub(0, 0) != 5\n")
                    # What the agent names is kept for the run of the runner.
                    scene.handle.gates.run("regression", phase=PHASE, command=SHOWN)
            yield done()

        cast.act = act
        bounded(scene, cast)

        assert scene.is_completed(PHASE)
        receipt = scene.session.phases[PHASE].gates["regression"].receipt
        assert (receipt.by, receipt.named, receipt.shown) == (RanBy.RUNNER, (SHOWN,), (SHOWN,))
        first, second = cast.prompts(PHASE)
        assert "regression: write a test that shows the bug" in first
        assert "no test is new since the session began" in second


def test_in_a_run_an_agent_that_does_nothing_ends_with_a_person(tmp_path):
    build_project(tmp_path, SETTINGS, files=BUGGY)
    with scenes(tmp_path) as make:
        scene = make("", more=SETTINGS, workflow="fix")

        assert bounded(scene, Cast(), turns=2) is End.WAITING

        assert scene.statuses[PHASE] == "in_progress"
        assert "changes is FAIL: no file has changed since the phase began" in scene.session.escalations[0].detail
