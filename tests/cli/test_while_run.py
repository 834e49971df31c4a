"""What others can do, and are told, while a session is run."""

import os

import pytest

from detent.engine.project import open_project
from detent.errors import Conflict
from detent.run.lease import Lease

SESSION, OTHER = "WFS-add-login-with-passkeys", "WFS-mend-the-door"
FIRST = "POST_01-requirements_v1"


@pytest.fixture
def run(session):
    """The session is run by this process, as far as anybody can tell."""
    with open_project(session.directory, actor="ada") as project:
        lease = Lease(project, SESSION)
        yield lease
        lease.give_back()


def shell_of_its_agent(tool, state=None):
    return {"DETENT_SESSION": SESSION, "DETENT_STATE": str(state or tool.state), "DETENT_PHASE": "02-impact-analysis"}


def test_status_says_who_runs_it_and_how_to_look_on(session, run):
    shown = session("status").ok().out

    assert f"run by       ada (process {os.getpid()} on " in shown
    assert shown.endswith("type         detent watch\n")
    assert "detent finish" not in shown

    told = session("status", "--json").ok().json()["runner"]
    assert (told["run"], told["owner"], told["pid"]) == (run.run, "ada", os.getpid())


def test_status_says_what_to_type_once_nobody_runs_it_any_more(session, run):
    run.give_back()

    assert "run by" not in session("status").ok().out
    assert session("status", "--json").ok().json()["runner"] is None


def test_programs_are_told_what_waits_for_a_person(session):
    with open_project(session.directory, actor="ada") as project:
        project.session().ask("Which table?", phase="02-impact-analysis", choices=("users", "keys"))
        project.session().escalate("stuck", "02-impact-analysis", "it does not go on")

    told = session("status", "--json").ok().json()

    assert [(one["text"], one["choices"]) for one in told["questions"]] == [("Which table?", ["users", "keys"])]
    assert [(one["kind"], one["detail"]) for one in told["escalations"]] == [("stuck", "it does not go on")]
    assert told["awaiting_review"] == []


@pytest.mark.parametrize("command", [["rollback", FIRST], ["rollback", FIRST, "--paths", "x"], ["undo"]])
def test_files_are_not_put_back_while_agents_write_them(session, run, command):
    before = session.digest()

    code, message, way_out = session(*command, "--yes").error()

    assert code == 4
    assert message.startswith(f"{SESSION} is being run by ada (process {os.getpid()} ")
    assert way_out == "detent pause"
    assert session.digest() == before
    run.give_back()
    session("rollback", FIRST, "--yes").ok()


@pytest.mark.usefixtures("run")
def test_from_python_it_is_refused_as_well(session):
    with open_project(session.directory, actor="ada") as project:
        with pytest.raises(Conflict, match="is being run by ada"):
            project.session().checkpoints.rollback(FIRST)
        project.session().checkpoints.rollback(FIRST, phase_only=True)


def test_the_files_of_another_session_are_the_same_files(session, run):
    session("start", "fix", "Mend the door").ok()

    code, message, way_out = session("rollback", "PRE_01-requirements_v1", "--yes", "--session", OTHER).error()

    assert (code, message.startswith(f"{SESSION} is being run")) == (4, True)
    assert "Ctrl-C" in way_out


def test_phases_alone_and_a_look_are_free(session, run):
    session("rollback", FIRST, "--dry-run").ok()
    session("rollback", FIRST, "--phase-only", "--yes").ok()


def test_where_agents_have_their_own_trees_the_files_are_free(session, run):
    with (session.directory / "detent.toml").open("a") as settings:
        settings.write('[run]\nisolation = "session"\n')

    session("rollback", FIRST, "--yes").ok()


def test_in_the_shell_of_an_agent_its_own_session_is_meant_whichever_is_active(session):
    session("start", "fix", "Mend the door").ok()
    own = shell_of_its_agent(session)

    assert session("status", "--json").ok().json()["session"] == OTHER
    assert session("status", "--json", **own).ok().json()["session"] == SESSION
    assert session("why", "--json", **own).ok().json()["session"] == SESSION
    session("task", "add", "Look at the keys", **own).ok()
    session("finish", "-m", "Looked", **own).ok()

    with open_project(session.directory, actor="ada") as project:
        assert [row.title for row in project.session(SESSION).state.tasks] == ["Look at the keys"]
        assert project.session(SESSION).state.phases["02-impact-analysis"].summary == "Looked"
        assert len(project.session(OTHER).state.tasks) == 0


@pytest.mark.parametrize("changes", [{"DETENT_STATE": "/elsewhere/.workflow"}, {"DETENT_SESSION": "WFS-unknown"}])
def test_a_session_that_is_not_of_this_project_is_not_meant(session, changes):
    session("start", "fix", "Mend the door").ok()

    assert session("status", "--json", **shell_of_its_agent(session) | changes).ok().json()["session"] == OTHER


def test_where_none_is_active_an_agent_still_has_its_own(session):
    session("pause", "--reason", "lunch").ok()

    assert session("status", "--json").ok().json()["session"] is None
    assert session("status", "--json", **shell_of_its_agent(session)).ok().json()["session"] == SESSION
