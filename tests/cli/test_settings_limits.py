"""Settings that can never work are refused, with the file, the values and the way out."""

import pytest

from tests.support.command import Tool

_PHASE = '[workflows.own]\nphases = [{{key = "a", {}}}]\n'


@pytest.fixture
def tool(tmp_path):
    made = Tool(tmp_path)
    made("init").ok()
    return made


def refusal(tool, settings, *arguments):
    (tool.directory / "detent.toml").write_text(settings)
    code, message, way_out = tool(*arguments).error()
    assert code == 1, message
    assert way_out
    return message


@pytest.mark.parametrize(
    ("gate", "reason"),
    [
        ('quorum = 5, approvers = ["ada"]', "has a quorum of 5, and 1 can vote (ada)"),
        ('quorum = 0, approvers = ["ada"]', "has a quorum of 0"),
        ('quorum = -1, approvers = ["ada", "bob"]', "has a quorum of -1, and 2 can vote (ada, bob)"),
        ("quorum = 1, approvers = []", "has a quorum of 1, and 0 can vote (no approvers)"),
    ],
)
def test_a_quorum_that_cannot_be_reached(tool, gate, reason):
    settings = _PHASE.format(f'gates = [{{kind = "consensus", {gate}}}]')

    assert reason in refusal(tool, settings, "start", "own", "try it")


def test_a_quorum_of_a_role_that_several_people_fill(tool):
    settings = _PHASE.format('gates = [{kind = "consensus", quorum = 2, approvers = ["architect"]}]')

    assert "has a quorum of 2, and 1 can vote" in refusal(tool, settings, "start", "own", "try it")
    roles = '[decisions.roles]\narchitect = ["ada", "bob"]\n'
    (tool.directory / "detent.toml").write_text(settings + roles)
    assert "has a quorum of" not in tool("start", "own", "try it").err


@pytest.mark.parametrize("minutes", [0, -1, -60])
def test_a_timeout_that_is_not_positive(tool, minutes):
    message = refusal(tool, _PHASE.format(f"timeout_minutes = {minutes}"), "status")

    assert "detent.toml, line" in message
    assert ">= 1" in message or "> 0" in message


@pytest.mark.parametrize("setting", ["timeout_minutes = -1", "timeout_minutes = 0", "retries = -1", "backoff_s = -1"])
def test_a_limit_of_an_agent_that_is_negative(tool, setting):
    refusal(tool, f'[agents.x]\nadapter = "command"\ncommand = "true"\n{setting}\n', "status")


NESTED = {
    "lists": lambda depth: f"x = {'[' * depth}{']' * depth}",
    "gates": lambda depth: _PHASE.format(f"gates = {'[' * depth}{']' * depth}"),
    "tables": lambda depth: f"x = {'{a=' * depth}1{'}' * depth}",
    "keys": lambda depth: f"{'.'.join(['a'] * depth)} = 1",
    "headers": lambda depth: f"[{'.'.join(['a'] * depth)}]\nb = 1",
    "environment": lambda depth: f'[agents.x]\nadapter = "manual"\nenv.{".".join(["a"] * depth)} = 1',
}


@pytest.mark.parametrize("depth", [300, 3_000])
@pytest.mark.parametrize("what", NESTED)
def test_settings_that_are_nested_deeply(tool, what, depth):
    text = NESTED[what](depth)
    message = refusal(tool, text, "status")

    assert "detent.toml" in message
    assert "Traceback" not in message
    assert len(message) < 1_000
    for verb in (("doctor",), ("workflows",), ("hook", "claude-code")):
        ran = tool(
            *verb, stdin=b'{"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "ls"}}'
        )
        assert ran.code != 70
        assert "Traceback" not in ran.err
