"""Every reader of a gate has the verdict of the judge: documents, guard, report and checkpoints."""

import json

import pytest

from detent.core.guard import state_reader
from detent.core.session.obstacle import obstacles
from detent.documents.checkpoint import governance
from detent.render.markdown.report import gate_lines
from detent.render.terminal.canvas import Canvas
from detent.render.terminal.gates import gates_text
from tests.support.gated import started
from tests.support.people import ME, roles
from tests.support.project import write

COVERED = "printf 'TOTAL 100 60 40%%\\n1 passed in 0.1s\\n'"


def short_coverage(root):
    project, handle = started(root, f'{{ kind = "tests", command = {json.dumps(COVERED)}, coverage = 80 }}')
    handle.gates.run("tests")
    return project, handle, "FAIL"


def enough_coverage(root):
    project, handle = started(root, f'{{ kind = "tests", command = {json.dumps(COVERED)}, coverage = 40 }}')
    handle.gates.run("tests")
    return project, handle, "PASS"


def consensus(root, quorum):
    """The approvers are the account of the tests and another one."""
    gate = f'{{ kind = "consensus", approvers = ["lead", "sec"], quorum = {quorum} }}'
    return started(root, gate, more=roles(lead=ME, sec="someone-else"))


def reached_consensus(root):
    project, handle = consensus(root, 1)
    handle.approve("good")
    return project, handle, "PASS"


def open_consensus(root):
    project, handle = consensus(root, 2)
    handle.approve("good")
    return project, handle, "PENDING"


def failed_consensus(root):
    project, handle = consensus(root, 2)
    handle.approve("bad", approve=False)
    return project, handle, "FAIL"


def answered(root):
    project, handle = started(root, '{ kind = "elicitation" }')
    handle.answer(choice="save")
    return project, handle, "PASS"


def delegated(root):
    project, handle = started(root, '{ kind = "delegation" }')
    handle.record_agent_started("work", "writer", "a-1")
    handle.record_agent_ended("a-1", succeeded=True)
    return project, handle, "PASS"


def opened_by_hand(root):
    project, handle = started(root, '{ kind = "artifacts", paths = ["a.md"] }')
    handle.approve("not needed", gate="artifacts")
    return project, handle, "PASS"


@pytest.mark.parametrize(
    "given",
    [
        short_coverage,
        enough_coverage,
        reached_consensus,
        open_consensus,
        failed_consensus,
        answered,
        delegated,
        opened_by_hand,
    ],
)
def test_one_verdict_everywhere(tmp_path, given):
    project, handle, verdict = given(tmp_path)
    with project:
        handle.checkpoints.take("as it stands")
        project.flush()
        session, judged = handle.state, handle.gates.judgements()
        document = json.loads((tmp_path / ".workflow/state.json").read_text())
        checkpoints = [json.loads(path.read_text()) for path in (tmp_path / ".workflow/checkpoints").glob("run-*/*")]
    [judgement] = judged["work"]
    [listed] = document["phases"]["work"]["gates"]
    [latest] = [entry for entry in checkpoints if entry["metadata"].get("note") == "as it stands"]
    results = latest["governance_results"]
    [result] = (*results["quality_gates"], *results["compliance_checks"])

    assert judgement.verdict == verdict
    assert (listed["verdict"], listed["reason"]) == (verdict, judgement.reason)
    assert (result["verdict"], results["passed"]) == (verdict, verdict == "PASS")
    assert governance(session, "work") == results
    closed = state_reader.closed_gates(document, "work", lambda path: False)
    assert closed == ([] if verdict == "PASS" else [f"{judgement.gate}: {verdict}, {judgement.reason}"])
    held = [entry.message for entry in obstacles(session, judged) if entry.message.startswith("gate ")]
    assert held == ([] if verdict == "PASS" else [f"gate {judgement.gate} is {verdict}: {judgement.reason}"])
    assert f"{verdict} {judgement.gate}: {judgement.reason}" in " ".join(gates_text(session, judged, Canvas()).split())
    shown = "opened by hand" if given is opened_by_hand else verdict
    assert f"| {shown} |" in next(line for line in gate_lines(session) if "work |" in line)


def test_paths_are_for_the_reader_of_the_document_to_look_for(tmp_path):
    project, handle = started(tmp_path, '{ kind = "artifacts", paths = ["a.md"] }')
    with project:
        project.flush()
        document = json.loads((tmp_path / ".workflow/state.json").read_text())
        for exists, verdict in ((False, "FAIL"), (True, "PASS")):
            if exists:
                write(tmp_path, "a.md", "")
            [judgement] = handle.gates.judgements()["work"]
            closed = state_reader.closed_gates(document, "work", lambda path: (tmp_path / path).exists())
            assert judgement.verdict == verdict
            assert closed == ([] if exists else [f"artifacts: {judgement.reason}"])


def test_a_finished_phase_had_every_gate_open(tmp_path):
    """Although a file of it has changed since, and its artifacts were removed."""
    gates = '{ kind = "artifacts", paths = ["a.md"] }, { kind = "command", command = "true" }'
    project, handle = started(tmp_path, gates)
    with project:
        write(tmp_path, "a.md", "")
        handle.gates.run("command")
        handle.finish("done")
        (tmp_path / "a.md").unlink()
        project.flush()
        document = json.loads((tmp_path / ".workflow/state.json").read_text())
        assert governance(handle.state, "work")["passed"]
        assert [gate["verdict"] for gate in document["phases"]["work"]["gates"]] == ["PASS", "PASS"]
