"""Test runs and agents that the hook only sees, in the words of each client."""

import pytest

from tests.support.hooked_project import Place

PHASE = "06-implementation"
GREEN = "collected 3 items\n\ntest_a.py ...\n\n============ 3 passed in 0.02s ============\n"
RED = "test_a.py .F.\n\nFAILED test_a.py::test_b - ValueError: no\n========= 1 failed, 2 passed in 0.03s =========\n"


def make(root, gates='{ kind = "tests" }, { kind = "delegation" }'):
    settings = f'[workflows.row]\nphases = [{{ key = "{PHASE}", gates = [{gates}] }}, "08-code-review"]\n'
    place = Place(root, settings=settings)
    place.detent("start", "row", "Add search")
    return place


def claude(place, command, output, code):
    inputs = {"tool_name": "Bash", "tool_input": {"command": command}}
    if code:
        return place.hook("PostToolUseFailure", error=f"Exit code {code}\n{output}", is_interrupt=False, **inputs)
    return place.hook("PostToolUse", tool_response={"stdout": output, "stderr": "", "interrupted": False}, **inputs)


def codex(place, command, output, code):
    return place.hook(
        "PostToolUse",
        client="codex",
        tool_name="Bash",
        tool_input={"command": command},
        tool_response=f"Exit code: {code}\nWall time: 0 seconds\nOutput:\n{output}",
    )


def codex_silent(place, command, output, _code):
    """As Codex answers for its shell: the output and nothing else."""
    return place.hook(
        "PostToolUse", client="codex", tool_name="Bash", tool_input={"command": command}, tool_response=output
    )


def gemini(place, command, output, code):
    ended = f"\nExit Code: {code}" if code else ""
    return place.hook(
        "AfterTool",
        client="gemini",
        tool_name="run_shell_command",
        tool_input={"command": command},
        tool_response={
            "llmContent": f"<untrusted_context>\nOutput: {output}{ended}\nProcess Group PGID: 1\n</untrusted_context>"
        },
    )


def codex_object(place, command, output, code):
    return place.hook(
        "PostToolUse",
        client="codex",
        tool_name="Bash",
        tool_input={"command": command},
        tool_response={"exit_code": code, "output": output},
    )


CLIENTS = [claude, codex, codex_silent, codex_object, gemini]


def receipts(place):
    return [event["receipt"] for event in place.events() if event["type"] == "gate_checked"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_run_that_passed_opens_the_gate_and_the_agent_hears_it(tmp_path, client):
    place = make(tmp_path)

    told = client(place, "python -m pytest -q", GREEN, 0).told

    [receipt] = receipts(place)
    assert (receipt["result"], receipt["by"]) == ("passed", "seen")
    assert "tests of 06-implementation is PASS" in told


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_a_run_that_failed_holds_it(tmp_path, client):
    place = make(tmp_path)

    told = client(place, "pytest", RED, 1).told

    [receipt] = receipts(place)
    assert (receipt["result"], "ValueError: no" in receipt["error"]) == ("failed", True)
    assert "tests of 06-implementation is FAIL" in told


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
def test_an_exit_code_that_a_pipe_hid_does_not_make_a_failure_a_pass(tmp_path, client):
    place = make(tmp_path)

    client(place, "pytest 2>&1 | tail -3", RED, 0)
    client(place, "pytest > log.txt || true", "", 0)

    assert [receipt["result"] for receipt in receipts(place)] == ["failed", "unclear"]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.__name__)
@pytest.mark.parametrize(
    "command", ["cat jest.config.js", "echo 3 passed in 0.02s", "pip install pytest", "grep -rn pytest ."]
)
def test_a_command_that_only_names_a_runner_is_no_run(tmp_path, client, command):
    place = make(tmp_path)

    assert client(place, command, GREEN, 0).text == ""
    assert receipts(place) == []


def _claude_gone(place, gone):
    payload = {"tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_response": {"stdout": GREEN}}
    return place.hook("PostToolUse", cwd=str(place.root / gone), **payload)


def _codex_gone(place, gone):
    inputs = {"tool_name": "Bash", "tool_input": {"command": "pytest"}, "tool_response": GREEN}
    return place.hook("PostToolUse", client="codex", cwd=str(place.root / gone), **inputs)


def _gemini_gone(place, gone):
    inputs = {"command": "pytest", "dir_path": gone}
    response = {"llmContent": f"Output: {GREEN}"}
    return place.hook(
        "AfterTool", client="gemini", tool_name="run_shell_command", tool_input=inputs, tool_response=response
    )


@pytest.mark.parametrize("client", [_claude_gone, _codex_gone, _gemini_gone])
@pytest.mark.parametrize("bound", [False, True])
def test_a_run_in_another_directory_is_a_part_of_the_tests(tmp_path, monkeypatch, client, bound):
    """An agent goes there with one call, and runs with the next one the tests that it wrote there."""
    place = make(tmp_path, gates='{ kind = "tests" }')
    (place.root / "it's").mkdir()
    if bound:
        # The run is recorded before the agent goes on.
        place.client_environment = {"DETENT_SESSION": place.session()}

    assert "it runs a part of the tests" in client(place, "it's").told
    assert "is PASS" in client(place, ".").told


def test_a_run_by_a_sub_agent_counts(tmp_path):
    place = make(tmp_path)

    place.hook(
        "PostToolUse",
        agent_id="a-1",
        agent_type="software-developer",
        tool_name="Bash",
        tool_input={"command": "pytest"},
        tool_response={"stdout": GREEN, "stderr": ""},
    )

    assert [receipt["result"] for receipt in receipts(place)] == ["passed"]


def test_a_phase_without_a_tests_gate_records_nothing(tmp_path):
    place = make(tmp_path, gates='{ kind = "delegation" }')

    assert claude(place, "pytest", GREEN, 0).text == ""
    assert receipts(place) == []


@pytest.mark.parametrize("more", ['command = "pytest -q"', 'protected = ["tests/**"]'])
def test_where_detent_has_to_run_the_tests_itself_a_seen_run_does_not_count(tmp_path, more):
    place = make(tmp_path, gates=f'{{ kind = "tests", {more} }}')

    claude(place, "pytest", GREEN, 0)

    [receipt] = receipts(place)
    assert receipt["aside"].startswith("seen in the agent's shell; ")
    place.refused("finish", "-m", "done")


def test_nothing_is_recorded_twice_or_for_a_session_that_is_over(tmp_path):
    place = make(tmp_path)
    claude(place, "pytest", GREEN, 0)
    place.detent("cancel", "--reason", "enough")

    assert claude(place, "pytest", GREEN, 0).text == ""
    journal = place.disk.journal("WFS-add-search")
    assert sum(event["type"] == "gate_checked" for commit in journal for event in commit["events"]) == 1


# Agents, in a workflow that is not driven by delegation


def delegations(place):
    return [
        (event["type"], event.get("agent") or event.get("succeeded"))
        for event in place.events()
        if event["type"] in ("agent_launched", "agent_ended")
    ]


def test_an_agent_of_the_phase_that_ran_is_recorded_and_finishes_nothing(tmp_path):
    place = make(tmp_path)

    place.delegated("software-developer", "Summary: wrote it")

    assert delegations(place) == [("agent_launched", "software-developer"), ("agent_ended", True)]
    assert place.status(PHASE) == "in_progress"
    [gate] = [gate for gate in place.disk.state()["phases"][PHASE]["gates"] if gate["kind"] == "delegation"]
    assert gate["verdict"] == "PASS"


def test_an_agent_of_another_kind_opens_nothing(tmp_path):
    place = make(tmp_path)

    place.delegated("Explore", "Summary: looked around")

    assert delegations(place) == []


def test_an_agent_in_the_background_counts_when_it_has_ended(tmp_path):
    place = make(tmp_path)
    launched = {"isAsync": True, "status": "async_launched", "agentId": "a-9"}
    place.after("Agent", launched, subagent_type="software-developer", prompt="go")
    assert delegations(place) == [("agent_launched", "software-developer")]

    for agent_id in ("", "a-8"):  # the phantom of a compaction, and the id of another agent
        place.hook("SubagentStop", agent_id=agent_id, agent_type="", last_assistant_message="x")
    assert len(delegations(place)) == 1
    place.hook("SubagentStop", agent_id="a-9", agent_type="software-developer", last_assistant_message="done")
    place.hook("SubagentStop", agent_id="a-9", agent_type="software-developer", last_assistant_message="done again")

    assert delegations(place) == [("agent_launched", "software-developer"), ("agent_ended", True)]


def test_an_agent_that_was_spawned_by_codex_is_known_by_its_id(tmp_path):
    place = make(tmp_path)
    place.hook(
        "PostToolUse",
        client="codex",
        tool_name="spawn_agent",
        tool_input={"message": "Phase ID: 06-implementation. Write it"},
        tool_response='{"agent_id":"c-1","nickname":"Rawls"}',
    )

    place.hook("SubagentStop", client="codex", agent_id="c-1", agent_type="default", last_assistant_message="done")

    assert [kind for kind, _ in delegations(place)] == ["agent_launched", "agent_ended"]


def test_the_agent_of_the_phase_hears_at_its_start_what_it_is_given(tmp_path):
    place = make(tmp_path)

    told = place.hook("SubagentStart", agent_id="a-1", agent_type="software-developer").told

    assert "Add search" in told
    assert "Artifacts go to docs/requirements/" in told
    assert "Gate tests is PENDING" in told
    assert place.hook("SubagentStart", agent_id="a-2", agent_type="Explore").told == ""


def test_at_the_start_of_a_client_the_agent_hears_where_the_work_stands(tmp_path):
    place = make(tmp_path)

    told = place.hook("SessionStart", source="startup").told

    assert "Add search" in told
    assert "[>] 06-implementation" in told
    assert "[ ] 08-code-review" in told
    assert "Gate tests is PENDING: no run yet" in told
