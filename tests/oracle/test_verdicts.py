"""What the guard reads from a session's document agrees with the verdicts on the session's gates.

A guard that lets through what a gate holds, or holds what a gate lets through, is a defect. One thing it cannot see:
that a file has changed after the run that passed.
"""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from detent.core.gate.evidence import Result, Verdict
from detent.core.guard import state_reader
from detent.engine.session import SessionHandle
from tests.support.oracle.phase_session import document, hook, run_in_shell, session
from tests.support.people import ME, roles

PHASE = "build"
GATES = """
[phases.build]
gates = [
    { kind = "tests", coverage = 80, max_iterations = 4, circuit_breaker = 2 },
    { kind = "constitution", articles = ["I"], max_iterations = 2 },
    { kind = "elicitation", interactions = 2 },
    { kind = "artifacts", paths = ["docs/{artifact_folder}/plan.md"] },
    { kind = "delegation" },
    { kind = "command", name = "lint", command = "test -f clean", circuit_breaker = 2 },
    { kind = "consensus", approvers = ["lead", "sec"], quorum = 1 },
    { kind = "approval" },
]
""" + roles(lead=ME, sec="someone-else")
ADVANCE = {"subagent_type": "sdlc-orchestrator", "prompt": "advance"}

Step = Callable[[SessionHandle, Path], object]


def shell(output: str) -> Step:
    return lambda _, root: run_in_shell(root, "npm test", output)


def report(*, compliant: bool) -> Step:
    return lambda handle, _: handle.gates.report("constitution", compliant=compliant)


def approve(gate: str, **said: Any) -> Step:
    return lambda handle, _: handle.approve("seen", gate=gate, **said)


def record_agent_ended(*, succeeded: bool) -> Step:
    return lambda handle, _: handle.record_agent_ended("a1", succeeded=succeeded)


def launched(handle: SessionHandle, _: Path) -> object:
    return handle.record_agent_started(PHASE, "builder", "a1")


def retry(handle: SessionHandle, _: Path) -> object:
    return handle.resolve("retry") if handle.state.escalations else None


def answer(choice: str | None) -> Step:
    return lambda handle, _: handle.answer(choice=choice)


def write(path: str) -> Step:
    def written(handle: SessionHandle, root: Path) -> None:
        target = root / path.format(folder=handle.state.folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("x")

    return written


def lint(handle: SessionHandle, _: Path) -> object:
    return handle.gates.run("lint")


FAILS, FAILS_OTHERWISE, UNCLEAR = shell("1 failed, 3 passed"), shell("2 failed, 3 passed"), shell("hello")
PASSES, FALLS_SHORT = shell("10 passing\nStatements : 90%"), shell("10 passing\nStatements : 60%")
COMPLIES, VIOLATES = report(compliant=True), report(compliant=False)

TESTS: dict[str, tuple[Step, ...]] = {
    "not run": (),
    "failed": (FAILS,),
    "failed, then otherwise": (FAILS, FAILS_OTHERWISE),
    "unclear": (UNCLEAR,),
    "passed": (PASSES,),
    "passed, then failed": (PASSES, FAILS),
    "passed, then unclear": (PASSES, UNCLEAR),
    "short of coverage": (FALLS_SHORT,),
    "escalated": (FAILS, FAILS),
    "escalated, then passed": (FAILS, FAILS, PASSES),
    "escalated, then retried": (FAILS, FAILS, retry),
    "escalated, passed, retried": (FAILS, FAILS, PASSES, retry),
    "short until it escalated": (FALLS_SHORT,) * 4,
    "opened without a run": (approve("tests"),),
    "failed and opened": (FAILS, approve("tests")),
    "escalated and opened": (FAILS, FAILS, approve("tests")),
    "opened, then failed": (approve("tests"), FAILS),
}
CONSTITUTION: dict[str, tuple[Step, ...]] = {
    "not begun": (),
    "violated": (VIOLATES,),
    "complied with": (COMPLIES,),
    "complied with, then violated": (COMPLIES, VIOLATES),
    "escalated": (VIOLATES, VIOLATES),
    "escalated, then complied with": (VIOLATES, VIOLATES, COMPLIES),
    "opened": (approve("constitution"),),
}
OTHERS: dict[str, tuple[Step, ...]] = {
    "asked once": (answer("save"),),
    "asked often, nothing chosen": (answer(None), answer(None)),
    "asked often and left": (answer(None), answer("exit")),
    "asked often and saved": (answer(None), answer("save")),
    "asked and opened": (approve("elicitation"),),
    "artifact written": (write("docs/{folder}/plan.md"),),
    "artifact elsewhere": (write("docs/plan.md"),),
    "artifact excused": (approve("artifacts"),),
    "agent running": (launched,),
    "agent ran": (launched, record_agent_ended(succeeded=True)),
    "agent failed": (launched, record_agent_ended(succeeded=False)),
    "agent excused": (approve("delegation"),),
    "lint fails": (lint,),
    "lint escalated": (lint, lint),
    "lint passes": (write("clean"), lint),
    "lint excused": (approve("lint"),),
    "voted for": (approve("consensus"),),
    "voted against": (approve("consensus", approve=False),),
    "approved": (approve("approval"),),
    "not approved": (approve("approval", approve=False),),
}
WAYS = ("asked often and saved", "artifact written", "agent ran", "lint passes", "voted for", "approved")
OPENED = (*(step for way in WAYS for step in OTHERS[way]), COMPLIES, PASSES)


def play(root: Path, *steps: Step) -> tuple[list[str], list[str], str, str]:
    """The gates that hold by their verdicts and by the document, and the corridor by both."""
    with session(root, PHASE, settings=GATES) as (_, handle):
        for step in steps:
            step(handle, root)
        judged = {one.gate: one.verdict for one in handle.gates.judgements(PHASE)[PHASE]}
        state = handle.state.phases[PHASE]
    doc = document(root)
    held = [gate for gate, verdict in judged.items() if verdict not in (Verdict.PASS, Verdict.STALE)]
    reasons = state_reader.closed_gates(doc, PHASE, lambda path: (root / path).exists())
    return (
        held,
        [reason.partition(":")[0] for reason in reasons],
        corridor(judged, state.gates),
        state_reader.corridor(doc, PHASE),
    )


def corridor(judged: dict[str, Verdict], gates: dict[str, Any]) -> str:
    tests, constitution = gates.get("tests"), gates.get("constitution")
    if judged["tests"] is not Verdict.PASS:
        failing = tests and tests.receipt.result is Result.FAILED and tests.escalated is None
        return "tests" if failing else ""
    stuck = constitution is not None and constitution.escalated is not None
    return "" if judged["constitution"] is Verdict.PASS or stuck else "constitution"


@pytest.mark.parametrize(("tests", "constitution"), list(itertools.product(TESTS, CONSTITUTION)))
def test_tests_and_constitution_hold_in_the_document_as_they_do(tests: str, constitution: str, tmp_path: Path) -> None:
    held, read, restricted, restricted_as_read = play(tmp_path, *TESTS[tests], *CONSTITUTION[constitution])

    assert read == held
    assert restricted_as_read == restricted


@pytest.mark.parametrize(
    ("tests", "verdict"),
    [
        ("not run", Verdict.PENDING),
        ("failed", Verdict.FAIL),
        ("unclear", Verdict.PENDING),
        ("passed", Verdict.PASS),
        ("short of coverage", Verdict.FAIL),
        ("escalated, then passed", Verdict.FAIL),
        ("escalated, passed, retried", Verdict.PASS),
        ("opened without a run", Verdict.PASS),
    ],
)
def test_the_runs_lead_where_their_names_say(tests: str, verdict: Verdict, tmp_path: Path) -> None:
    with session(tmp_path, PHASE, settings=GATES) as (_, handle):
        for step in TESTS[tests]:
            step(handle, tmp_path)
        judged, escalated = handle.gates.judgements(PHASE)[PHASE][0].verdict, bool(handle.state.escalations)

    assert judged is verdict
    assert escalated is (tests == "escalated, then passed")


@pytest.mark.parametrize("steps", OTHERS)
def test_every_other_gate_holds_in_the_document_as_it_does(steps: str, tmp_path: Path) -> None:
    held, read, *_ = play(tmp_path, *OTHERS[steps])

    assert read == held


def test_nothing_holds_when_every_gate_is_open(tmp_path: Path) -> None:
    held, read, restricted, restricted_as_read = play(tmp_path, *OPENED)

    assert (held, read, restricted, restricted_as_read) == ([], [], "", "")


def test_only_the_verdict_sees_that_a_file_has_changed(tmp_path: Path) -> None:
    with session(tmp_path, PHASE, settings=GATES) as (_, handle):
        run_in_shell(tmp_path, "npm test", "10 passing\nStatements : 90%")
        (tmp_path / "code.py").write_text("changed = True")
        [tests, *_] = handle.gates.judgements(PHASE)[PHASE]

    assert tests.verdict is Verdict.STALE
    assert not any(
        gate.startswith("tests") for gate in state_reader.closed_gates(document(tmp_path), PHASE, lambda _: True)
    )


def test_of_two_gates_of_a_kind_the_one_that_fails_makes_the_corridor(tmp_path: Path) -> None:
    two = """
    [phases.build]
    gates = [{ kind = "tests", name = "unit" }, { kind = "tests", name = "slow", command = "echo 1 passed in 0.1s" }]
    """
    with session(tmp_path, PHASE, settings=two) as (_, handle):
        run_in_shell(tmp_path, "npm test", "1 failed, 3 passed")
        handle.gates.run("slow")

    doc = document(tmp_path)
    assert [reason.partition(":")[0] for reason in state_reader.closed_gates(doc, PHASE, lambda _: True)] == ["unit"]
    assert state_reader.corridor(doc, PHASE) == "tests"


def test_tests_that_fail_as_they_were_hold_in_the_document(tmp_path: Path) -> None:
    protected = """
    [phases.build]
    gates = [{ kind = "tests", command = "grep -q good check.txt && echo 1 passed in 0.1s", protected = ["check.txt"] }]
    """
    (tmp_path / "check.txt").write_text("bad")
    with session(tmp_path, PHASE, settings=protected) as (_, handle):
        (tmp_path / "check.txt").write_text("good")
        handle.gates.run("tests")
        [tests] = handle.gates.judgements(PHASE)[PHASE]

    assert tests.verdict is Verdict.FAIL
    assert state_reader.closed_gates(document(tmp_path), PHASE, lambda _: True)


def test_a_phase_that_waits_for_a_review_holds(tmp_path: Path) -> None:
    with session(tmp_path, PHASE, settings="supervised = {}") as (_, handle):
        handle.finish("done")

    assert "review" in hook(tmp_path, "PreToolUse", tool_name="Task", tool_input=ADVANCE)


def test_an_artifact_of_a_package_is_looked_for_in_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    package = """
    default_project = "app"
    [projects.app]
    path = "packages/app"
    [phases.build]
    gates = [{ kind = "artifacts", paths = ["docs/plan.md"] }]
    """
    (tmp_path / "packages/app/docs").mkdir(parents=True)
    with session(tmp_path, PHASE, settings=package):
        pass

    held = hook(tmp_path, "PreToolUse", tool_name="Task", tool_input=ADVANCE)
    (tmp_path / "packages/app/docs/plan.md").write_text("x")

    assert "docs/plan.md missing" in held
    assert hook(tmp_path, "PreToolUse", tool_name="Task", tool_input=ADVANCE) == ""
