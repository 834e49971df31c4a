"""What was stored is verified whenever it is read: a rewritten file is an error, never a better verdict."""

import subprocess

import msgspec
import pytest

from detent.core.gate.evidence import Result, Verdict
from detent.doctor.finding import ERROR, WARNING
from detent.doctor.invariants import check
from detent.engine.gates.inputs import file_digests
from tests.support.gated import CODE, HAS_GIT, TEST, UNITTEST, calculator, started, verdicts
from tests.support.project import write

GATE = f'{{ kind = "tests", command = "{UNITTEST} discover -s tests -t ." }}'
BROKEN = CODE.replace("+", "-")


@pytest.fixture
def work(tmp_path):
    calculator(tmp_path)
    project, handle = started(tmp_path, GATE)
    with project:
        yield tmp_path, project, handle


def stored(root, handle, kind):
    [file] = (root / ".workflow" / handle.id / kind).iterdir()
    return file


def findings(project):
    project.flush()
    return [finding.subject for finding in check(project)]


def test_rewritten_evidence_does_not_make_a_stale_run_pass(work):
    root, project, handle = work
    handle.gates.run("tests")
    write(root, "calc.py", BROKEN)
    assert verdicts(handle) == {"tests": Verdict.STALE}
    file = stored(root, handle, "evidence")

    file.write_bytes(msgspec.json.encode(file_digests(project.checkpoints.moment(), ())))

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, str(file) in judged.reason) == (Verdict.ERROR, True)
    assert findings(project) == [f"{handle.id}/evidence/{file.name}"]


def test_a_new_run_mends_damaged_evidence(work):
    root, project, handle = work
    handle.gates.run("tests")
    stored(root, handle, "evidence").write_bytes(b"{")
    assert verdicts(handle) == {"tests": Verdict.ERROR}

    handle.gates.run("tests")

    assert verdicts(handle) == {"tests": Verdict.PASS}
    assert findings(project) == []


@pytest.mark.parametrize(("has_ended", "severity"), [(False, ERROR), (True, WARNING)])
def test_damage_is_no_error_once_the_session_has_ended(work, has_ended, severity):
    root, project, handle = work
    handle.gates.run("tests")
    if has_ended:
        handle.cancel("not needed")
    for kind in ("evidence", "protected"):
        stored(root, handle, kind).write_bytes(b"{")
    project.flush()

    assert {finding.severity for finding in check(project)} == {severity}


@pytest.mark.parametrize("how", ["weakened", "emptied", "gone"])
def test_damaged_protected_files_open_nothing_and_are_found(work, how):
    root, project, handle = work
    file = stored(root, handle, "protected")
    match how:
        case "weakened":
            kept = msgspec.json.decode(file.read_bytes())
            kept["tests/test_calc.py"]["content"] = ""
            file.write_bytes(msgspec.json.encode(kept))
        case "emptied":
            file.write_bytes(b"{}")
        case "gone":
            file.unlink()
    write(root, "calc.py", BROKEN)
    write(root, "tests/test_calc.py", TEST.replace("5)", "-1)"))

    handle.gates.run("tests")

    receipt = handle.state.phases["work"].gates["tests"].receipt
    assert (receipt.result, receipt.protected.result) == (Result.FAILED, Result.ERROR)
    assert verdicts(handle) == {"tests": Verdict.FAIL}
    assert findings(project) == [f"{handle.id}/protected/{file.name}"]


@pytest.mark.parametrize(
    "path",
    [
        "tests/data/golden.txt",
        "tests/README.md",
        "tests/cases/a.rst",
        "docs/conftest.py",
        "docs/tests/case.md",
        ".coveragerc",
        ".pytest.ini",
        "vendor/lib/code.py",
    ],
)
def test_what_tests_read_makes_evidence_stale(work, path):
    root, _, handle = work
    write(root, path, "before\n" if path.endswith(("txt", "md", "rst")) else "")
    handle.gates.run("tests")
    assert verdicts(handle) == {"tests": Verdict.PASS}

    write(root, path, "# after\n")

    [judged] = handle.gates.judgements()["work"]
    assert (judged.verdict, path in judged.reason) == (Verdict.STALE, True)


@pytest.mark.skipif(not HAS_GIT, reason="git is not there")
@pytest.mark.parametrize("outer", [False, True])
def test_files_of_a_nested_repository_make_evidence_stale(tmp_path, outer):
    calculator(tmp_path, git=outer)
    calculator(tmp_path / "vendor/inner", git=True)
    _, handle = started(tmp_path, GATE)
    handle.gates.run("tests")
    for path in ("vendor/inner/calc.py", "vendor/inner/tests/data.txt"):
        write(tmp_path, path, "changed = True\n")
        [judged] = handle.gates.judgements()["work"]
        assert (judged.verdict, path in judged.reason) == (Verdict.STALE, True)
        handle.gates.run("tests")
        subprocess.run(["git", "status"], cwd=tmp_path / "vendor/inner", check=True, capture_output=True)
        assert verdicts(handle) == {"tests": Verdict.PASS}


def test_prose_and_hidden_files_make_nothing_stale(work):
    root, _, handle = work
    handle.gates.run("tests")

    for path in ("README.md", "docs/notes.md", ".cache/x.py"):
        write(root, path, "changed\n")

    assert verdicts(handle) == {"tests": Verdict.PASS}
