"""What a gate rests on: it expires, it cannot be made weaker, it holds no secrets, and no part of it is lost."""

import py_compile
import subprocess
import sys

import pytest

from detent.core.gate.evidence import RanBy, Result, Verdict
from detent.engine.gates import checks, inputs
from detent.errors import GateClosed, Refused
from detent.objects.universe import Moment, Scope, Universe
from tests.support.gated import CODE, HAS_GIT, TEST, UNITTEST, calculator, started, verdicts
from tests.support.project import write

TESTS = f'{{ kind = "tests", command = "{UNITTEST}" }}'
GIT = pytest.param(True, marks=pytest.mark.skipif(not HAS_GIT, reason="git is not there"))


@pytest.mark.parametrize("git", [False, GIT])
def test_an_edit_after_the_run_makes_it_stale_until_it_is_run_again(tmp_path, git):
    calculator(tmp_path, git=git)
    project, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")
    assert verdicts(handle) == {"tests": Verdict.PASS}

    write(tmp_path, "calc.py", CODE + "# faster\n")

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, judged.reason) == (Verdict.STALE, "calc.py changed after the run that passed")
    assert judged.way_out == "detent gate run tests"

    handle.gates.run("tests")
    handle.finish("done")
    assert handle.state.phases["work"].status == "completed"
    project.close()


@pytest.mark.parametrize("change", ["new", "removed", "link"])
def test_files_that_come_and_go_make_it_stale_too(tmp_path, change):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS)
    extra = write(tmp_path, "extra.py", "x = 1\n")
    handle.gates.run("tests")

    if change == "new":
        write(tmp_path, "other.py", "")
    else:
        extra.unlink()
        if change == "link":
            extra.symlink_to("calc.py")

    [judged] = handle.gates.judgements()["work"]
    assert judged.verdict is Verdict.STALE
    assert ("other.py" if change == "new" else "extra.py") in judged.reason


@pytest.mark.parametrize("git", [False, GIT])
def test_what_detent_and_its_clients_write_and_prose_make_nothing_stale(tmp_path, git):
    calculator(tmp_path, git=git)
    project, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")

    for path in (
        "README.md",
        "docs/notes.md",
        "CHANGES.rst",
        "notes.txt",
        ".editorconfig",
        ".claude/state/workflow.json",
    ):
        write(tmp_path, path, "changed\n")
    write(tmp_path, "__pycache__/calc.pyc", "compiled")
    project.flush()  # writes the documents

    assert (tmp_path / ".workflow" / "state.json").exists()
    assert verdicts(handle) == {"tests": Verdict.PASS}


LOOSE = '{ kind = "command", name = "lint", command = "true", inputs = ["."] }'


@pytest.mark.parametrize("rule", ["calc.py", "hidden.py"])
def test_code_that_a_rule_ignores_makes_it_stale_and_a_rule_alone_does_not(tmp_path, rule):
    calculator(tmp_path)
    write(tmp_path, "hidden.py", "x = 1\n")
    _, handle = started(tmp_path, f"{TESTS}, {LOOSE}")
    write(tmp_path, ".gitignore", f"{rule}\n__pycache__/\n")
    handle.gates.run("tests")
    handle.gates.run("lint")
    assert verdicts(handle) == {"tests": Verdict.PASS, "lint": Verdict.PASS}

    write(tmp_path, rule, CODE + "# faster\n")

    assert verdicts(handle) == {"tests": Verdict.STALE, "lint": Verdict.STALE}


def test_files_that_one_gate_knows_of_do_not_count_for_another_of_the_same_moment(tmp_path):
    calculator(tmp_path)
    write(tmp_path, ".gitignore", "made.py\n")
    write(tmp_path, "made.py", "x = 1\n")
    moment = Moment(Universe(str(tmp_path / "cache"), Scope(str(tmp_path))))

    assert "made.py" in inputs.file_digests(moment, (), also=("made.py",))
    assert "made.py" not in inputs.file_digests(moment, ())


@pytest.mark.parametrize("path", ["docs/conf.py", ".hidden.py"])
def test_code_is_no_prose_wherever_it_is(tmp_path, path):
    calculator(tmp_path)
    write(tmp_path, path, "x = 1\n")
    _, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")

    write(tmp_path, path, "x = 2\n")

    assert verdicts(handle) == {"tests": Verdict.STALE}


@pytest.mark.parametrize("is_directory", [False, True])
def test_a_link_counts_with_the_code_that_it_leads_to(tmp_path, is_directory):
    root, outside = tmp_path / "project", tmp_path / "outside"
    root.mkdir()
    calculator(root)
    write(outside, "other.py", "x = 1\n")
    (root / ("other" if is_directory else "other.py")).symlink_to(outside if is_directory else outside / "other.py")
    _, handle = started(root, TESTS)
    handle.gates.run("tests")
    assert verdicts(handle) == {"tests": Verdict.PASS}

    write(outside, "other.py", "x = 2\n")

    assert verdicts(handle) == {"tests": Verdict.STALE}


@pytest.mark.parametrize("path", ["requirements.txt", "requirements-dev.txt", "CMakeLists.txt"])
def test_files_that_builds_read_are_no_prose_whatever_they_are_called(tmp_path, path):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")

    write(tmp_path, path, "left-pad\n")

    assert verdicts(handle) == {"tests": Verdict.STALE}


@pytest.mark.skipif(not HAS_GIT, reason="git is not there")
def test_what_git_ignores_makes_nothing_stale(tmp_path):
    calculator(tmp_path, git=True)
    write(tmp_path, ".gitignore", "build/\n")
    _, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")

    write(tmp_path, "build/out.py", "")

    assert verdicts(handle) == {"tests": Verdict.PASS}


@pytest.mark.skipif(not HAS_GIT, reason="git is not there")
def test_a_project_that_the_repository_around_it_ignores_has_inputs_all_the_same(tmp_path):
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    write(tmp_path, ".gitignore", "inner/\n")
    calculator(tmp_path / "inner")

    base = str(tmp_path / "inner")
    moment = Moment(Universe(str(tmp_path / "cache"), Scope(base)))
    assert "calc.py" in inputs.file_digests(moment, ())


def test_only_declared_inputs_count(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS.replace(" }", ', inputs = ["src/**", "docs/spec.md"] }'))
    write(tmp_path, "src/deep/a.py", "x = 1\n")
    write(tmp_path, "docs/spec.md", "# What it does\n")
    handle.gates.run("tests")

    write(tmp_path, "calc.py", CODE + "# not declared\n")
    assert verdicts(handle) == {"tests": Verdict.PASS}

    for path in ("docs/spec.md", "src/deep/a.py"):
        before = (tmp_path / path).read_text()
        write(tmp_path, path, "changed\n")
        [judged] = handle.gates.judgements()["work"]
        assert (judged.verdict, path in judged.reason) == (Verdict.STALE, True)
        write(tmp_path, path, before)
        assert verdicts(handle) == {"tests": Verdict.PASS}


def test_an_edit_during_the_run_is_not_what_was_tested(tmp_path):
    calculator(tmp_path)
    edits = f"{UNITTEST} && echo '# edited meanwhile' >> calc.py && echo new > made_by_the_run.out"
    _, handle = started(tmp_path, f'{{ kind = "tests", command = "{edits}" }}')

    handle.gates.run("tests")

    [judged] = handle.gates.judgements()["work"]
    assert judged.verdict is Verdict.STALE
    assert judged.reason.startswith("calc.py changed")  # what the run itself made is no input


# Tests that must not be weakened

PROTECTED = f'{{ kind = "tests", command = "{UNITTEST} discover -s tests -t .", protected = ["tests/**"] }}'
BROKEN = "def add(a, b):\n    return a - b\n"


@pytest.mark.parametrize("how", ["assertion", "deleted", "emptied", "skipped"])
def test_a_weakened_test_does_not_open_the_gate(tmp_path, how):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, PROTECTED)
    write(tmp_path, "tests/test_other.py", TEST.replace("add(2, 3), 5", "1, 1"))

    match how:
        case "assertion":
            write(tmp_path, "tests/test_calc.py", TEST.replace("5)", "-1)"))
        case "deleted":
            (tmp_path / "tests/test_calc.py").unlink()
        case "emptied":
            write(tmp_path, "tests/test_calc.py", "")
        case "skipped":
            write(
                tmp_path,
                "tests/test_calc.py",
                TEST.replace("    def test", "    @unittest.skip('later')\n    def test"),
            )
    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    assert (receipt.result, receipt.protected.result) == (Result.FAILED, Result.FAILED)
    with pytest.raises(GateClosed, match="the tests as they were when the session began did not pass: AssertionError"):
        handle.finish("done")


def test_an_honest_change_of_the_tests_opens_it(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, PROTECTED)
    write(tmp_path, "calc.py", CODE)
    write(tmp_path, "tests/test_calc.py", TEST + "\n    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n")

    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    assert (receipt.result, receipt.protected.result) == (Result.PASSED, Result.PASSED)
    handle.finish("done")
    assert (
        (tmp_path / "tests/test_calc.py").read_text().endswith("add(0, 0), 0)\n")
    )  # the copy was tested, not this one


def test_a_later_phase_protects_the_tests_as_it_found_them(tmp_path):
    calculator(tmp_path)
    phases = f'[{{ key = "plan", gates = [] }}, {{ key = "work", gates = [{PROTECTED}] }}]'
    _, handle = started(tmp_path, "", phases=phases)
    write(tmp_path, "tests/test_calc.py", TEST.replace("test_add", "test_sum"))
    handle.finish("planned")
    handle.begin()
    write(tmp_path, "calc.py", BROKEN)
    write(tmp_path, "tests/test_calc.py", TEST.replace("5)", "-1)"))

    handle.gates.run("tests")

    assert verdicts(handle) == {"tests": Verdict.FAIL}


def test_a_new_attempt_does_not_make_weakened_tests_the_old_ones(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, PROTECTED)
    write(tmp_path, "tests/test_calc.py", TEST.replace("5)", "-1)"))

    handle.redo("work")
    handle.gates.run("tests")

    assert verdicts(handle) == {"tests": Verdict.FAIL}


def test_weakening_again_and_again_is_put_before_a_person(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, PROTECTED.replace(" }", ", max_iterations = 2 }"))
    write(tmp_path, "tests/test_calc.py", TEST.replace("5)", "-1)"))

    handle.gates.run("tests")
    assert handle.state.escalations == ()
    handle.gates.run("tests")

    assert [one.kind for one in handle.state.escalations] == ["max_iterations"]


def test_bytecode_of_edited_tests_does_not_stand_in_for_the_protected_ones(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, PROTECTED)
    write(tmp_path, "calc.py", "def add(a, b):\n    return 0\n")
    write(tmp_path, "tests/test_calc.py", TEST.replace("5", "0"))
    py_compile.compile(
        str(tmp_path / "tests" / "test_calc.py"),
        doraise=True,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )

    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    assert (receipt.result, receipt.protected.result) == (Result.FAILED, Result.FAILED)


def test_an_ignore_rule_hides_no_protected_test(tmp_path):
    calculator(tmp_path)
    write(tmp_path, ".gitignore", "tests/\n")
    _, handle = started(tmp_path, PROTECTED)
    write(tmp_path, "calc.py", "def add(a, b):\n    return 0\n")
    write(tmp_path, "tests/test_calc.py", TEST.replace("5", "0"))

    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    assert (receipt.result, receipt.protected.result) == (Result.FAILED, Result.FAILED)


def test_an_ignored_file_counts_as_an_input_if_the_gate_names_it(tmp_path):
    calculator(tmp_path)
    write(tmp_path, ".gitignore", "out/\n")
    write(tmp_path, "out/settings.json", "{}")
    write(tmp_path, "out/other.json", "{}")
    _, handle = started(tmp_path, TESTS.replace(" }", ', inputs = ["*.py", "out/settings.json"] }'))
    handle.gates.run("tests")

    write(tmp_path, "out/other.json", "[]")
    assert verdicts(handle) == {"tests": Verdict.PASS}
    write(tmp_path, "out/settings.json", "[]")
    assert verdicts(handle) == {"tests": Verdict.STALE}


def test_protected_tests_that_are_lost_open_nothing(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, PROTECTED)
    for kept in (tmp_path / ".workflow" / handle.id / "protected").iterdir():
        kept.unlink()

    handle.gates.run("tests")

    assert handle.state.phases["work"].gates["tests"].receipt.protected.result is Result.ERROR
    assert verdicts(handle) == {"tests": Verdict.FAIL}


def test_a_linked_test_is_protected_and_what_it_leads_to_is_not_touched(tmp_path):
    calculator(tmp_path, code=BROKEN)
    shared = write(tmp_path.parent, f"{tmp_path.name}-shared.py", TEST)
    (tmp_path / "tests/test_calc.py").unlink()
    (tmp_path / "tests/test_calc.py").symlink_to(shared)
    _, handle = started(tmp_path, PROTECTED)
    weakened = TEST.replace("5)", "-1)")
    shared.write_text(weakened)

    handle.gates.run("tests")

    assert verdicts(handle) == {"tests": Verdict.FAIL}
    assert shared.read_text() == weakened


# What decides is the gate's own command


def test_an_agent_cannot_bring_its_own_command(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, f'{TESTS}, {{ kind = "command", name = "lint", command = "false" }}')

    for gate in ("tests", "lint"):
        with pytest.raises(Refused, match="decided by its own command"):
            handle.gates.run(gate, command="true")
    handle.gates.run("tests", command=UNITTEST)  # the same one, said again

    assert verdicts(handle) == {"tests": Verdict.FAIL, "lint": Verdict.PENDING}


@pytest.mark.parametrize("command", ["true", "echo 3 passed", f"{sys.executable} -c pass"])
def test_without_a_declared_command_only_a_test_runner_counts(tmp_path, command):
    _, handle = started(tmp_path, '{ kind = "tests" }')

    with pytest.raises(Refused, match="no test runner that Detent knows"):
        handle.gates.run("tests", command=command)

    assert verdicts(handle) == {"tests": Verdict.PENDING}


def test_without_a_declared_command_exit_code_0_is_not_enough(tmp_path):
    calculator(tmp_path, code=BROKEN)
    _, handle = started(tmp_path, '{ kind = "tests" }')

    handle.gates.run("tests", command=f"{UNITTEST} > /dev/null 2>&1 || true")

    assert verdicts(handle) == {"tests": Verdict.PENDING}


def test_what_the_agent_runs_itself_counts_only_where_no_command_is_declared(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS)

    handle.gates.observe("work", "python -m unittest tests.test_easy", "Ran 1 test in 0.0s\n\nOK\n", 0)
    assert verdicts(handle) == {"tests": Verdict.PENDING}
    state = handle.state.phases["work"].gates["tests"]
    assert (state.receipt, state.iterations, state.aside.by) == (None, 0, RanBy.SEEN)

    _, handle = started(tmp_path, '{ kind = "tests" }')
    handle.gates.observe("work", "python -m unittest", "Ran 1 test in 0.0s\n\nOK\n", 0)
    assert verdicts(handle) == {"tests": Verdict.PASS}


# Errors


@pytest.mark.parametrize("kind", ["tests", "command"])
@pytest.mark.parametrize("command", ["no-such-program --run", "./not_executable.sh"])
def test_a_check_that_cannot_run_opens_nothing(tmp_path, kind, command):
    write(tmp_path, "not_executable.sh", "exit 0\n")
    _, handle = started(tmp_path, f'{{ kind = "{kind}", command = "{command}" }}')

    handle.gates.run(kind)

    [judged] = handle.gates.judgements()["work"]
    assert judged.verdict is Verdict.ERROR
    assert "the command" in judged.reason
    with pytest.raises(GateClosed, match=f"{kind} is ERROR"):
        handle.finish("done")


@pytest.mark.parametrize("kind", ["tests", "command"])
def test_a_check_that_takes_too_long_opens_nothing(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(checks, "TIMEOUT_S", 0.3)
    _, handle = started(tmp_path, f'{{ kind = "{kind}", command = "echo 3 passed in 0.1s; sleep 30" }}')

    handle.gates.run(kind)

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, "ended after 0.3 s" in judged.reason) == (Verdict.ERROR, True)


def test_protected_tests_that_take_too_long_open_nothing(tmp_path, monkeypatch):
    calculator(tmp_path)
    slow_in_a_copy = "case $PWD in */detent-protected-*) sleep 30;; *) echo 1 passed in 0.1s;; esac"
    _, handle = started(
        tmp_path, f'{{ kind = "tests", command = "{slow_in_a_copy}", protected = ["tests/**"], inputs = ["calc.py"] }}'
    )
    monkeypatch.setattr(checks, "TIMEOUT_S", 1.0)
    write(tmp_path, "tests/test_calc.py", TEST + "# changed\n")

    handle.gates.run("tests")

    assert verdicts(handle) == {"tests": Verdict.FAIL}
    assert handle.state.phases["work"].gates["tests"].receipt.protected.result is Result.ERROR


def test_evidence_that_was_deleted_is_no_evidence(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS)
    handle.gates.run("tests")

    for kept in (tmp_path / ".workflow" / handle.id / "evidence").iterdir():
        kept.unlink()

    assert verdicts(handle) == {"tests": Verdict.STALE}


# Secrets

KEY = "sk-ant-api03-" + "Zx9Qw7Er5Ty3Ui1Op" * 5 + "-AA"


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", ["tests", "command"])
def test_no_secret_that_a_check_prints_reaches_the_disk(tmp_path, kind, fails):
    script = (
        f"print('1 passed in 0.1s')\nprint('x' * 1950)\nprint('ValueError: {KEY}')\nraise SystemExit({int(fails)})\n"
    )
    write(tmp_path.parent, f"{tmp_path.name}.py", script)
    _, handle = started(
        tmp_path, f'{{ kind = "{kind}", command = "{sys.executable} ../{tmp_path.name}.py", inputs = ["src"] }}'
    )

    handle.gates.run(kind)
    handle.escalate("asked", "work", f"the key {KEY} was refused")
    handle._project.close()

    receipt = handle.state.phases["work"].gates[kind].receipt
    assert receipt.result is (Result.FAILED if fails else Result.PASSED)
    assert "[redacted:" in receipt.tail
    assert not fails or "[redacted:" in receipt.error
    for path in (tmp_path / ".workflow").rglob("*"):
        # Not even the part that a cut through it would leave.
        assert not path.is_file() or KEY[13:40].encode() not in path.read_bytes(), path


def test_no_secret_in_an_agents_own_run_reaches_the_disk(tmp_path):
    project, handle = started(tmp_path, '{ kind = "tests" }')
    output = f"FAILED tests/test_a.py::test_login - ValueError: {KEY}\n1 failed in 0.1s\n"

    handle.gates.observe("work", f"ANTHROPIC_API_KEY={KEY} pytest", output, 1)
    project.close()

    assert handle.state.phases["work"].gates["tests"].receipt.result is Result.FAILED
    for path in (tmp_path / ".workflow").rglob("*"):
        assert not path.is_file() or KEY[13:40].encode() not in path.read_bytes(), path


# Several at once


def test_of_runs_at_the_same_time_no_receipt_is_lost(tmp_path):
    calculator(tmp_path)
    _, handle = started(tmp_path, TESTS)
    command = [sys.executable, "-m", "detent", "gate", "run", "tests"]

    running = [
        subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(3)
    ]
    ended = [(*one.communicate(timeout=120), one.returncode) for one in running]

    assert [code for _, _, code in ended] == [0, 0, 0], ended
    checked = [event for commit in handle.log() for event in commit.events if type(event).__name__ == "GateChecked"]
    assert [event.receipt.result for event in checked] == [Result.PASSED] * 3
    assert handle.state.phases["work"].gates["tests"].iterations == 3
    assert verdicts(handle) == {"tests": Verdict.PASS}
