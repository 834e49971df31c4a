"""Files that a client's write tool makes belong to the session: a rollback takes them, and leaves those of a person."""

import json

import pytest

from tests.support.hooked_project import Place

SETTINGS = '[workflows.row]\nphases = ["a", "b"]\n'


@pytest.fixture
def place(tmp_path):
    made = Place(tmp_path / "project", settings=SETTINGS)
    made.detent("start", "row", "Add search")
    return made


def claude(place, path, text):
    inputs = {"file_path": str(place.root / path), "content": text}
    assert place.before("Write", **inputs).denied is None
    place.write(path, text)
    place.after("Write", {"type": "create", "filePath": str(place.root / path)}, **inputs)


def codex(place, path, text):
    patch = f"*** Begin Patch\n*** Add File: {path}\n+{text}\n*** End Patch\n"
    call = {"client": "codex", "tool_name": "apply_patch", "tool_input": {"command": patch}}
    assert place.hook("PreToolUse", **call).denied is None
    place.write(path, text)
    place.hook("PostToolUse", tool_response="Success", **call)


def gemini(place, path, text):
    call = {"client": "gemini", "tool_name": "write_file", "tool_input": {"file_path": path, "content": text}}
    assert place.hook("BeforeTool", **call).denied is None
    place.write(path, text)
    place.hook("AfterTool", tool_response={"llmContent": "written"}, **call)


def rolled_back(place):
    place.detent("finish", "a", "-m", "done")
    return json.loads(place.detent("rollback", "PRE_a_v1", "--yes", "--json"))


@pytest.mark.parametrize("client", [claude, codex, gemini])
def test_a_rollback_takes_what_the_write_tool_of_a_client_made(place, client):
    client(place, "made.py", "x = 1")
    place.write("person.txt", "by hand")

    plan = rolled_back(place)

    assert not (place.root / "made.py").exists()
    assert (place.root / "person.txt").exists()
    assert "person.txt" in json.dumps(plan)


def test_a_file_of_a_person_that_the_tool_changed_stays_the_persons(place):
    place.write("notes.md", "mine")
    inputs = {"file_path": str(place.root / "notes.md"), "old_string": "mine", "new_string": "ours"}
    place.before("Edit", **inputs)
    place.write("notes.md", "ours")
    place.after("Edit", {"filePath": "notes.md"}, **inputs)

    rolled_back(place)

    assert (place.root / "notes.md").exists()


def test_a_file_that_a_person_made_after_a_call_that_was_not_carried_out_stays_the_persons(place):
    inputs = {"file_path": str(place.root / "late.md"), "content": "x"}
    place.before("Write", **inputs)
    place.write("late.md", "by hand")
    changed = {"file_path": str(place.root / "late.md"), "old_string": "hand", "new_string": "tool"}
    place.before("Edit", **changed)
    place.after("Edit", {"filePath": "late.md"}, **changed)

    rolled_back(place)

    assert (place.root / "late.md").exists()


def test_a_call_that_failed_makes_nothing(place):
    call = {"client": "codex", "tool_name": "apply_patch"}
    patch = {"command": "*** Begin Patch\n*** Add File: never.py\n+x\n*** End Patch\n"}
    place.hook("PreToolUse", tool_input=patch, **call)
    place.hook("PostToolUse", tool_input=patch, tool_response="failed", **call)
    place.write("never.py", "by hand")

    rolled_back(place)

    assert (place.root / "never.py").exists()


def test_files_outside_of_the_project_and_of_its_state_are_not_noted(place, tmp_path):
    inputs = {"file_path": str(tmp_path / "outside.txt"), "content": "x"}
    place.before("Write", **inputs)
    place.after("Write", {}, **inputs)

    assert not (place.root / ".workflow" / place.session() / ".process" / "written").exists()
