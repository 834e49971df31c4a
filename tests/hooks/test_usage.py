"""Tokens and tool calls of agents under hooks: from the transcripts of their clients, else from the payload."""

import json

import pytest

from tests.support.hooked_project import Place

SETTINGS = """
[workflows.row]
phases = [{ key = "build", agent = "software-developer" }, { key = "look" }]
"""
AGENT = "aa1c50d2b6ff04a05"


def line(kind, **message):
    return {"type": kind, "message": message}


def usage(read, written, cached=0):
    return {"input_tokens": read, "cache_read_input_tokens": cached, "output_tokens": written}


CLAUDE = [
    line("user", content="go"),
    line("assistant", id="m1", model="opus", usage=usage(10, 1), content=[{"type": "text", "text": "I look"}]),
    # The next part of the same message.
    line(
        "assistant",
        id="m1",
        usage=usage(10, 5, cached=100),
        content=[{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}],
    ),
    line("user", content=[{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no"}]),
    line(
        "assistant",
        id="m2",
        usage=usage(20, 7),
        content=[{"type": "tool_use", "id": "t2", "name": "Write", "input": {"file_path": "a.py"}}],
    ),
]
CODEX = [
    {"type": "turn_context", "payload": {"model": "gpt-5"}},
    {"payload": {"type": "function_call", "name": "exec_command", "arguments": '{"cmd": "ls"}', "call_id": "c1"}},
    {"payload": {"type": "function_call_output", "call_id": "c1", "output": "Process exited with code 1\nOutput:"}},
    {"payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 100, "output_tokens": 10}}}},
    {"payload": {"type": "token_count", "info": None}},
    {"payload": {"type": "function_call", "name": "apply_patch", "arguments": "{}", "call_id": "c2"}},
    {"payload": {"type": "token_count", "info": {"total_token_usage": {"input_tokens": 130, "output_tokens": 13}}}},
]


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path / "project", settings=SETTINGS)
    place.detent("start", "row", "Try it")
    return place


def transcript(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in lines) + "not JSON\n[]\n")
    return str(path)


def used(place):
    place.detent("finish", "-m", "done")
    place.detent("begin")
    state = place.disk.state()["phases"]["build"]
    path = next((place.disk.directory / "checkpoints").glob("run-*/POST_build_v1.json"))
    agent = json.loads(path.read_text())["agent_states"]["software-developer@build"]
    tools = [(tool["tool"], tool.get("input", ""), tool.get("succeeded", True)) for tool in agent["tool_invocations"]]
    assert agent["token_usage"] == state.get("tokens", {"input": 0, "output": 0})
    return agent["token_usage"], tools


def launched(place, client="claude-code"):
    place.hook("SubagentStart", client=client, agent_id=AGENT, agent_type="software-developer")


def stopped(place, path, client="claude-code"):
    place.hook(
        "SubagentStop",
        client=client,
        agent_id=AGENT,
        agent_type="software-developer",
        agent_transcript_path=path,
        last_assistant_message="Summary: done",
    )


def test_an_agent_of_claude_code_is_counted_by_its_transcript(place, tmp_path):
    launched(place)
    stopped(place, transcript(tmp_path / "agent.jsonl", CLAUDE))
    # The end of the call tells the same once more.
    place.delegated("software-developer", "Summary: done", agent_id=AGENT)

    assert used(place) == (
        {"input": 130, "output": 12},
        [("Bash", '{"command": "ls"}', False), ("Write", '{"file_path": "a.py"}', True)],
    )


def test_the_transcript_is_found_beside_that_of_the_parent(place, tmp_path):
    transcript(tmp_path / f"s-1/subagents/agent-{AGENT}.jsonl", CLAUDE)
    response = {"status": "completed", "agentId": AGENT, "content": [{"type": "text", "text": "Summary: done"}]}

    place.hook(
        "PostToolUse",
        tool_name="Agent",
        tool_input={"subagent_type": "software-developer", "prompt": "go on"},
        tool_response=response,
        transcript_path=str(tmp_path / "s-1.jsonl"),
    )

    assert used(place)[0] == {"input": 130, "output": 12}


def test_without_a_transcript_the_payload_counts(place):
    response = {
        "status": "completed",
        "agentId": AGENT,
        "content": [{"type": "text", "text": "Summary: done"}],
        "usage": usage(8503, 20, cached=7),
        "toolsUsed": ["Bash"],
    }

    place.after("Agent", response, subagent_type="software-developer", prompt="go on")

    assert used(place) == ({"input": 8510, "output": 20}, [("Bash", "", True)])


def test_an_agent_of_codex_is_counted_by_its_rollout(place, tmp_path):
    launched(place, client="codex")
    stopped(place, transcript(tmp_path / "rollout.jsonl", CODEX), client="codex")

    assert used(place) == (
        {"input": 130, "output": 13},
        [("exec_command", '{"cmd": "ls"}', False), ("apply_patch", "{}", True)],
    )


@pytest.mark.parametrize(
    ("client", "lines", "who"),
    [("claude-code", CLAUDE, "claude-code (opus)"), ("codex", CODEX, "codex (gpt-5)")],
)
def test_the_log_names_the_model_of_the_transcript(place, tmp_path, client, lines, who):
    launched(place, client=client)
    stopped(place, transcript(tmp_path / "agent.jsonl", lines), client=client)

    assert f"{who} finished its turn at 1 of 2 build" in place.detent("log")


@pytest.mark.parametrize("path", ["/no/such/file", "/", "", None, 7])
def test_a_transcript_that_cannot_be_read_stops_nothing(place, path):
    launched(place)
    stopped(place, path)

    assert used(place) == ({"input": 0, "output": 0}, [])
