"""`detent mcp` as a client starts it: a process over pipes, both eras of the protocol, no decision of a person."""

import os
import signal

import msgspec
import pytest

from detent.core.guard.rules import PEOPLE_ONLY
from detent.engine.project import open_project
from detent.mcp.calls import next_call
from detent.mcp.tools import TOOLS
from tests.support.gated import started
from tests.support.mcp_client import served
from tests.support.waiting import wait_until

PHASES = """[
    { key = "build", gates = [{ kind = "command", command = "test -e built" }] },
    { key = "release", needs = ["build"], agent = "release-manager", gates = [{ kind = "approval" }] },
]"""
MAX_LIST = 8 * 1024


@pytest.fixture
def place(tmp_path):
    project, _ = started(tmp_path, "", phases=" ".join(PHASES.split()))
    project.close()
    return tmp_path


def actors(place):
    with open_project(place, actor="reader") as project:
        return [commit.actor for commit in project.session().log()]


def test_a_phase_is_worked_on_and_a_decision_of_a_person_is_pending(place):
    with served(place) as client:
        hello = client.connect()
        assert (hello["protocolVersion"], hello["serverInfo"]["name"]) == ("2025-11-25", "detent")

        status = client.call("status")
        assert status["phases"][0] == {
            "phase": "build",
            "status": "in_progress",
            "attempt": 1,
            "token": status["phases"][0]["token"],
        }
        assert status["next"] == [{"tool": "finish", "arguments": {"phase": "build", "summary": "SUMMARY"}}]

        refused = client.call("finish", summary="built", token=status["phases"][0]["token"])
        assert (refused["is_error"], refused["state"]) == (True, "gate_closed")
        assert "command is FAIL" in refused["reason"]
        assert "waits_for" not in refused  # it is the agent's to fix
        assert client.call("status")["waits_for_person"] == []

        (place / "built").touch()
        assert client.call("finish", summary="built")["next"] == [{"tool": "begin", "arguments": {"phase": "release"}}]
        begun = client.call("begin")
        assert begun["handover"]["passed"] == [{"phase": "build", "summary": "built"}]

        pending = client.call("finish", summary="shipped", phase="release")
        assert (pending["is_error"], pending["state"]) == (False, "pending")
        [waits] = pending["waits_for"]
        assert (waits["kind"], waits["gate"]) == ("vote", "approval")
        assert waits["person_types"].startswith("detent approve release --gate approval")
        assert "terminal" in pending["person_decides"]

    added = actors(place)[1:]
    assert {(actor.kind, actor.channel) for actor in added if actor.name == "pipes"} == {("agent", "mcp")}
    assert {actor.kind for actor in added} == {"agent"}


def test_a_request_of_the_stateless_era_needs_nothing_before_it(place):
    with served(place) as client:
        found = client.ask("server/discover", stateless=True)["result"]
        assert found["supportedVersions"][0] == "2026-07-28"
        assert found["resultType"] == "complete"
        assert found["cacheScope"] == "private"
        assert client.call("why", stateless=True)["obstacles"][0]["phase"] == "build"
        read = client.ask("resources/read", {"uri": "detent://session"}, stateless=True)["result"]
        assert (read["resultType"], read["ttlMs"]) == ("complete", 0)

        older = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-01-01"}}
        assert client.ask("tools/list", older)["error"]["code"] == -32022
        bare = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}
        assert client.ask("tools/list", bare)["error"]["code"] == -32602
        assert client.ask("ping", stateless=True)["error"]["code"] == -32601


@pytest.mark.parametrize("stateless", [False, True])
def test_the_tools_have_schemas_and_hints_in_eight_kilobytes(place, stateless):
    with served(place) as client:
        if not stateless:
            client.connect()
        answer = client.ask("tools/list", stateless=stateless)

    tools = {tool["name"]: tool for tool in answer["result"]["tools"]}
    assert len(msgspec.json.encode(answer)) <= MAX_LIST
    assert list(tools) == list(TOOLS)
    assert {decision.split()[0] for decision in PEOPLE_ONLY} & tools.keys() == set()
    for tool in tools.values():
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        assert tool["annotations"]["readOnlyHint"] in (True, False)
    assert tools["finish"]["inputSchema"]["required"] == ["summary"]


def test_bad_input_is_answered_with_its_reason_and_the_server_lives_on(place):
    before = len(actors(place))
    with served(place) as client:
        assert "send initialize first" in client.ask("tools/list")["error"]["message"]
        client.connect()
        client.raw(b'not JSON\n{"jsonrpc":"2.0","id":"odd","method":[]}\n' + b"x" * 1_100_000 + b"\n")
        errors = [client.answer() for _ in range(3)]
        assert [error["error"]["code"] for error in errors] == [-32700, -32600, -32600]
        assert errors[1]["id"] == "odd"
        assert "1048576 bytes" in errors[2]["error"]["message"]
        client.raw(b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[1]}}\n')

        cases = {
            "tools/list/all": ({}, -32601, "no method"),
            "tools/call": ({"name": "approve"}, -32602, "there is no tool approve"),
            "resources/read": ({"uri": "detent://secrets"}, -32002, "no resource"),
            "prompts/get": ({"name": "x"}, -32602, "go_on"),
        }
        nameless = client.ask("tools/call", {})["error"]["message"]
        assert "params.name is the name of a tool; these are: status, why" in nameless
        for method, (params, code, reason) in cases.items():
            error = client.ask(method, params)["error"]
            assert (error["code"], reason in error["message"]) == (code, True), error
        for arguments in ({}, {"summary": ""}, {"summary": 1}, {"summary": "x", "approve": True}, [], "x"):
            wrong = client.ask("tools/call", {"name": "finish", "arguments": arguments})["error"]
            assert wrong["code"] == -32602
            assert "arguments of finish" in wrong["message"]
        assert client.call("begin", phase="nowhere")["is_error"]
        assert client.call("finish", summary="x", phase="release", token="build:1:1")["state"] == "invalid"
        assert client.call("diff", a="PRE_nothing_v9")["is_error"]
        assert client.call("status")["session"]
    assert len(actors(place)) == before


def test_an_answer_that_nobody_asked_for_opens_nothing(place):
    """A client whose hook answers an elicitation by itself: the server never asks, so the answer is to nothing."""
    with served(place) as client:
        client.connect()
        (place / "built").touch()
        client.call("finish", summary="built")
        client.call("begin")
        identity = client.send("tools/call", {"name": "finish", "arguments": {"summary": "shipped"}})
        client.raw(
            msgspec.json.encode({"jsonrpc": "2.0", "id": identity, "result": {"action": "accept", "content": {}}})
            + b"\n"
        )
        assert client.answer()["result"]["structuredContent"]["state"] == "pending"
        again = {"name": "finish", "arguments": {"summary": "x"}, "inputResponses": {"q": {"action": "accept"}}}
        assert client.ask("tools/call", again, stateless=True)["result"]["structuredContent"]["state"] == "pending"
        assert client.notifications == []


def test_a_phase_that_waits_for_a_review_cannot_be_followed_and_the_answer_is_pending(tmp_path):
    project, _ = started(tmp_path, "", more="supervised = { phases = ['work'] }")
    project.close()
    with served(tmp_path) as client:
        client.connect()
        assert client.call("finish", summary="worked")["waits_for_person"][0]["kind"] == "review"
        pending = client.call("begin", phase="after")
        assert (pending["state"], pending["waits_for"][0]["kind"]) == ("pending", "review")
        assert client.call("begin", phase="nowhere")["state"] == "not_found"


def test_of_two_phases_only_the_one_that_a_person_holds_is_pending(tmp_path):
    phases = (
        '[{ key = "a", gates = [{ kind = "command", command = "false" }] }, '
        '{ key = "b", needs = [], gates = [{ kind = "approval" }] }]'
    )
    project, handle = started(tmp_path, "", phases=phases)
    handle.begin("b")
    project.close()
    with served(tmp_path) as client:
        client.connect()
        assert client.call("finish", summary="x", phase="a")["state"] == "gate_closed"
        assert client.call("finish", summary="x", phase="b")["state"] == "pending"


def test_a_long_check_is_reported_goes_on_and_ends_when_it_is_cancelled(tmp_path):
    command = f"echo $$ > {tmp_path}/pid; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done"
    project, _ = started(tmp_path, f'{{ kind = "command", command = "{command}", inputs = ["src/**"] }}')
    project.close()
    run = {"name": "gate_run", "arguments": {"gate": "command", "wait_s": 600}, "_meta": {"progressToken": 7}}
    pid = tmp_path / "pid"
    with served(tmp_path) as client:
        client.connect()
        assert client.call("gate_run", gate="command", wait_s=0)["state"] == "running"
        (tmp_path / "go").touch()
        assert client.call("gate_run", gate="command")["verdict"] == "PASS"

        (tmp_path / "go").unlink()
        pid.unlink()
        identity = client.send("tools/call", run)
        wait_until(lambda: pid.exists() and pid.read_text() and client.notifications)
        told = client.notifications[0]["params"]
        assert (told["progressToken"], "the check of command runs" in told["message"]) == (7, True)
        client.notify("notifications/cancelled", {"requestId": identity})
        wait_until(lambda: not os.path.exists(f"/proc/{pid.read_text().strip()}"))
        assert client.call("status")["session"]  # the next answer is not that of the cancelled call


def test_a_server_that_is_told_to_stop_ends_the_call_in_progress(place):
    with served(place) as client:
        client.connect()
        client.send("tools/call", {"name": "ask", "arguments": {"question": "Which one?", "wait_s": 600}})
        wait_until(lambda: len(actors(place)) > 1)
        client.process.send_signal(signal.SIGTERM)
        assert client.process.wait(60) == 0


def test_resources_and_the_prompt_are_read(place):
    with served(place) as client:
        client.connect()
        listed = client.ask("resources/list")["result"]["resources"]
        templates = client.ask("resources/templates/list")["result"]["resourceTemplates"]
        assert [each["uri"] for each in listed] == ["detent://session", "detent://journal", "detent://report"]
        assert len(templates) == 2
        with open_project(place, actor="planner") as project:
            for number in range(60):
                project.session().tasks.add(f"Task {number}")
        pages, uri = [], "detent://journal"
        while uri:
            page = msgspec.json.decode(client.ask("resources/read", {"uri": uri})["result"]["contents"][0]["text"])
            pages.append([commit["version"] for commit in page["commits"]])
            uri = page["next"]
        assert [len(page) for page in pages] == [50, 11]
        assert [version for page in pages for version in page] == list(range(1, 62))
        context = client.ask("resources/read", {"uri": "detent://task/IMPL-3"})["result"]["contents"][0]["text"]
        assert msgspec.json.decode(context)["task"]["title"] == "Task 2"
        assert client.ask("resources/read", {"uri": "detent://task/IMPL-99"})["error"]["code"] == -32002
        assert "# " in client.ask("resources/read", {"uri": "detent://report"})["result"]["contents"][0]["text"]

        assert client.ask("prompts/list")["result"]["prompts"][0]["name"] == "go_on"
        [message] = client.ask("prompts/get", {"name": "go_on"})["result"]["messages"]
        assert "In progress: build" in message["content"]["text"]


def test_tasks_questions_and_checkpoints(place):
    with served(place) as client:
        client.connect()
        assert client.call("task_next")["reason"] == "there are no tasks"
        assert client.call("task_add", title="Write it", acceptance=["it runs"])["task"] == "IMPL-1"
        begun = client.call("task_start")
        assert (begun["task"], begun["owner"]) == ("IMPL-1", "pipes")
        refused = client.call("task_done", task="IMPL-1", summary="done", claim=begun["claim"])
        assert "1. it runs" in refused["reason"]
        assert client.call("task_done", task="IMPL-1", met=["it ran"], claim=begun["claim"])["tasks"]["completed"] == 1

        asked = client.call("ask", question="Which database?", choices=["a", "b"], wait_s=0)
        assert (asked["state"], asked["waits_for"][0]["person_types"]) == (
            "pending",
            f"detent reply {asked['question']} ANSWER",
        )
        with open_project(place, actor="ada") as project:
            project.session().reply("b", question=asked["question"])
        again = client.call("ask", question="Which database?", choices=["a", "b"], wait_s=0)
        assert again["state"] == "pending"  # the old one is answered; this is another one
        (place / "new.txt").write_text("one\n")
        [first] = client.call("checkpoints", count=1)["checkpoints"]
        assert first["name"] == "PRE_build_v1"
        assert "+one" in client.call("diff", a="PRE_build_v1")["files"]["new.txt"]
        assert client.call("diff", a="PRE_build_v1", stat=True)["files"]["new.txt"]["lines"] == [1, 0]


@pytest.mark.parametrize(
    ("command", "call"),
    [
        ("detent why", {"tool": "why", "arguments": {}}),
        ("detent why build", {"tool": "why", "arguments": {"phase": "build"}}),
        ("detent begin build", {"tool": "begin", "arguments": {"phase": "build"}}),
        (
            'detent finish build -m "SUMMARY" --artifact PATH',
            {"tool": "finish", "arguments": {"phase": "build", "summary": "SUMMARY"}},
        ),
        ("detent graph", {"tool": "status", "arguments": {}}),
        ("detent gate run lint --phase a", {"tool": "gate_run", "arguments": {"gate": "lint", "phase": "a"}}),
        (
            'detent task done IMPL-1 -m "SUMMARY" --met "HOW" --met "HOW"',
            {"tool": "task_done", "arguments": {"task": "IMPL-1", "summary": "SUMMARY", "met": ["HOW", "HOW"]}},
        ),
        ("detent finish build, or detent redo build for a new attempt", None),
        ("detent approve build --gate approval -m WHY", None),
        ("it doesn't end", None),
        ("", None),
    ],
)
def test_a_command_that_a_tool_carries_out_is_told_as_the_call(command, call):
    assert next_call(command) == call


def test_a_refusal_names_the_call_that_is_its_way_out(place):
    with served(place) as client:
        client.connect()
        refused = client.call("begin", phase="release")

    assert (refused["state"], refused["next"]) == ("refused", [{"tool": "why", "arguments": {}}])


def test_without_a_session_the_answer_says_how_one_is_started(tmp_path):
    with served(tmp_path) as client:
        client.connect()
        assert client.call("status")["state"] == "not_found"  # no project
    (tmp_path / ".workflow").mkdir()
    with served(tmp_path) as client:
        client.connect()
        idle = client.call("status")
        assert (idle["session"], "detent start" in idle["way_out"]) == (None, True)
        assert client.call("begin")["is_error"]
