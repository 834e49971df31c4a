"""An agent does not stop while it could still open a gate; it is not kept forever, and not for what others must do."""

import json
from pathlib import Path

import pytest

from tests.support.hook_answers import check_answer
from tests.support.hooked_project import FAILS, PASSES, Place
from tests.support.people import ME

TESTS = '{ kind = "tests" }'
PAYLOADS = Path(__file__).parent / "payloads"


def place_with(root, gates, more=""):
    phases = f'[{{ key = "06-implementation", gates = [{gates}] }}, {{ key = "08-code-review", gates = [] }}]'
    place = Place(root, settings=f"{more}\n[workflows.row]\nphases = {phases}\n")
    place.detent("start", "row", "Add search")
    return place


def stop(place, client="claude-code", **fields):
    event = "AfterAgent" if client == "gemini" else "Stop"
    answer = place.hook(event, client=client, **fields)
    check_answer(client, event, answer.text)
    return answer


@pytest.mark.parametrize("client", ["claude-code", "codex", "gemini"])
@pytest.mark.parametrize("active", [False, True])
def test_stopping_is_held_three_times_and_then_a_person_is_asked(tmp_path, client, active):
    """Whatever the client says about having been held before: one of them always says the same."""
    place = place_with(tmp_path, TESTS)

    held = [stop(place, client, stop_hook_active=active).blocked for _ in range(3)]

    assert all(reason is not None and "tests of 06-implementation is PENDING" in reason for reason in held)
    assert place.disk.state()["pending_escalations"] == []

    answer = stop(place, client, stop_hook_active=active)

    assert answer.blocked is None
    assert "a person must decide" in answer.told
    assert "detent resolve" in answer.told
    [escalation] = place.disk.state()["pending_escalations"]
    assert (escalation["type"], escalation["phase"]) == ("stop_blocked", "06-implementation")
    # From now on it is the person's turn.
    assert stop(place, client).text == ""


def test_the_reason_says_what_would_open_the_gate(tmp_path):
    place = place_with(tmp_path, f'{TESTS}, {{ kind = "artifacts", paths = ["docs/a.md"] }}')

    reason = stop(place).blocked

    assert "detent gate run tests" in reason
    assert "artifacts of 06-implementation is FAIL: docs/a.md missing" in reason


def test_each_client_session_is_counted_by_itself(tmp_path):
    place = place_with(tmp_path, TESTS)
    for _ in range(3):
        assert stop(place, session_id="one").blocked

    assert stop(place, session_id="two").blocked
    assert place.disk.state()["pending_escalations"] == []
    assert stop(place, session_id="one").blocked is None


def test_work_between_two_stops_starts_the_count_anew(tmp_path):
    place = place_with(tmp_path, TESTS)
    for _ in range(3):
        assert stop(place).blocked
    place.tests(FAILS)

    reasons = [stop(place).blocked for _ in range(3)]

    assert all(reason is not None and "is FAIL" in reason for reason in reasons)
    assert stop(place).blocked is None


def test_what_runs_in_the_background_is_waited_for(tmp_path):
    place = place_with(tmp_path, TESTS)
    recorded = json.loads((PAYLOADS / "Stop.with_background.json").read_text())["background_tasks"]

    assert recorded
    assert stop(place, background_tasks=recorded).text == ""
    assert stop(place, background_tasks=[]).blocked is not None


CONSTITUTION = '{ kind = "constitution", articles = ["I"] }'
CONSENSUS = f'{{ kind = "consensus", approvers = ["{ME}"], quorum = 1 }}'


@pytest.mark.parametrize("gates", ['{ kind = "approval" }', '{ kind = "elicitation" }', CONSTITUTION, CONSENSUS])
def test_what_only_a_person_can_open_holds_no_agent(tmp_path, gates):
    assert stop(place_with(tmp_path, gates)).text == ""


def test_while_a_person_has_to_decide_no_agent_is_held(tmp_path):
    place = place_with(tmp_path, TESTS)
    for _ in range(3):
        place.tests(FAILS)

    assert place.disk.state()["pending_escalations"]
    assert stop(place).text == ""


def test_while_a_person_looks_at_a_phase_no_agent_is_held(tmp_path):
    place = place_with(tmp_path, TESTS, more="[supervised]")
    place.tests(PASSES)
    place.detent("finish", "-m", "done")

    assert stop(place).text == ""


def test_beside_a_phase_that_a_person_looks_at_no_agent_is_held(tmp_path):
    phases = f'[{{ key = "one", gates = [] }}, {{ key = "two", needs = [], gates = [{TESTS}] }}]'
    place = Place(tmp_path, settings=f"[supervised]\n[workflows.row]\nphases = {phases}\n")
    place.detent("start", "row", "Add search")
    place.detent("begin", "two")
    assert stop(place).blocked is not None

    place.detent("finish", "one", "-m", "done")

    assert stop(place).text == ""


def test_when_the_tests_pass_the_agent_may_stop(tmp_path):
    place = place_with(tmp_path, TESTS)
    place.tests(FAILS)
    assert stop(place).blocked is not None

    place.tests(PASSES)

    assert stop(place).text == ""


def test_stale_evidence_holds_again(tmp_path):
    place = place_with(tmp_path, TESTS)
    place.tests(PASSES)
    place.write("search.py", "x = 1\n")

    assert "search.py changed" in stop(place).blocked


def test_a_sub_agent_may_always_stop(tmp_path):
    place = place_with(tmp_path, TESTS)

    answer = place.hook("SubagentStop", agent_id="a-1", agent_type="Explore", last_assistant_message="done")

    assert answer.text == ""


def test_without_gates_or_without_a_session_nobody_is_held(tmp_path):
    (tmp_path / "off").mkdir()
    assert stop(place_with(tmp_path / "off", TESTS, more='gates = "off"')).text == ""
    (tmp_path / "none").mkdir()
    assert stop(Place(tmp_path / "none")).text == ""


@pytest.mark.parametrize("text", [b"not json", b"[]", b'{"s-1": 7}', b'{"s-1": {"version": "x"}}'])
def test_a_count_that_cannot_be_read_starts_anew(tmp_path, text):
    place = place_with(tmp_path, TESTS)
    (place.root / ".workflow" / place.session() / "stops.json").write_bytes(text)

    assert stop(place).blocked is not None
    assert not (place.root / ".workflow" / "hook-failures.log").exists()
