"""Statements as values: the results of gates at their last finish, and the bytes that are signed."""

from msgspec.structs import replace

from detent.core.attestation.envelope import PAYLOAD_TYPE, envelope, payload, signed_bytes
from detent.core.attestation.statements import (
    TEST_RESULT,
    Subject,
    finished_gates,
    result_predicate,
    statement,
)
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.tests import TestsGate
from detent.core.testrun.suite import Outcome
from tests.support.history import History, gated, receipt

GRAPH = gated(build=(TestsGate(command="pytest -q"), CommandGate(command="lint"), ApprovalGate()))


def finished() -> History:
    history = History(GRAPH).begin("build").check("build", "tests", True)
    history.check("build", "command", receipt(False, command="lint")).approve("build", "command")
    return history.vote("build", "approval").finish("build")


def test_a_gate_that_ran_has_a_result_and_one_that_was_voted_on_has_none():
    results = {
        gate.gate: result_predicate(gate, ["test_a"], "ab")["result"] for gate in finished_gates(finished().commits)
    }

    assert results == {"tests": "PASSED", "command": "WARNED"}


def test_only_the_last_finish_of_a_phase_counts():
    history = finished().redo("build").check("build", "tests", receipt(inputs="later")).finish("build")

    [gate] = finished_gates(history.commits)

    assert (gate.attempt, gate.receipt.inputs if gate.receipt else "") == (2, "later")


def test_a_result_names_the_tests_that_passed_and_those_that_were_lost():
    [gate, _] = finished_gates(finished().commits)
    assert gate.receipt is not None
    lossy = gate._replace(is_open=False, receipt=replace(gate.receipt, lost={"test_b": Outcome.MISSING}, lost_count=1))

    predicate = result_predicate(lossy, ["test_a"], "ab" * 32)

    assert (predicate["result"], predicate["passedTests"], predicate["failedTests"]) == (
        "FAILED",
        ["test_a"],
        ["test_b"],
    )
    assert predicate["configuration"][1] == {"name": "input files", "digest": {"sha256": "ab" * 32}}


def test_the_signed_bytes_have_the_lengths_of_type_and_payload():
    data = payload(statement([Subject("x", {"sha256": "00"})], TEST_RESULT, {"b": 1, "a": 2}))

    assert signed_bytes(data) == f"DSSEv1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(data)} ".encode() + data
    assert data.index(b'"a":2') < data.index(b'"b":1')
    assert envelope(b"hi", ())["payload"] == "aGk="
