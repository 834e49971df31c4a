"""Calls of every tool, as the hook answers them, and ways to a project that hide it from the guard."""

import json
import os
import subprocess

import pytest

from detent.hooks.answer import main
from tests.support.guard_corpus import CALLS
from tests.support.hooked_project import FAILS, Answer, Place

SETTINGS = """
[workflows.row]
phases = [
    { key = "06-implementation", agent = "software-developer", gates = [{ kind = "tests" }] },
    { key = "08-code-review", agent = "qa-engineer" },
]
"""
EVENTS = {"claude-code": "PreToolUse", "codex": "PreToolUse", "gemini": "BeforeTool"}


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """06-implementation is in progress, and its tests fail."""
    place = Place(tmp_path_factory.mktemp("failing"), settings=SETTINGS)
    place.detent("start", "row", "Add search")
    place.tests(FAILS)
    return place


@pytest.fixture
def place(failing, tmp_path):
    return failing.copied(tmp_path / "project")


def asked(place, tool, inputs, *, client="claude-code", cwd=None):
    sent = json.dumps({
        "cwd": str(cwd or place.root), "hook_event_name": EVENTS[client], "tool_name": tool, "tool_input": inputs
    })  # fmt: skip
    return Answer(main([client], sent.replace("/proj/", f"{place.root}/").encode())).denied


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.note)
def test_a_call_of_any_tool_is_answered(failing, call):
    denied = asked(failing, call.tool, call.inputs, client=call.client)

    assert (denied is not None) is call.is_denied, denied
    assert "could not judge" not in (denied or "")


# The document does not decide whether a session runs


def edit(place, old, new):
    document = place.root / ".workflow/state.json"
    document.write_text(document.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new"),
    [('"active_workflow"', '"x"'), ('"session_id":"WFS-add-search"', '"session_id":"WFS-other"')],
    ids=["renamed", "of another session"],
)
def test_an_edit_of_the_document_does_not_switch_the_guard_off(place, old, new):
    text = (place.root / ".workflow/state.json").read_text().replace('": ', '":')
    (place.root / ".workflow/state.json").write_text(text)
    edit(place, old, new)

    assert asked(place, "Agent", {"subagent_type": "qa-engineer", "prompt": "go"}) is not None
    assert place.after("Bash", {"stdout": ""}, command="ls").told != ""
    assert place.disk.workflow()["session_id"] == "WFS-add-search"  # it was put right at once


def test_an_edit_is_judged_by_its_result(place):
    version = place.disk.state()["state_version"]
    text = (place.root / ".workflow/state.json").read_text()
    old = next(part for part in (f'"state_version":{version}', f'"state_version": {version}') if part in text)
    path = {"file_path": ".workflow/state.json"}

    assert asked(place, "Edit", {**path, "old_string": old, "new_string": old + "9"}) is None
    assert asked(place, "Edit", {**path, "old_string": old, "new_string": '"state_version": 0'}) is not None
    assert asked(place, "Edit", {**path, "old_string": "{", "new_string": ""}) is not None


def test_a_state_document_that_is_gone_is_another_answer_than_one_that_cannot_be_read(place):
    document = place.root / ".workflow/state.json"
    content = {"file_path": ".workflow/state.json", "content": document.read_text()}

    document.write_text("{")
    assert "holds no readable JSON" in asked(place, "Write", content)
    document.unlink()
    assert "of the active session is missing" in asked(place, "Write", content)
    place.detent("cancel", "--reason", "enough")
    document.unlink()
    assert asked(place, "Write", content) is None
    assert "would not be readable" in asked(place, "Write", content | {"content": "{"})


# Ways to the project


def test_a_project_behind_a_link_is_guarded(place, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(place.root)
    (place.root / "inside").symlink_to(".workflow")
    journal = ".workflow/WFS-add-search/journal.jsonl"

    for command, cwd in [
        (f"rm {journal}", link),
        (f"rm {link}/{journal}", place.root),
        (f"rm {place.root}/{journal}", link),
        ("rm inside/state.json", place.root),
        ("cd inside && rm state.json", place.root),
        ("echo x > inside/state.json", place.root),
        ("rm -rf inside/*", place.root),
        (f"rm /proc/self/cwd/{journal}", place.root),
        (f"rm /proc/{os.getpid()}/root{place.root}/{journal}", place.root),
    ]:
        assert asked(place, "Bash", {"command": command}, cwd=cwd) is not None, command
    assert asked(place, "Write", {"file_path": "inside/.lock", "content": ""}) is not None
    assert asked(place, "Bash", {"command": "rm -rf build > out.txt"}, cwd=link) is None


def test_a_file_that_is_a_link_to_a_guarded_one_is_guarded(place):
    (place.root / "notes.txt").symlink_to(".workflow/history.jsonl")

    assert asked(place, "Bash", {"command": "echo x > notes.txt"}) is not None
    assert asked(place, "Bash", {"command": "cat notes.txt"}) is None


def test_a_state_directory_below_the_project_does_not_hide_it(place):
    nested = place.root / "src/.workflow"
    nested.mkdir(parents=True)

    for _ in range(2):  # the second time it has a marker and a document of the agent's own
        assert asked(place, "Bash", {"command": "rm ../.workflow/state.json"}, cwd=nested.parent) is not None
        agent = {"subagent_type": "qa-engineer", "prompt": "go"}
        assert asked(place, "Agent", agent, cwd=nested.parent) is not None
        (nested / ".active-WFS-x").touch()
        (nested / "state.json").write_text('{"active_workflow": {"session_id": "WFS-x"}}')


@pytest.mark.parametrize("command", ["git checkout .", "git restore .", "git clean -fd", "git stash -u"])
def test_git_leaves_the_state_alone_where_it_is_allowed_to_work(place, command):
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], cwd=place.root, check=True)
    (place.root / "detent.toml").write_text(SETTINGS + "# edited\n")
    (place.root / "new.txt").write_text("x")
    place.hook("SessionStart", source="startup")
    state = {path: path.read_bytes() for path in (place.root / ".workflow").rglob("*") if path.is_file()}
    assert asked(place, "Bash", {"command": command}) is None

    subprocess.run([*git, *command.split()[1:]], cwd=place.root, check=True, capture_output=True)

    assert all(path.read_bytes() == data for path, data in state.items())
    rolled_back = "# edited" not in (place.root / "detent.toml").read_text()
    assert ("detent.toml" in place.after("Bash", {"stdout": ""}, command=command).told) is rolled_back


@pytest.mark.parametrize("name", ["state.json", ".documents.json", "history.jsonl", "WFS-add-search/journal.jsonl"])
def test_a_pipe_in_the_place_of_a_file_blocks_nothing(place, name):
    file = place.root / ".workflow" / name
    file.unlink(missing_ok=True)
    os.mkfifo(file)

    assert asked(place, "Agent", {"subagent_type": "qa-engineer", "prompt": "go"}) is not None
    assert asked(place, "Write", {"file_path": ".workflow/state.json", "content": "{}"}) is not None
    assert asked(place, "Bash", {"command": "ls"}) is None
    for event in ("SessionStart", "Stop", "UserPromptSubmit"):
        place.hook(event)
    assert f"{name} is no file" in place.after("Bash", {"stdout": ""}, command="ls").told


# A monorepo

PACKAGES = SETTINGS + '[projects.api]\npath = "api"\n[projects.web]\npath = "web"\n'


@pytest.fixture
def monorepo(tmp_path):
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    place = Place(tmp_path, settings=PACKAGES)
    place.detent("--project", "api", "start", "row", "Add search")
    place.detent("--project", "web", "start", "row", "Add a page")
    return place


def test_at_the_root_without_a_default_project_a_delegation_is_not_denied(monorepo):
    assert asked(monorepo, "Agent", {"subagent_type": "software-developer", "prompt": "look around"}) is None
    assert not (monorepo.root / ".workflow/hook-failures.log").exists()


def test_a_write_is_compared_with_the_project_of_the_written_path(monorepo):
    path = monorepo.root / ".workflow/projects/web/state.json"
    document = json.loads(path.read_text())
    version = document["state_version"]
    stale = {**document, "state_version": version - 1}
    valid = {**document, "state_version": version + 1}

    for cwd in (monorepo.root / "api", monorepo.root / "web", monorepo.root):
        write = {"file_path": str(path)}
        assert asked(monorepo, "Write", {**write, "content": json.dumps(stale)}, cwd=cwd) is not None
        assert asked(monorepo, "Write", {**write, "content": json.dumps(valid)}, cwd=cwd) is None


@pytest.mark.parametrize("cwd", ["", "api"])
def test_a_change_of_another_project_is_noticed(monorepo, cwd):
    (monorepo.root / ".workflow/projects/web/state.json").unlink()

    call = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_response": {"stdout": ""}}
    told = monorepo.hook("PostToolUse", cwd=str(monorepo.root / cwd), **call).told

    assert "state.json was missing" in told
