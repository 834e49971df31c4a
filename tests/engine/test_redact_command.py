"""Free text of a command is kept; a secret in it is not, in no command and no record."""

import os
from datetime import UTC, datetime

import pytest

from detent.core.session.events import Discovery
from detent.core.task.split import ChildDraft
from detent.core.workflow.graph import chain
from detent.engine.project import init_project, open_project

SECRET = "ghp_" + "a1B2" * 9


@pytest.fixture
def session(tmp_path):
    init_project(tmp_path)
    with open_project(tmp_path, actor="ada") as project:
        yield project.start(chain("c", [("One", "x"), ("Two", "y")]), "a task")


def said(tmp_path, project_session):
    project_session._project.flush()
    found = []
    for directory, _, names in os.walk(tmp_path):
        for name in names:
            with open(os.path.join(directory, name), "rb") as file:
                if SECRET.encode() in file.read():
                    found.append(name)
    return found


SAYINGS = {
    "finish": lambda session: session.finish(
        f"done with {SECRET}", deliverables=[f"key {SECRET}"], context=f"use {SECRET}"
    ),
    "fail": lambda session: session.fail(f"denied: {SECRET}"),
    "skip": lambda session: session.skip("phase_1", reason=f"not with {SECRET}"),
    "cancel": lambda session: session.cancel(f"leaked {SECRET}"),
    "escalate": lambda session: session.escalate("stuck", "phase_0", f"denied: {SECRET}"),
    "ask": lambda session: session.ask(f"is {SECRET} right?"),
    "checkpoint": lambda session: session.checkpoints.take(f"before {SECRET}"),
}


@pytest.mark.parametrize("how", SAYINGS)
def test_no_secret_that_is_said_reaches_the_disk(tmp_path, session, how):
    SAYINGS[how](session)

    assert said(tmp_path, session) == []
    assert any("redacted" in str(event) for commit in session.log() for event in commit.events)


def test_a_summary_of_a_task_has_none_either(tmp_path, session):
    session.tasks.add("Something")
    session.tasks.start("IMPL-1")
    session.tasks.done("IMPL-1", f"done with {SECRET}")

    assert said(tmp_path, session) == []
    assert "redacted" in session.tasks.summary("IMPL-1")


def test_titles_and_documents_of_tasks_have_none(tmp_path, session):
    session.tasks.add(f"Use {SECRET}", requirements=[f"log in with {SECRET}"])
    session.tasks.replan("IMPL-1", {"context": {"acceptance": [f"{SECRET} works"]}}, reason=f"{SECRET} changed")
    session.tasks.split("IMPL-1", [ChildDraft(title=f"try {SECRET}", requirements=(f"with {SECRET}",))])

    assert said(tmp_path, session) == []
    assert "[redacted:github-token]" in session.tasks.document("IMPL-1")["title"]


def test_a_task_file_that_was_written_by_hand_has_none_after_it_was_adopted(tmp_path, session):
    session.tasks.add("Something")
    session._project.flush()
    file = tmp_path / ".workflow" / session.id / ".task/IMPL-1.json"
    file.write_text(file.read_text().replace("Something", f"Use {SECRET}"))

    session._project.reconcile()

    assert said(tmp_path, session) == []
    assert "Use [redacted:github-token]" in file.read_text()


def test_the_task_of_a_session_has_none_and_neither_has_its_name(tmp_path):
    init_project(tmp_path)
    with open_project(tmp_path, actor="ada") as project:
        session = project.start(chain("c", [("One", "x")]), f"Use {SECRET} to log in")

        assert said(tmp_path, session) == []
        assert SECRET[4:12].lower() not in session.id
        assert session.state.task == "Use [redacted:github-token] to log in"


def test_discovery_notes_and_an_imported_document_are_redacted(tmp_path):
    init_project(tmp_path)
    notes = Discovery(text=f"the key is {SECRET}", at=datetime(2026, 2, 9, tzinfo=UTC))
    document = {
        "active_workflow": {"phases": ["a", "b"], "description": "imported", "extra": f"own {SECRET}"},
        "phases": {"a": {"status": "completed", "summary": f"done with {SECRET}"}},
        "added_by_a_tool": {"api_key": "hunter2-hunter2"},
    }
    with open_project(tmp_path, actor="ada") as project:
        project.start(chain("c", [("One", "x")]), "a task", discovery=notes).cancel("enough")
        session = project.import_state(document, source="state.json")

        assert said(tmp_path, session) == []
        carried = session.state.carried["document"]["added_by_a_tool"]
    assert carried == {"api_key": "[redacted:api-key]"}
