"""Seed 002: workflow.json, its Markdown page and the agent's todo list follow what the agents do, by hooks alone."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from detent.compat import workflow_state
from detent.core.workflow.graph import chain
from detent.documents.workflow import check, create_workflow_state
from detent.engine.project import open_project
from detent.errors import DetentError, GateClosed, Invalid, NotFound, Refused
from tests.support.hooked_project import Answer, Place
from tests.support.project import build_project
from tests.support.values import Clock

GATED = """
[workflows.held]
phases = [{ key = "build", gates = [{ kind = "command", command = "false" }] }]
"""

BLOCK = """The calculator is there.

Status: completed
Summary: Created the calculator
Deliverables: calculator.py, add and subtract functions
Context for next: calculator.py is at the top level
"""


class Hybrid(Place):
    """Where Claude Code is installed, as far as the files that it reads are concerned."""

    def __init__(self, root: Path, *phases: str) -> None:
        super().__init__(root)
        self.write(".workflow/install/manifest.json", '{"version": 1, "files": {}, "clients": ["claude-code"]}')
        options = [part for phase in phases for part in ("--phase", phase)]
        self.detent("start", "adhoc", "Create calculator.py with tests and verify", *options)

    def workflow(self) -> dict[str, Any]:
        return check(json.loads((self.root / ".claude/state/workflow.json").read_bytes()))

    def page(self) -> str:
        return (self.root / ".claude/workflow_state_system.md").read_text()

    def statuses(self) -> list[str]:
        return [phase["status"] for phase in self.workflow()["phases"]]

    def launch(self, agent: str, agent_id: str, prompt: str = "go") -> Answer:
        """The agent is started in the background."""
        self.delegate(agent, prompt)
        response = {"isAsync": True, "status": "async_launched", "agentId": agent_id}
        return self.after("Agent", response, subagent_type=agent, prompt=prompt)

    def ends(self, agent: str, agent_id: str, text: str) -> Answer:
        return self.hook("SubagentStop", agent_id=agent_id, agent_type=agent, last_assistant_message=text)


CREATE, VERIFY = "Create calculator module:general-purpose", "Write and run tests:task-completion-verifier"


@pytest.mark.req("002-test-1", "002-p1-1")
def test_one_phase_by_the_functions_of_the_seed(tmp_path: Path) -> None:
    name = workflow_state.create_workflow_state("Create one file", [("Create it", "general-purpose")], root=tmp_path)
    created = workflow_state.get_workflow_state(name, root=tmp_path)
    assert re.fullmatch(r"wf_\d{8}_\d{6}", name)
    assert (created["status"], created["current_phase"]) == ("pending", None)
    assert created["phases"][0]["status"] == "pending"

    workflow_state.update_phase_status(name, "phase_0", "active", root=tmp_path)
    assert workflow_state.get_workflow_state(name, root=tmp_path)["current_phase"] == "phase_0"
    workflow_state.update_phase_status(name, "phase_0", "completed", ["one.py"], root=tmp_path)

    done = json.loads((tmp_path / ".claude/state/workflow.json").read_text())
    assert (done["status"], done["phases"][0]["deliverables"]) == ("completed", ["one.py"])
    page = (tmp_path / ".claude/workflow_state_system.md").read_text()
    assert page == workflow_state.generate_markdown(done)
    assert "Status: completed" in page
    assert "- [x] Phase 0: Create it → one.py\n" in page


@pytest.mark.req("002-test-1")
def test_one_phase_from_its_creation_to_completed(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE)
    created = place.workflow()

    assert created["task"] == "Create calculator.py with tests and verify"
    assert created["id"].startswith("wf_")
    assert [(phase["id"], phase["title"], phase["agent"]) for phase in created["phases"]] == [
        ("phase_0", "Create calculator module", "general-purpose")
    ]
    assert (created["status"], created["current_phase"]) == ("active", "phase_0")
    assert "- [ ] Phase 0: Create calculator module\n" in place.page()

    assert place.delegate("general-purpose").denied is None
    place.delegated("general-purpose", BLOCK)

    done = place.workflow()
    assert (done["id"], done["status"], done["current_phase"]) == (created["id"], "completed", None)
    assert done["phases"][0]["status"] == "completed"
    assert "Status: completed | Current Phase: none" in place.page()
    assert "- [x] Phase 0: Create calculator module → calculator.py, add and subtract functions\n" in place.page()


@pytest.mark.req("002-test-2")
def test_two_phases_one_after_the_other(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.delegate("general-purpose")

    told = place.delegated("general-purpose", BLOCK).told

    first, second = place.workflow()["phases"]
    assert first["deliverables"] == ["calculator.py", "add and subtract functions"]
    assert first["context_for_next"] == "calculator.py is at the top level"
    assert (first["status"], second["status"]) == ("completed", "pending")
    assert place.workflow()["status"] == "active"
    assert "calculator.py is at the top level" in told

    assert place.delegate("task-completion-verifier").denied is None

    assert place.statuses() == ["completed", "active"]
    assert place.workflow()["current_phase"] == "phase_1"
    given = place.hook("SubagentStart", agent_id="a-2", agent_type="task-completion-verifier").told
    assert "calculator.py is at the top level" in given
    assert "Created the calculator" in given

    place.delegated("task-completion-verifier", "Summary: 3 tests pass", agent_id="a-2")

    assert place.statuses() == ["completed", "completed"]
    assert place.workflow()["status"] == "completed"
    assert place.disk.history()[-1]["status"] == "completed"


@pytest.mark.req("002-test-2")
def test_a_phase_is_not_begun_before_its_needs_are_done(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)

    denied = place.delegate("task-completion-verifier").denied

    assert denied is not None
    assert "phase_1 waits for phase_0 (in_progress)" in denied
    assert place.statuses() == ["active", "pending"]


@pytest.mark.req("002-test-2")
def test_delegating_a_failed_phase_again_tries_it_again(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.delegate("general-purpose")
    told = place.delegated("general-purpose", "Status: failed\nSummary: the disk is full").told

    failed = place.workflow()
    assert (failed["status"], failed["current_phase"]) == ("failed", "phase_0")
    assert "the disk is full" in told
    assert "Phase 0: Create calculator module (failed)" in place.page()
    assert place.delegate("task-completion-verifier").denied is not None

    assert place.delegate("general-purpose").denied is None

    assert place.statuses() == ["active", "pending"]
    place.delegated("general-purpose", BLOCK, agent_id="a-2")
    assert place.statuses() == ["completed", "pending"]


@pytest.mark.req("002-test-2")
def test_without_a_block_named_files_are_deliverables(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.write("calculator.py", "def add(a, b): return a + b\n")
    place.delegate("general-purpose")

    place.delegated("general-purpose", "I wrote `calculator.py`; missing.py is for later. See /etc/passwd.")

    assert place.workflow()["phases"][0]["deliverables"] == ["calculator.py"]


def listed(told: str) -> list[str]:
    """The status of each phase in the todo list that was told."""
    titles = ("Create calculator module", "Write and run tests")
    lines = [re.search(rf"^- {title}: (\w+) \(activeForm: Working on {title}\)$", told, re.M) for title in titles]
    return [line[1] for line in lines if line is not None]


@pytest.mark.req("002-test-3", "002-todo-1")
@pytest.mark.parametrize(
    ("tool", "inputs"),
    [
        ("TodoWrite", {"todos": [{"content": "a", "status": "completed", "activeForm": "doing a"}]}),
        ("TaskCreate", {"subject": "T1", "description": "desc", "activeForm": "doing T1"}),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}),
        (None, {}),
    ],
)
def test_the_list_is_told_whatever_it_is_kept_with(tmp_path: Path, tool: str | None, inputs: dict[str, Any]) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    if tool is not None:
        # Entries that are no phases are the agent's own business.
        assert place.before(tool, **inputs).text == ""
        assert place.after(tool, {"success": True}, **inputs).text == ""
    place.delegate("general-purpose")

    told = place.delegated("general-purpose", BLOCK).told

    assert listed(told) == ["completed", "pending"]
    place.delegate("task-completion-verifier")
    again = place.hook("SessionStart", source="compact").told
    assert listed(again) == ["completed", "in_progress"]


@pytest.mark.req("002-test-3")
@pytest.mark.parametrize(
    ("client", "tool", "inputs"),
    [
        ("claude-code", "TodoWrite", {"todos": [{"content": "Create calculator module", "status": "completed"}]}),
        ("gemini", "write_todos", {"todos": [{"description": "Create calculator module", "status": "completed"}]}),
        ("codex", "update_plan", {"plan": [{"step": "Create calculator module", "status": "completed"}]}),
    ],
)
def test_a_list_that_runs_ahead_is_put_right(tmp_path: Path, client: str, tool: str, inputs: dict[str, Any]) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    event = "AfterTool" if client == "gemini" else "PostToolUse"

    told = place.hook(event, client=client, tool_name=tool, tool_input=inputs, tool_response={}).told

    assert listed(told) == ["in_progress", "pending"]


@pytest.mark.req("002-todo-2")
@pytest.mark.parametrize(
    ("tool", "inputs", "response", "is_told"),
    [
        ("TaskCreate", {"subject": "Create calculator module"}, {"task": {"id": "1"}}, True),
        ("TaskCreate", {"subject": "Write and run tests"}, {"task": {"id": "1"}}, False),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}, {"success": True}, True),
        ("TaskUpdate", {"taskId": "1", "status": "in_progress"}, {"success": True}, False),
        ("TaskUpdate", {"taskId": "1", "status": "completed"}, {"success": False}, False),
        ("TaskUpdate", {"taskId": "2", "status": "completed"}, {"success": True}, False),
        ("TaskUpdate", {"taskId": "../s-1/1", "status": "completed"}, {"success": True}, False),
        ("TaskUpdate", {"taskId": "1", "activeForm": "Calculating"}, {"success": True}, False),
    ],
    ids=str,
)
def test_tasks_of_the_client_are_kept_in_step(
    tmp_path: Path, tool: str, inputs: dict[str, Any], response: dict[str, Any], *, is_told: bool
) -> None:
    place = Hybrid(tmp_path / "project", CREATE, VERIFY)
    place.client_environment = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    file = tmp_path / "claude/tasks/s-1/1.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"id": "1", "subject": "Create calculator module", "status": "in_progress"}))

    told = place.after(tool, response, **inputs).told

    assert listed(told) == (["in_progress", "pending"] if is_told else [])


@pytest.mark.req("002-todo-3")
def test_a_task_of_the_client_stays_open_with_its_phase(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    task = {"task_id": "1", "task_subject": "Create calculator module", "task_description": ""}

    held = place.held("TaskCompleted", **task)
    assert "Create calculator module is in progress" in held
    assert "detent finish" in held
    assert place.held("TaskCompleted", **task | {"task_subject": "buy milk"}) == ""

    place.delegate("general-purpose")
    place.delegated("general-purpose", BLOCK)

    assert place.held("TaskCompleted", **task) == ""
    assert "is pending" in place.held("TaskCompleted", **task | {"task_subject": "Write and run tests"})


@pytest.mark.req("002-todo-4")
def test_a_parent_in_codex_is_told_the_list_when_it_waited(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    spawn = {"tool_name": "multi_agent_v1spawn_agent", "tool_input": {"message": "Phase ID: phase_0"}}
    place.hook("PreToolUse", client="codex", **spawn)
    place.hook("PostToolUse", client="codex", **spawn, tool_response='{"agent_id": "a-7"}')
    place.hook("SubagentStop", client="codex", agent_id="a-7", agent_type="default", last_assistant_message=BLOCK)
    assert place.statuses() == ["completed", "pending"]

    told = place.hook(
        "PostToolUse",
        client="codex",
        tool_name="multi_agent_v1wait_agent",
        tool_input={"targets": ["a-7"]},
        tool_response="{}",
    )

    assert listed(told.told) == ["completed", "pending"]
    assert "Next: Write and run tests (task-completion-verifier)" in told.told
    assert "calculator.py is at the top level" in told.told


@pytest.mark.req("002-fail-1")
def test_the_error_of_a_call_that_failed_is_kept(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.delegate("general-purpose")
    given = {"subagent_type": "general-purpose", "prompt": "go on"}
    error = "API Error: 529 overloaded\nrequest req_1"

    place.hook("PostToolUseFailure", tool_name="Agent", tool_input=given, error=error)

    assert place.statuses() == ["failed", "pending"]
    assert place.disk.state()["phases"]["phase_0"]["error"] == error


@pytest.mark.req("002-test-3")
def test_a_list_that_agrees_is_left_alone(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    todos = [{"content": "Create calculator module", "status": "in_progress"}, {"content": "x", "status": "completed"}]

    assert place.after("TodoWrite", {}, todos=todos).text == ""


@pytest.mark.req("002-test-4")
@pytest.mark.parametrize("tool", ["Task", "Agent"])
def test_a_bare_end_of_a_call_finishes_the_one_active_phase(tmp_path: Path, tool: str) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)

    place.hook("PostToolUse", tool_name=tool)

    assert place.statuses() == ["completed", "pending"]


@pytest.mark.req("002-test-4")
def test_an_agent_that_is_of_no_phase_finishes_none(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)

    for agent in ("Explore", "task-completion-verifier", "code-poet"):
        place.delegated(agent, "Summary: looked around", agent_id=f"a-{agent}")

    assert place.statuses() == ["active", "pending"]


@pytest.mark.req("002-test-4")
def test_an_agent_in_the_background_finishes_when_it_stops(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.launch("general-purpose", "a-7")

    assert place.statuses() == ["active", "pending"]  # launched is not finished

    for other in ("a-8", ""):
        place.ends("general-purpose", other, "Summary: somebody else")
    assert place.statuses() == ["active", "pending"]

    place.ends("general-purpose", "a-7", BLOCK)

    assert place.statuses() == ["completed", "pending"]
    assert place.workflow()["phases"][0]["deliverables"] == ["calculator.py", "add and subtract functions"]
    # At SubagentStop the agent in front cannot be told; the notification that follows is where it can.
    notification = "<task-notification>\n<task-id>a-7</task-id>\n</task-notification>"
    told = place.hook("UserPromptSubmit", prompt=notification).told
    assert "- Create calculator module: completed" in told
    assert place.hook("UserPromptSubmit", prompt="how far are we?").text == ""


@pytest.mark.req("002-test-4")
def test_an_agent_that_ended_with_nothing_to_say_failed(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    place.launch("general-purpose", "a-7")

    place.ends("general-purpose", "a-7", "  ")

    assert place.statuses() == ["failed", "pending"]


@pytest.mark.req("002-test-4")
def test_a_marker_in_the_prompt_says_which_phase_is_meant(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, "Plan it:planner", "Build it:general-purpose", "Check it:general-purpose")
    place.delegate("planner")
    place.delegated("planner", "Summary: planned")

    place.delegate("code-poet", "Phase ID: phase_1\nBuild it")
    assert place.statuses() == ["completed", "active", "pending"]
    place.delegated("code-poet", "Summary: built", prompt="Phase ID: phase_1\nBuild it", agent_id="a-2")

    assert place.statuses() == ["completed", "completed", "pending"]


@pytest.mark.req("002-test-4")
def test_without_the_client_no_files_are_made_for_it(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.detent("start", "adhoc", "Make it", "--phase", CREATE)

    place.delegated("general-purpose", BLOCK)

    assert not (place.root / ".claude").exists()


@pytest.mark.req("002-test-4")
def test_files_that_cannot_be_written_stop_nothing(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    (place.root / ".claude/state/workflow.json").unlink()
    (place.root / ".claude/state/workflow.json").mkdir()

    place.delegate("general-purpose")
    place.delegated("general-purpose", BLOCK)

    assert place.status("phase_0") == "completed"


@pytest.mark.req("002-test-4")
def test_a_workflow_of_somebody_else_is_kept_in_the_archive(tmp_path: Path) -> None:
    place = Place(tmp_path)
    before = datetime(2026, 1, 5, 14, 30, 22, tzinfo=UTC)
    other = create_workflow_state("Something else", [("One", "somebody")], root=place.root, now=before)

    place.detent("start", "adhoc", "Make it", "--phase", CREATE)

    assert json.loads((place.root / ".claude/state/workflow.json").read_bytes())["task"] == "Make it"
    kept = json.loads((place.root / f".claude/state/workflows/{other}.json").read_bytes())
    assert kept["task"] == "Something else"


# The functions of the seed, and edits of the document


def adopted(place: Place) -> str:
    """What became of the edits, on one line."""
    return " ".join(place.run("adopt").stdout.split())


@pytest.mark.req("002-p1-1")
def test_no_workflow_is_created_over_the_one_of_a_session(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    before = place.workflow()

    with pytest.raises(Refused, match="shows its workflow there"):
        workflow_state.create_workflow_state("Something else", [("One", "somebody")], root=tmp_path)
    assert place.workflow() == before

    place.detent("cancel", "--reason", "not now")
    made = workflow_state.create_workflow_state("Something else", [("One", "somebody")], root=tmp_path)
    assert place.workflow()["id"] == made == workflow_state.get_workflow_state(made, root=tmp_path)["id"]


@pytest.mark.req("002-p1-2")
def test_updating_a_phase_is_a_command_of_the_session(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    name = place.workflow()["id"]

    workflow_state.update_phase_status(name, "phase_0", "completed", ["calculator.py"], "at the top", root=tmp_path)

    assert place.statuses() == ["completed", "active"]
    assert place.workflow()["phases"][0]["deliverables"] == ["calculator.py"]
    assert (place.status("phase_0"), place.status("phase_1")) == ("completed", "in_progress")
    place.detent("status")
    assert place.statuses() == ["completed", "active"]  # nothing wrote over it

    workflow_state.update_phase_status(name, "phase_1", "failed", context="the tests hang", root=tmp_path)
    assert place.statuses() == ["completed", "failed"]
    assert place.disk.state()["phases"]["phase_1"]["error"] == "the tests hang"
    workflow_state.update_phase_status(name, "phase_1", "active", root=tmp_path)
    workflow_state.update_phase_status(name, "phase_1", "completed", root=tmp_path)
    assert place.workflow()["status"] == "completed"
    assert place.disk.state()["active_workflow"] is None


@pytest.mark.req("002-p1-2")
@pytest.mark.parametrize(
    ("phase", "status", "error"),
    [("phase_0", "bogus", Invalid), ("phase_9", "active", NotFound), ("phase_1", "active", Refused)],
)
def test_an_update_that_the_session_refuses_changes_nothing(
    tmp_path: Path, phase: str, status: str, error: type[DetentError]
) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    before = place.workflow()

    with pytest.raises(error):
        workflow_state.update_phase_status(before["id"], phase, status, root=tmp_path)

    assert place.workflow() == before


@pytest.mark.req("002-p1-2")
def test_an_update_does_not_open_a_gate(tmp_path: Path) -> None:
    place = Place(tmp_path, settings=GATED)
    place.write(".workflow/install/manifest.json", '{"version": 1, "files": {}, "clients": ["claude-code"]}')
    place.detent("start", "held", "Try it")
    document = tmp_path / ".claude/state/workflow.json"
    name = json.loads(document.read_text())["id"]

    with pytest.raises(GateClosed):
        workflow_state.update_phase_status(name, "phase_0", "completed", root=tmp_path)
    edited = document.read_text().replace('"status": "active",\n      "deliv', '"status": "completed",\n      "deliv')
    document.write_text(edited)

    assert "held by 1 of its gates" in adopted(place)
    assert place.status("build") == "in_progress"


@pytest.mark.req("002-p1-2")
def test_an_edit_of_the_document_is_adopted(tmp_path: Path) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    document = tmp_path / ".claude/state/workflow.json"
    edited = place.workflow()
    edited["phases"][0] |= {"status": "completed", "deliverables": ["calculator.py"], "context_for_next": "on top"}
    edited["phases"][1] |= {"status": "active"}
    edited["current_phase"] = "phase_1"
    document.write_text(json.dumps(edited))

    assert ".claude/state/workflow.json was edited by hand" in place.run("status").stderr
    assert "adopted the edit of .claude/state/workflow.json" in adopted(place)

    assert place.workflow() == edited
    assert (place.status("phase_0"), place.status("phase_1")) == ("completed", "in_progress")
    assert "workflow.json" not in adopted(place)


@pytest.mark.req("002-p1-2")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda workflow: workflow.update(task="Another"), "task: an edit cannot set this"),
        (lambda workflow: workflow["phases"][0].update(title="Another"), "phase_0.title"),
        (lambda workflow: workflow["phases"].pop(), "phases: the session has 2 of them"),
        (lambda workflow: workflow["phases"][0].update(status="pending"), "phase_0.status"),
        (lambda workflow: workflow["phases"][0].update(deliverables=["x"]), "phase_0.deliverables"),
        (lambda workflow: workflow["phases"][1].update(status="completed"), "phase_1: phase phase_1 waits for phase_0"),
        (lambda workflow: workflow["phases"][0].update(status="bogus"), "is not valid"),
    ],
)
def test_an_edit_that_is_not_adopted_is_kept_with_reasons(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], reason: str
) -> None:
    place = Hybrid(tmp_path, CREATE, VERIFY)
    before = place.workflow()
    edited = json.loads(json.dumps(before))
    change(edited)
    text = json.dumps(edited)
    (tmp_path / ".claude/state/workflow.json").write_text(text)

    said = adopted(place)

    assert reason in said
    assert place.workflow() == before
    assert (place.disk.directory / place.session() / "workflow.json.rejected-1").read_text() == text


@pytest.mark.req("002-schema-1")
def test_two_sessions_of_one_second_have_two_ids(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / ".claude/state").mkdir(parents=True)
    build_project(tmp_path)
    with open_project(tmp_path, actor="tester", clock=clock) as project:
        ids = []
        for task in ("first", "second", "third"):
            handle = project.start(chain("row", [("One", "a"), ("Two", "b")]), task)
            project.flush()
            shown = json.loads((tmp_path / ".claude/state/workflow.json").read_text())
            assert shown["task"] == task
            ids.append(shown["id"])
            if task == "first":
                first = handle.id
        project.sessions.switch(first)
        project.flush()

    assert len(set(ids)) == 3
    assert json.loads((tmp_path / ".claude/state/workflow.json").read_text())["id"] == ids[0]
    archived = {path.stem for path in (tmp_path / ".claude/state/workflows").iterdir()}
    assert set(ids[1:]) <= archived
