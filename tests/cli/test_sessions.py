"""Sessions side by side, in processes of their own."""

import json
import re
from pathlib import Path

import pytest

from tests.support.command import Tool, document, make_project, next_command, normalised, refused
from tests.support.golden_file import check_golden
from tests.support.people import by_ada

GOLDEN = Path(__file__).parent / "golden"
LOGIN, SHOP, BUG = "WFS-add-login", "WFS-build-the-shop", "WFS-mend-the-door"


@pytest.fixture
def many(detent, once) -> Tool:
    """Three sessions: one that ended, one paused with a task done, one active with a claimed task."""
    return once(make_many, detent)


def make_many(project: Tool) -> None:
    make_project(project)
    project("start", "fix", "Mend the door").ok()
    project("cancel", "--reason", "no door").ok()
    project("start", "plan-implement-review", "Build the shop").ok()
    project("task", "add", "One").ok()
    project("task", "add", "Two").ok()
    project("task", "start").ok()
    project("task", "done", "IMPL-1").ok()
    project("start", "plan-implement-review", "Add login").ok()
    project("task", "add", "Three").ok()
    project("task", "start", "--owner", "bob").ok()


def listed(tool: Tool, *arguments: str) -> list[tuple[int, str, str]]:
    found = tool("sessions", *arguments, "--json").ok().json()["sessions"]
    return [(one["index"], one["id"], one["status"]) for one in found]


def agent(tool: Tool) -> Tool:
    """The same directory, as an agent's shell has it."""
    inside = Tool(tool.directory)
    inside.environment = tool.environment | {"CLAUDECODE": "1"}
    return inside


SHOWN = {
    "sessions": ["sessions"],
    "switch": ["switch", "shop"],
    "pause": ["pause", "--reason", "lunch"],
    "resume": ["resume", "shop"],
    "reopen": ["reopen", "door", "--reason", "there is one"],
    "archive": ["archive", "door"],
}


@pytest.mark.parametrize("name", SHOWN)
def test_looks_as_it_did(many, name):
    check_golden(GOLDEN / f"session-{name}.txt", by_ada(normalised(many(*SHOWN[name]).ok().out)).rstrip("\n"))


def test_the_list_says_which_is_active_how_far_each_is_and_who_holds_what(many):
    found = many("sessions", "--json").ok().json()
    assert found["active"] == LOGIN
    login, shop, bug = found["sessions"]
    assert (login["index"], login["active"], login["status"], login["phase"]) == (1, True, "active", "IMPLEMENT")
    assert login["claims"]["IMPL-1"]["owner"] == "bob"
    assert (shop["status"], shop["tasks_done"], shop["tasks"], shop["workflow"]) == (
        *("paused", 1, 2, "plan-implement-review"),
    )
    assert (bug["status"], by_ada(bug["last_by"])) == ("cancelled", "ada")


@pytest.mark.parametrize("name", [SHOP, "build-the-shop", "shop", "SHOP", "2"])
def test_a_session_by_id_part_or_number(many, name):
    answer = many("switch", name).ok().out
    assert answer.startswith(f"{SHOP} is active\n{LOGIN} is paused; given back: IMPL-1\n")
    assert listed(many)[:2] == [(1, SHOP, "active"), (2, LOGIN, "paused")]
    assert next_command(answer) == ["task", "start", "IMPL-2"]
    many("task", "start").ok()


def test_names_that_mean_none_or_several_leave_the_active_one_alone(many):
    code, message, _ = refused(many, "switch", "WFS")
    assert (code, LOGIN in message, SHOP in message) == (1, True, True)
    assert refused(many, "switch", "nothing")[2] == "detent sessions"
    assert refused(many, "switch", "9")[0] == 1
    assert refused(many, "switch", "")[0] == 1
    assert refused(many, "switch", "../../etc")[0] == 1
    assert "detent reopen" in refused(many, "switch", BUG)[2]
    assert "detent reopen" in refused(many, "resume", BUG)[2]
    assert listed(many)[0] == (1, LOGIN, "active")
    assert many("switch", LOGIN).ok().out.startswith(f"{LOGIN} is active already\n")


def test_a_pause_gives_tasks_back_and_resume_goes_on(many):
    paused = many("pause", "--json").ok().json()
    assert (paused["session"], paused["released"]) == (LOGIN, ["IMPL-1"])
    assert "No session is active" in many("status").ok().out
    assert refused(many, "pause")[:2] == (1, "no session is active")
    code, message, way_out = refused(many, "task", "start", "IMPL-1", "--session", LOGIN)
    assert (code, LOGIN in message, LOGIN in way_out) == (1, True, True)
    assert many("resume", "--json").ok().json()["session"]["session"] == LOGIN
    assert many("resume").ok().out.startswith(f"{LOGIN} is active already\n")
    assert many("task", "show", "IMPL-1", "--json").ok().json()["status"] == "pending"
    log = many("log").ok().out
    assert "paused the session" in log
    assert "resumed the session" in log


def test_resume_with_nothing_paused(project):
    code, message, way_out = refused(project, "resume")
    assert (code, message, way_out) == (1, "no session is paused", 'detent start WORKFLOW "TASK"')
    assert project("sessions").ok().out == "there are no sessions yet\n"


def test_what_ended_is_archived_and_reopened(many):
    assert "has not ended" in refused(many, "archive", LOGIN)[1]
    assert "has not ended" in refused(many, "reopen", SHOP)[1]
    many("archive", BUG).ok()
    assert [id_ for _, id_, _ in listed(many)] == [LOGIN, SHOP]
    assert "1 archived" in many("sessions").ok().out
    everything = listed(many, "--all")
    assert [id_ for _, id_, _ in everything] == [LOGIN, BUG, SHOP]
    assert listed(many) == [entry for entry in everything if entry[1] != BUG], "numbers are the same in both lists"
    number = next(index for index, id_, _ in listed(many) if id_ == SHOP)
    many("switch", str(number)).ok()
    reopened = many("reopen", BUG, "--reason", "there is one", "--json").ok().json()
    assert (reopened["session"]["session"], reopened["paused"]) == (BUG, SHOP)
    assert listed(many)[0][1:] == (BUG, "active")


def test_a_completed_session_goes_on_with_its_last_phase(project):
    project("start", "plan-implement-review", "Add login").ok()
    for _ in range(2):
        project("finish", "-m", "Done").ok()
        project("begin").ok()
    project("finish", "-m", "Looked at it").ok()
    answer = project("reopen", "login", "--reason", "look again").ok().out
    assert next_command(answer) == ["finish", "REVIEW", "-m", "SUMMARY"]


def test_an_agent_looks_and_goes_on_and_leaves_no_session(many):
    inside = agent(many)
    for command in ("pause", "switch shop", "archive door", "reopen door", "resume shop", "start feature Another"):
        assert "is a person's decision" in refused(inside, *command.split())[1]
    many("pause").ok()
    for command in ("resume", "sessions", "task list"):
        inside(*command.split()).ok()


def test_a_damaged_session_is_listed_with_what_is_wrong(many):
    journal = many.state / SHOP / "journal.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"Build the shop", b"Build the shed", 1))
    text = many("sessions").ok().out
    assert LOGIN in text
    assert re.search(rf"✗ {SHOP} +damaged", text)
    assert "line 1 of the journal" in text
    damaged = next(one for one in many("sessions", "--json").ok().json()["sessions"] if one["id"] == SHOP)
    assert (damaged["status"], "line 1" in damaged["problem"]) == ("damaged", True)
    assert many("switch", "shop").code == 5
    assert listed(many)[0][1:] == (LOGIN, "active")


def test_tasks_of_a_session_that_is_not_active(many):
    many("task", "add", "Four", "--session", SHOP).ok()
    answer = many("task", "list", "--session", SHOP).ok().out
    assert "IMPL-3" in answer
    assert f"--session {SHOP}" in answer
    many("task", "add", "--file", "-", "--session", SHOP, stdin=json.dumps(document("IMPL-9")).encode()).ok()
    assert many("task", "list", "--session", SHOP, "--json").ok().json()["counts"]["total"] == 4
    assert many("task", "list", "--json").ok().json()["counts"]["total"] == 1
