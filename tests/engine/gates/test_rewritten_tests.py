"""A phase that may rewrite tests: what it leaves is protected from then on, and none of the old tests is lost."""

import json

import pytest

from detent.core.gate.evidence import Verdict
from detent.doctor.invariants import check
from detent.engine.project import open_project
from tests.support.cheats import CODE, COMMAND, FILES, SUB, python_on_path
from tests.support.project import build_project, write

GATE = f'{{ kind = "tests", command = "{COMMAND}" }}'
LOST = "tests/test_sub.py::test_sub"
#: `sub` becomes another function, and its test says so.
OTHER_CODE = CODE.replace("a - b", "b - a")
OTHER_SUB = SUB.replace("== 1", "== -1")


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())


@pytest.fixture(params=[True, False], ids=["with a tests gate", "without a gate"])
def is_gated(request):
    return request.param


@pytest.fixture
def project(tmp_path, is_gated):
    gates = f", gates = [{GATE}]" if is_gated else ""
    phases = f'[{{ key = "write", rewrites_tests = true{gates} }}, {{ key = "after", gates = [{GATE}] }}]'
    build_project(tmp_path, f"[workflows.w]\nphases = {phases}\n", files=FILES)
    with open_project(tmp_path, actor="ada") as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


@pytest.fixture
def handle(project):
    return project.start("w", "write tests")


def rewritten(root):
    write(root, "calc.py", OTHER_CODE)
    write(root, "tests/test_sub.py", OTHER_SUB)


def after(handle):
    """The verdict on the tests in the phase that follows."""
    handle.gates.run("tests")
    [judged] = handle.gates.judgements("after")["after"]
    return judged.verdict, judged.reason


def test_rewritten_tests_are_the_protected_ones_of_the_phases_that_follow(tmp_path, handle):
    rewritten(tmp_path)
    handle.finish("rewritten")
    handle.begin()
    assert after(handle)[0] is Verdict.PASS

    write(tmp_path, "calc.py", CODE)
    write(tmp_path, "tests/test_sub.py", "def test_sub():\n    pass\n")

    verdict, reason = after(handle)
    assert verdict is Verdict.FAIL
    assert f"the tests as write left them did not pass: FAILED {LOST} - assert 1 == -1" in reason


def test_new_tests_of_such_a_phase_are_not_lost_afterwards(tmp_path, handle):
    write(tmp_path, "tests/test_new.py", "from calc import add\n\n\ndef test_new():\n    assert add(1, 1) == 2\n")
    handle.finish("written")
    handle.begin()

    (tmp_path / "tests/test_new.py").unlink()

    verdict, reason = after(handle)
    assert verdict is Verdict.FAIL
    assert "tests/test_new.py::test_new (missing)" in reason


@pytest.mark.parametrize("is_gated", [False], indirect=True)
@pytest.mark.parametrize(
    ("file", "text", "outcome"),
    [
        ("tests/test_sub.py", "", "missing"),
        ("tests/test_sub.py", f"import pytest\n{SUB}".replace("def ", "@pytest.mark.skip\ndef "), "skipped"),
        ("tests/conftest.py", 'collect_ignore = ["test_sub.py"]\n', "missing"),
    ],
    ids=["deleted", "skipped", "not collected"],
)
def test_a_phase_without_a_tests_gate_loses_no_test_either(tmp_path, handle, file, text, outcome):
    write(tmp_path, file, text)
    write(tmp_path, "calc.py", OTHER_CODE)
    handle.finish("rewritten")
    handle.begin()

    for _ in range(2):
        verdict, reason = after(handle)
        assert (verdict, f"{LOST} ({outcome})" in reason) == (Verdict.FAIL, True)


def test_doing_the_phase_again_brings_the_tests_of_the_start_back(tmp_path, handle):
    rewritten(tmp_path)
    handle.finish("rewritten")
    assert handle.state.now_protected != handle.state.protected

    handle.redo("write")
    assert handle.state.now_protected == handle.state.protected


def test_a_phase_that_rewrote_nothing_keeps_the_tests_of_the_start(handle):
    handle.finish("nothing to write")

    assert handle.state.now_protected == handle.state.protected
    assert handle.state.phases["write"].protected is None


def test_an_edit_that_finishes_the_phase_protects_what_it_left(tmp_path, project, handle, is_gated):
    rewritten(tmp_path)
    if is_gated:
        handle.gates.run("tests")
    project.flush()
    state = tmp_path / ".workflow/state.json"
    document = json.loads(state.read_text())
    document["phases"]["write"] |= {"status": "completed", "summary": "rewritten"}
    state.write_text(json.dumps(document))

    [adoption] = project.reconcile()

    assert adoption.adopted, adoption.reasons
    assert handle.state.tests_rewritten_by == "write"
    handle.begin()
    assert after(handle)[0] is Verdict.PASS


def test_the_end_of_a_session_protects_what_its_last_phase_left(tmp_path):
    phases = f'["a", {{ key = "write", rewrites_tests = true, gates = [{GATE}] }}]'
    build_project(tmp_path, f"[workflows.w]\nphases = {phases}\n", files=FILES)
    with open_project(tmp_path, actor="ada") as opened:
        handle = opened.start("w", "write tests")
        handle.tasks.add("All")
        handle.tasks.start("IMPL-1")
        handle.tasks.done("IMPL-1")
        handle.finish("done")
        handle.begin()
        rewritten(tmp_path)
        handle.gates.run("tests")

        handle.complete()

        assert handle.state.tests_rewritten_by == "write"
