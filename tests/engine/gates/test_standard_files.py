"""Reports that a check writes: only those of this run count, and they decide what the output says nothing about."""

import json
import subprocess
import sys
import tracemalloc

import pytest

from detent.core.gate.evidence import Verdict
from detent.core.reports.limits import MAX_BYTES
from detent.engine.gates.reports import DeclaredFiles
from detent.errors import Refused
from tests.support.cheats import COMMAND, FILES, python_on_path
from tests.support.gated import HAS_GIT, calculator, started
from tests.support.project import build_project, write

GREEN = "<testsuite><testcase classname='a' name='one'/><testcase classname='a' name='two'>{}</testcase></testsuite>"
JUNIT = '{ kind = "tests", command = "sh run.sh", junit = "out/*.xml" }'
LCOV = "SF:calc.py\nDA:1,1\nDA:2,{}\nend_of_record\n"
COVERAGE = '{{ kind = "coverage", command = "cp {} cov.info", report = "cov.info", {} }}'
MEASURED = (
    f'{{ kind = "coverage", command = "python -m coverage run --source=. -m {COMMAND.removeprefix("python -m ")}'
    ' && python -m coverage xml -q", report = "coverage.xml", changed = 100 }'
)
#: A tool that finds the word "bad", and writes what it found as SARIF.
LINT = """import json, pathlib
found = [
    {"ruleId": "bad", "message": {"text": "bad word"}, "locations": [{"physicalLocation": {
        "artifactLocation": {"uri": path.resolve().as_uri()}, "region": {"startLine": number}}}]}
    for path in sorted(pathlib.Path(".").glob("*.txt"))
    for number, line in enumerate(path.read_text().splitlines(), 1) if "bad" in line
]
run = {"tool": {"driver": {"name": "lint"}}, "results": found}
pathlib.Path("out.sarif").write_text(json.dumps({"version": "2.1.0", "runs": [run]}))
raise SystemExit(bool(found))
"""
FINDINGS = f'{{ kind = "findings", command = "{sys.executable} lint.py", report = "out.sarif" }}'


def judged(handle, gate):
    handle.gates.run(gate)
    judgement = next(entry for entry in handle.gates.judgements("work")["work"] if entry.gate == gate)
    return judgement.verdict, judgement.reason


def receipt(handle, gate):
    return handle.state.phases["work"].gates[gate].receipt


# Tests


def test_a_report_of_an_earlier_run_is_no_evidence(tmp_path):
    write(tmp_path, ".gitignore", "out\n")
    write(tmp_path, "run.sh", "echo 2 passed in 1s\n")
    write(tmp_path, "out/a.xml", GREEN.format(""))
    project, handle = started(tmp_path, JUNIT)
    with project:
        verdict, reason = judged(handle, "tests")

        assert verdict is Verdict.PENDING
        assert "out/a.xml is older than the run" in reason


def test_the_report_of_the_run_names_the_tests(tmp_path):
    write(tmp_path, ".gitignore", "out\n")
    write(tmp_path, "green.xml", GREEN.format("<skipped/>"))
    write(tmp_path, "run.sh", "mkdir -p out; cp green.xml out/a.xml\n")
    write(tmp_path, "out/old.xml", "<!DOCTYPE a><testsuite/>")
    project, handle = started(tmp_path, JUNIT)
    with project:
        assert judged(handle, "tests") == (Verdict.PASS, "passed: sh run.sh: 1 test (start: 1), 1 skipped")
        assert receipt(handle, "tests").skipped == ("a::two",)

        write(tmp_path, "green.xml", GREEN.format("<failure message='x'/>"))
        assert judged(handle, "tests")[0] is Verdict.FAIL
        assert receipt(handle, "tests").failing == ("a::two",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("truncate -s 200M out/a.xml", f"has {200 * 1024 * 1024} bytes; the limit of all reports is {MAX_BYTES}"),
        ("head -c 40 green.xml > out/a.xml", "not valid XML"),
        ("printf '<!DOCTYPE a><testsuite/>' > out/a.xml", "declares a document type"),
        ("ln -sf ../run.sh out/a.xml", "not valid XML"),
        ("mkfifo out/a.xml", "no file matches out/*.xml"),
        ("true", "no file matches out/*.xml"),
    ],
    ids=["200 MB", "cut off", "document type", "link", "pipe", "none"],
)
def test_a_report_that_cannot_be_trusted_is_refused_with_a_reason(tmp_path, line, reason):
    write(tmp_path, ".gitignore", "out\n")
    write(tmp_path, "green.xml", GREEN.format(""))
    write(tmp_path, "run.sh", f"mkdir -p out; echo 2 passed in 1s; {line}\n")
    project, handle = started(tmp_path, JUNIT)
    with project:
        verdict, why = judged(handle, "tests")

    assert (verdict, reason in why) == (Verdict.PENDING, True), why


def test_a_file_beyond_the_limit_is_not_read(tmp_path):
    declared = DeclaredFiles(str(tmp_path), ["*.xml"])
    with (tmp_path / "a.xml").open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    tracemalloc.start()
    files, unread = declared.read()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert (files, list(unread)) == ((), ["*.xml"])
    assert peak < 1024 * 1024


# Coverage


def test_lines_that_changed_since_the_start_must_be_covered(tmp_path):
    calculator(tmp_path)
    write(tmp_path, "all.lcov", LCOV.format(1))
    write(tmp_path, "half.lcov", LCOV.format(0))
    write(tmp_path, ".gitignore", "cov.info\n")
    gates = COVERAGE.format("half.lcov", "total = 50, changed = 80")
    project, handle = started(tmp_path, gates)
    with project:
        assert judged(handle, "coverage")[0] is Verdict.PASS

        write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")
        assert judged(handle, "coverage") == (
            Verdict.FAIL,
            "coverage of the changed lines is 0 %, and 80 % are needed: calc.py:2",
        )

        write(tmp_path, "half.lcov", LCOV.format(1))
        assert judged(handle, "coverage") == (
            Verdict.PASS,
            "passed: cp half.lcov cov.info: 100 % in all, 100 % of the changed lines",
        )


@pytest.mark.skipif(not HAS_GIT, reason="needs git")
def test_lines_are_compared_with_the_commit_that_a_branch_was_at_the_start(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.com")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    calculator(tmp_path)
    write(tmp_path, ".gitignore", "cov.info\n.workflow\n.claude\n")
    git("init", "-q", "-b", "main")
    git("add", "-A")
    git("commit", "-qm", "first")
    write(tmp_path, "half.lcov", LCOV.format(0))
    write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")
    project, handle = started(tmp_path, COVERAGE.format("half.lcov", 'changed = 80, against = "main"'))
    with project:
        # Committing the work to the branch does not make it old.
        git("add", "-A")
        git("commit", "-qm", "second")

        assert judged(handle, "coverage")[0] is Verdict.FAIL
        assert len(handle.state.workflow.by_key["work"].gates[0].against) == 40


def test_coverage_that_a_real_tool_measures(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", python_on_path())
    build_project(tmp_path, "", files=FILES | {".gitignore": "__pycache__/\ncoverage.xml\n.coverage\n"})
    project, handle = started(tmp_path, MEASURED)
    with project:
        write(tmp_path, "calc.py", FILES["calc.py"] + "\n\ndef div(a, b):\n    return a / b\n")

        verdict, reason = judged(handle, "coverage")

        assert (verdict, reason) == (
            Verdict.FAIL,
            "coverage of the changed lines is 50 %, and 100 % are needed: calc.py:14",
        )


# Findings


def test_only_findings_that_are_new_since_the_phase_began_close_the_gate(tmp_path):
    write(tmp_path, "lint.py", LINT)
    write(tmp_path, "a.txt", "fine\nbad\n")
    write(tmp_path, ".gitignore", "out.sarif\n")
    project, handle = started(tmp_path, FINDINGS)
    with project:
        assert judged(handle, "findings")[0] is Verdict.PASS

        write(tmp_path, "a.txt", "fine\nmore\nbad\nbad too\n")
        assert judged(handle, "findings") == (
            Verdict.FAIL,
            "1 new finding of level warning or worse: a.txt:4 bad (warning): bad word",
        )

        [name] = receipt(handle, "findings").findings
        handle.gates.accept("findings", [name], "it is a quotation")
        [judgement] = handle.gates.judgements("work")["work"]
        assert judgement.verdict is Verdict.PASS


def test_the_settings_of_the_tool_are_watched(tmp_path):
    write(tmp_path, "lint.py", LINT)
    write(tmp_path, ".gitignore", "out.sarif\n")
    project, handle = started(tmp_path, FINDINGS)
    with project:
        write(tmp_path, "ruff.toml", "ignore = ['ALL']\n")

        verdict, reason = judged(handle, "findings")

        assert (verdict, "ruff.toml steers the tool" in reason) == (Verdict.FAIL, True)
        handle.gates.accept("findings", ["file:ruff.toml"], "we use ruff now")
        assert judged(handle, "findings")[0] is Verdict.PASS


# Mutation


def test_without_the_tool_the_gate_is_an_error_that_says_so(tmp_path):
    calculator(tmp_path)
    project, handle = started(tmp_path, '{ kind = "mutation", command = "true" }')
    with project:
        assert judged(handle, "mutation") == (Verdict.PASS, "passed: no line of the code was changed")

        write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")
        verdict, reason = judged(handle, "mutation")

        assert verdict is Verdict.ERROR
        assert "cosmic-ray" in reason


def test_the_report_of_another_tool_is_read(tmp_path):
    calculator(tmp_path)
    mutant = {"id": "7", "mutatorName": "Plus", "status": "Survived", "location": {"start": {"line": 2}}}
    write(tmp_path, "made.json", json.dumps({"files": {"calc.py": {"mutants": [mutant]}}}))
    write(tmp_path, ".gitignore", "m.json\n")
    gate = '{ kind = "mutation", command = "cp made.json m.json", report = "m.json" }'
    project, handle = started(tmp_path, gate)
    with project:
        write(tmp_path, "calc.py", "def add(a, b):\n    return b + a\n")

        verdict, reason = judged(handle, "mutation")

        assert (verdict, reason.endswith("calc.py:2 Plus #7")) == (Verdict.FAIL, True)


def test_a_review_is_not_run(tmp_path):
    project, handle = started(tmp_path, '{ kind = "review" }')
    with project, pytest.raises(Refused, match="report of another agent"):
        handle.gates.run("review")
