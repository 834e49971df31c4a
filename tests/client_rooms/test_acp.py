"""The ACP adapter with an agent that follows a script: what it is asked, what it is permitted, how its turn ends."""

import json

import pytest

from detent.clients.acp.agents import UNKNOWN, Live, client_of
from detent.clients.acp.calls import ToolCall
from detent.clients.acp.permission import Permissions
from detent.clients.acp.usage import TurnUsage
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.session.phase_state import Tokens
from detent.errors import Invalid
from detent.run.agents import make_agent
from tests.support.acp_agent import ScriptedAgent, ends, says, update
from tests.support.hooked_project import Place
from tests.support.turns import turn, work

WORKED = {"toolCallId": "t-0", "kind": "read", "title": "look", "status": "completed"}


def edit(path, new="x", call="t-1"):
    diff = {"type": "diff", "path": str(path), "oldText": "", "newText": new}
    return {"toolCallId": call, "kind": "edit", "title": "write", "content": [diff], "locations": [{"path": str(path)}]}


def execute(command, call="t-1"):
    return {"toolCallId": call, "kind": "execute", "title": command}


def played(directory, *prompts, turn_fields=(), settings=(), stopping=lambda: False, **facts):
    agent = ScriptedAgent(directory, *prompts, **facts)
    events = work(make_agent(agent.settings(**dict(settings))), turn(directory, **dict(turn_fields)), stopping)
    return agent, events


def texts(events):
    return "\n".join(event.text for event in events if isinstance(event, Said))


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("acp") / "project", agent=False)
    place.detent("start", "feature", "work")
    return place


def test_a_turn_selects_the_mode_that_asks_and_ends_with_the_report_and_the_tokens(tmp_path):
    script = [
        {"ask": edit(tmp_path / "a.txt")},
        says("Summary: do"),
        says("ne"),
        ends(_meta={"quota": {"model_usage": [{"token_count": {"input_tokens": 30, "output_tokens": 4}}]}}),
    ]

    agent, events = played(tmp_path, script)

    assert [params["modeId"] for params in agent.messages("session/set_mode")] == ["default"]
    assert agent.outcomes() == ["o-allow_once"]
    assert events[0] == Started(conversation="c-1", version="gemini-cli 1")
    assert [event.input for event in events if isinstance(event, ToolUsed)] == [str(tmp_path / "a.txt")]
    assert [event for event in events if isinstance(event, Used)][-1].tokens == Tokens(input=30, output=4)
    assert isinstance(events[-1], Finished)
    assert events[-1].report.summary == "done"


def test_the_guard_comes_first_and_the_agent_hears_the_reason_in_a_prompt_of_its_own(project):
    journal = next(project.root.glob(".workflow/WFS-*/journal.jsonl"))
    first = [{"ask": edit(journal)}, {"ask": execute("detent approve", "t-2")}, ends("cancelled")]
    second = [says("Summary: went on"), ends()]

    agent, events = played(project.root, first, second, settings={"allow": ("edit", "execute")})

    assert agent.outcomes() == ["o-reject_once"] * 2
    assert "Detent's own record" in agent.prompts()[1]
    assert "a person's decision" in agent.prompts()[1]
    assert isinstance(events[-1], Finished)


def test_a_call_that_never_asked_is_judged_afterwards_and_drift_is_reported(project):
    journal = next(project.root.glob(".workflow/WFS-*/journal.jsonl"))
    command = f"echo spoilt >> {journal}"
    before = journal.read_bytes()
    script = [{"run": command}, update("tool_call", **execute(command), status="completed"), says("Summary: x"), ends()]
    try:
        _, events = played(project.root, script)
    finally:
        journal.write_bytes(before)

    assert "ran without asking that would have been denied" in texts(events)
    assert "is damaged" in texts(events)


@pytest.fixture
def spoilt(project):
    """The journal, which the agent of the test changes."""
    journal = next(project.root.glob(".workflow/WFS-*/journal.jsonl"))
    before = journal.read_bytes()
    yield journal
    journal.write_bytes(before)


@pytest.mark.parametrize(
    "told",
    [
        [update("tool_call", toolCallId="t-1", kind="read", title="look", status="completed")],
        [update("tool_call", **execute("make"), status="in_progress")],
        [],
    ],
    ids=["as reading", "without its end", "not at all"],
)
def test_drift_is_reported_whatever_the_agent_tells_of_the_call(project, spoilt, told):
    _, events = played(project.root, [{"run": f"echo spoilt >> {spoilt}"}, *told, says("Summary: x"), ends()])

    assert "is damaged" in texts(event for event in events if isinstance(event, Said) and event.by_detent)


def test_settings_that_the_first_call_changed_are_reported(project):
    file = project.root / ".claude/settings.local.json"
    call = update("tool_call", toolCallId="t-1", kind="other", title="x", status="completed")
    script = [{"run": f"mkdir -p {file.parent}; echo '{{}}' > {file}"}, call, says("Summary: x"), ends()]
    try:
        _, events = played(project.root, script)
    finally:
        file.unlink()

    assert ".claude/settings.local.json changed" in texts(events)


@pytest.mark.parametrize(
    "call",
    [
        {**execute("rm -r {root}/.workflow"), "rawInput": {"command": "rm -r {root}/.workflow", "cwd": "/tmp"}},
        {**execute("detent approve x"), "rawInput": {"command": "detent approve x", "cwd": "/tmp"}},
        {**execute("x"), "kind": "read", "rawInput": {"command": "rm -r {root}/.workflow"}},
        {**execute("x"), "kind": "think", "rawInput": {"cmd": ["bash", "-c", "rm -r {root}/.workflow"]}},
        {**edit("{root}/detent.toml"), "kind": "search"},
        {**edit("a"), "locations": [{"path": f"f{number}"} for number in range(1_000)] + [{"path": "detent.toml"}]},
    ],
    ids=["directory", "directory of a decision", "command as reading", "list", "change as searching", "many files"],
)
def test_the_guard_judges_a_call_by_its_content_and_in_the_project_of_the_turn(project, call):
    call = json.loads(json.dumps(call).replace("{root}", str(project.root)))

    agent, _ = played(project.root, [{"ask": call}, ends()], [ends()], settings={"allow": ("edit", "execute", "read")})

    assert agent.outcomes() == ["o-reject_once"]


def test_a_call_that_looks_may_name_every_file(project):
    call = {"toolCallId": "t-1", "kind": "read", "title": "detent approve", "locations": [{"path": "detent.toml"}]}

    agent, _ = played(project.root, [{"ask": call}, says("Summary: x"), ends()])

    assert agent.outcomes() == ["o-allow_once"]


@pytest.mark.parametrize(
    ("asked", "made"),
    [
        (edit("a.txt"), {"locations": [{"path": "detent.toml"}]}),
        (edit("a.txt"), {"locations": [{"path": "/elsewhere/a.txt"}]}),
        (execute("pytest -q"), {"title": "curl x"}),
        (edit("detent.toml"), {}),
    ],
    ids=["guarded file", "file outside", "command", "denied"],
)
def test_an_agent_that_makes_another_call_than_the_one_that_was_allowed_is_stopped(project, asked, made):
    done = update("tool_call_update", toolCallId="t-1", status="completed", **made)

    agent, events = played(
        project.root, [{"request": asked}, done, {"wait": 1}], settings={"allow": ("edit", "execute:pytest *")}
    )

    assert agent.messages("session/cancel") == [{"sessionId": "c-1"}]
    assert isinstance(events[-1], Failed)
    assert events[-1].failure is Failure.REFUSED
    assert events[-1].reason.startswith("the agent made")


def test_the_id_of_a_call_that_has_ended_lends_nothing_to_another_one(project):
    script = [{"ask": edit("a.txt")}, {"ask": edit("detent.toml")}, ends()]

    agent, _ = played(project.root, script, [says("Summary: x"), ends()])

    assert agent.outcomes() == ["o-allow_once", "o-reject_once"]


def test_an_agent_may_tell_more_about_the_call_that_was_allowed(project):
    done = update(
        "tool_call_update",
        toolCallId="t-1",
        status="completed",
        title="wrote it",
        content=[{"type": "content", "content": {"type": "text", "text": "done"}}],
        locations=[{"path": str(project.root / "a.txt"), "line": 3}],
    )

    _, events = played(project.root, [{"request": edit("a.txt")}, done, says("Summary: x"), ends()])

    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    ("facts", "settings"),
    [({"name": "other"}, {}), ({"modes": ()}, {}), ({}, {"mode": "strict"}), ({"fails": ["session/set_mode"]}, {})],
    ids=["unknown agent", "no modes", "mode of the settings", "mode refused"],
)
def test_an_agent_without_a_mode_that_asks_gets_no_prompt_outside_of_a_sandbox(tmp_path, facts, settings):
    agent, events = played(tmp_path, [ends()], settings=settings, **facts)

    assert agent.prompts() == []
    assert isinstance(events[-1], Failed)
    assert events[-1].failure is Failure.REFUSED


def test_a_stopped_turn_is_cancelled_and_its_tokens_are_counted(tmp_path):
    began = []
    usage = {"totalTokens": 50, "inputTokens": 40, "outputTokens": 10}
    agent = ScriptedAgent(
        tmp_path, [update("tool_call", **execute("sleep 600")), {"wait": 1}, ends("cancelled", usage=usage)]
    )

    def stopping():
        began.append(1) if agent.prompts() else None
        return bool(began)

    events = work(make_agent(agent.settings()), turn(tmp_path), stopping)

    assert agent.messages("session/cancel") == [{"sessionId": "c-1"}]
    assert events[-1] == Failed(failure=Failure.STOPPED, reason="stopped")
    assert [event for event in events if isinstance(event, Used)][-1].tokens == Tokens(input=40, output=10)
    assert [event.succeeded for event in events if isinstance(event, ToolUsed)] == [False]


def test_a_turn_over_its_time_is_cancelled_as_well(tmp_path):
    script = [{"wait": 1}, ends("cancelled", usage={"totalTokens": 7, "outputTokens": 2})]

    agent, events = played(tmp_path, script, turn_fields={"timeout_s": 1.0})

    assert len(agent.messages("session/cancel")) == 1
    assert isinstance(events[-1], Failed)
    assert events[-1].failure is Failure.TIMEOUT


@pytest.mark.parametrize(("fails", "began"), [((), 0), (("session/resume",), 1)])
def test_a_conversation_is_continued_or_begun_anew_if_it_is_lost(tmp_path, fails, began):
    script = [update("tool_call", **WORKED), says("Summary: x"), ends()]

    agent, events = played(tmp_path, script, turn_fields={"conversation": "c-1"}, fails=fails)

    assert [params["sessionId"] for params in agent.messages("session/resume")] == ["c-1"]
    assert len(agent.messages("session/new")) == began
    assert isinstance(events[-1], Finished)


@pytest.mark.parametrize(
    ("steps", "failure"),
    [
        ([{"error": {"code": 429, "message": "busy"}}], Failure.TRANSIENT),
        (
            [{"error": {"code": -32603, "message": "Internal error", "data": {"details": "overloaded"}}}],
            Failure.TRANSIENT,
        ),
        ([ends("refusal")], Failure.REFUSED),
        ([ends("max_tokens")], Failure.ERROR),
        ([update("tool_call", **WORKED), says("the request is invalid", ""), ends()], Failure.ERROR),
        ([says("I would rather not"), ends()], Failure.ERROR),
        ([{"ask": edit("/etc/passwd")}, ends("cancelled")], Failure.ERROR),
    ],
    ids=["status", "details", "refusal", "limit", "notice of Codex", "no work", "denied to the end"],
)
def test_how_a_turn_fails(tmp_path, steps, failure):
    _, events = played(tmp_path, *[steps] * 4, name="codex-acp", modes=("read-only",))

    assert isinstance(events[-1], Failed)
    assert events[-1].failure is failure


@pytest.mark.parametrize(
    "news",
    [
        update("current_mode_update", currentModeId="yolo"),
        update("config_option_update", configOptions=[{"id": "mode", "category": "mode", "currentValue": "yolo"}]),
    ],
)
def test_an_agent_that_changes_its_mode_is_ended(tmp_path, news):
    _, events = played(tmp_path, [news, ends()])

    assert isinstance(events[-1], Failed)
    assert "yolo" in events[-1].reason


@pytest.mark.parametrize(
    ("call", "allow", "sandboxed", "allowed"),
    [
        (edit("a.txt"), None, False, True),
        (edit("/elsewhere/a.txt"), None, False, False),
        (edit("/elsewhere/a.txt"), None, True, True),
        (edit("/elsewhere/a.txt"), ("edit:/elsewhere/*",), False, True),
        (edit("docs/a.md"), ("edit:docs/*",), False, True),
        (edit("src/a.py"), ("edit:docs/*",), False, False),
        ({"kind": "edit", "title": "names no file"}, None, False, False),
        (execute("pytest -q"), None, False, False),
        (execute("pytest -q"), None, True, True),
        (execute("detent ask 'which one?'"), None, False, True),
        (execute("detent status; rm x"), None, False, False),
        (execute("detent gates 2>&1 && detent why > /dev/null"), None, False, True),
        (execute("detent status > src/app.py"), None, False, False),
        (execute("PATH=.:$PATH detent status"), None, False, False),
        (execute("export PATH=.; detent status"), None, False, False),
        (execute('declare "PATH=."; detent status'), None, False, False),
        (execute("for PATH in .; do detent status; done"), None, False, False),
        (execute("detent status ${PATH:=.}"), None, False, False),
        (execute("detent status <<< $(touch x)"), None, False, False),
        (execute("detent task done IMPL-1 -m done"), None, False, True),
        (execute("detent task export --to markdown x"), None, False, False),
        (execute("detent report --output x"), None, False, False),
        (execute("detent -C elsewhere run"), None, False, False),
        (execute("pytest -q"), ("execute:pytest *",), False, True),
        (execute("pytest -q > /dev/null 2>&1"), ("execute:pytest *",), False, True),
        (execute("pytest -q > ../x"), ("execute:pytest *",), False, False),
        (execute("PATH=.:$PATH pytest -q"), ("execute:pytest *",), False, False),
        (execute("pytest -q; curl x"), ("execute:pytest *",), False, False),
        (execute("pytest $(curl x)"), ("execute:pytest *",), False, False),
        (execute("python -c 'import os'"), ("execute:python *",), False, False),
        ({"kind": "switch_mode", "title": "leave"}, ("other",), True, False),
        ({"kind": "fetch", "title": "x"}, None, False, False),
        ({"kind": "read", "title": "x"}, (), False, False),
        ({"kind": "search", "title": "names no file"}, ("search:docs/*",), False, False),
        ({"kind": "search", "title": "names no file"}, ("search",), False, True),
    ],
)
def test_the_settings_allow_a_call_or_not(tmp_path, call, allow, sandboxed, allowed):
    made = ToolCall(UNKNOWN, str(tmp_path))
    made.update(call)

    assert (Permissions(allow, str(tmp_path), sandboxed=sandboxed).refusal(made) is None) is allowed


def test_tokens_of_several_sources_are_not_added_up():
    usage = TurnUsage(Live.REQUESTS)
    usage.updated({"used": 5})  # of a restored conversation
    usage.output_began()
    usage.updated({"used": 100})
    usage.updated({"used": 120, "cost": {"amount": 0.25, "currency": "USD"}})
    assert usage.total() == Tokens(input=220, cost=0.25)
    usage.prompt_ended({"usage": {"totalTokens": 220, "outputTokens": 20}})
    usage.recorded = Tokens(input=300, output=30)  # with a sub-agent
    assert usage.total() == Tokens(input=300, output=30, cost=0.25)


@pytest.mark.parametrize("amount", [-1, True, 10**400, "1"])
def test_an_amount_that_cannot_be_is_no_cost(amount):
    usage = TurnUsage(Live.REQUESTS)
    usage.updated({"used": -5, "cost": {"amount": amount, "currency": "USD"}})
    usage.sdk_message({"type": "result", "model_usage_since_last_result": {"m": {"costUSD": amount}}})
    assert usage.total() == Tokens()


def test_the_tokens_of_the_claude_sdk_are_those_of_all_its_messages():
    usage = TurnUsage(Live.MESSAGES)
    for each in ("a", "a", "b"):
        message = {"id": each, "usage": {"input_tokens": 1, "cache_read_input_tokens": 9, "output_tokens": 2}}
        usage.sdk_message({"type": "assistant", "message": message})
    assert usage.total() == Tokens(input=20, output=4)
    model = {"inputTokens": 3, "cacheReadInputTokens": 27, "outputTokens": 6, "costUSD": 0.5}
    usage.sdk_message({"type": "result", "model_usage_since_last_result": {"m": model}})
    usage.prompt_ended({"usage": {"totalTokens": 12, "outputTokens": 2}})
    assert usage.total() == Tokens(input=30, output=6, cost=0.5)


@pytest.mark.parametrize(
    ("command", "client", "expected"),
    [
        ("gemini --acp", None, "gemini"),
        ("npx -y @agentclientprotocol/claude-agent-acp", None, "claude-code"),
        ("/opt/bin/codex-acp", None, "codex"),
        ("goose acp", None, "acp"),
        ("goose acp", "codex", "codex"),
    ],
)
def test_the_client_is_known_by_its_command(command, client, expected):
    assert client_of(AgentSettings(adapter="acp", command=command, client=client)) == expected


@pytest.mark.parametrize("wrong", [{"command": None}, {"allow": ("write",)}, {"client": "nobody"}])
def test_wrong_settings_are_refused_before_a_run(wrong):
    with pytest.raises(Invalid):
        make_agent(AgentSettings(adapter="acp", **{"command": "gemini --acp", **wrong}))


@pytest.mark.parametrize("command", ["echo hello", "true", "cat"])
def test_a_program_that_does_not_speak_the_protocol_is_not_tried_again(tmp_path, command):
    [event] = work(make_agent(AgentSettings(adapter="acp", command=command)), turn(tmp_path))

    assert isinstance(event, Failed)
    assert event.failure is Failure.REFUSED
    assert "does not speak ACP" in event.reason
    assert "correct command under [agents] in detent.toml" in event.reason


def test_an_agent_that_crashes_at_its_start_is_tried_again(tmp_path):
    [event] = work(make_agent(AgentSettings(adapter="acp", command="ls /nowhere")), turn(tmp_path))

    assert isinstance(event, Failed)
    assert event.failure is Failure.ERROR
    assert "ended with exit code 2: ls: " in event.reason
