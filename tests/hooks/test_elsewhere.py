"""Claude Code lets an agent go below its project and beside it: the project of the conversation holds it there."""

import os
import shutil

import pytest

from tests.support.hooked_project import Place

SETTINGS = 'gates = "off"\n[workflows.row]\nphases = ["06-implementation", "16-quality-loop", "08-code-review"]\n'
REVIEW = {"tool_name": "Agent", "tool_input": {"subagent_type": "code-reviewer", "prompt": "phase id: 08-code-review"}}


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "project", settings=SETTINGS)
    made.detent("start", "row", "Add search")
    made.client_environment = {"CLAUDE_PROJECT_DIR": str(made.root)}
    return made


@pytest.fixture(params=["no project", "a project", "a project with a session", "a project that the agent made"])
def elsewhere(request, place, tmp_path):
    directory = tmp_path / "elsewhere"
    if request.param == "a project that the agent made":
        directory = place.root / "below"
        directory.mkdir()
        place.detent("-C", "below", "init", CLAUDECODE="1")
        place.detent("-C", "below", "start", "feature", "Something else", CLAUDECODE="1")
        return directory
    if request.param == "no project":
        directory.mkdir()
        return directory
    other = Place(directory, settings=SETTINGS)
    if "session" in request.param:
        other.detent("start", "row", "Something else")
    return directory


def before(place, cwd, tool, **inputs):
    return place.hook("PreToolUse", cwd=str(cwd), tool_name=tool, tool_input=inputs)


@pytest.mark.parametrize("name", ["detent.toml", ".workflow/state.json", ".claude/settings.json"])
def test_the_files_of_the_project_are_guarded(place, elsewhere, name):
    file = place.root / name

    assert before(place, elsewhere, "Bash", command=f"echo x > {file}").denied is not None
    assert before(place, elsewhere, "Bash", command=f"cd .. && echo x > {file}").denied is not None
    assert before(place, elsewhere, "Bash", command=f"echo x > {os.path.relpath(file, elsewhere)}").denied is not None
    assert before(place, elsewhere, "Bash", command=f"cd {place.root} && rm {name}").denied is not None
    assert before(place, elsewhere, "Bash", command="echo x > notes.txt").text == ""


def test_so_are_those_of_the_project_there(place, tmp_path):
    other = Place(tmp_path / "other", settings=SETTINGS)

    assert before(place, other.root, "Bash", command="echo x > detent.toml").denied is not None


def test_the_session_holds_delegations_and_the_end_of_the_turn(place, elsewhere):
    assert "the current phase is 06-implementation" in str(
        place.hook("PreToolUse", cwd=str(elsewhere), **REVIEW).denied
    )

    (place.root / ".workflow/state.json").unlink()
    assert "state.json was missing" in place.hook("Stop", cwd=str(elsewhere)).told


def test_a_record_that_is_gone_is_told_there_too(place, tmp_path):
    (tmp_path / "empty").mkdir()
    shutil.rmtree(place.root / ".workflow")

    assert "the record is gone" in place.hook("UserPromptSubmit", cwd=str(tmp_path / "empty"), prompt="go").told


def test_without_a_session_of_its_own_the_project_there_counts(place, tmp_path):
    other = Place(tmp_path / "other", settings=SETTINGS)
    other.detent("start", "row", "Something else")
    place.detent("pause")

    assert "the current phase is" in str(place.hook("PreToolUse", cwd=str(other.root), **REVIEW).denied)
    assert before(place, other.root, "Bash", command=f"echo x > {place.root}/detent.toml").denied is not None
