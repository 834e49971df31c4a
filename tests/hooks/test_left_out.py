"""After most shell calls no interpreter is started; what its hook would have found is found all the same."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from detent.clients import installing
from tests.support.hooked_project import KEPT, PASSES, RUN_S_MAX, Place, run_hook

PHASES = '["06-implementation", "16-quality-loop", "08-code-review"]'
SETTINGS = f'gates = "off"\n[workflows.row]\nphases = {PHASES}\n'
GATED = SETTINGS.replace('gates = "off"\n', "").replace(
    '"06-implementation"', '{ key = "06-implementation", gates = [{ kind = "tests" }] }'
)
GREEN = "collected 3 items\n\ntest_a.py ...\n\n============ 3 passed in 0.02s ============\n"
SESSION = "WFS-add-search"
PLUGIN = Path(__file__).parents[2] / "integrations/claude-code/plugins/detent"


class Conversation(Place):
    """A project in Claude Code: every hook is started as its settings say, by its launcher."""

    def __init__(self, root, *, settings=SETTINGS):
        super().__init__(root, settings=settings)
        installing.apply(installing.plan(str(root), ["claude-code"]))
        self.client_environment = {"CLAUDE_PROJECT_DIR": str(root)}
        self.write("test_it.py", PASSES)
        self.expected = root / ".workflow/.expected"

    def prepared(self, tool, event):
        """The command of the hook, with an interpreter that leaves a trace."""
        groups = json.loads((self.root / ".claude/settings.json").read_text())["hooks"][event]
        [group] = [group for group in groups if tool in group["matcher"].split("|")]
        [handler] = group["hooks"]
        python = self.root.parent / "python"
        python.write_text(f'#!/bin/sh\ntouch {self.root.parent}/started\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        return [handler["command"], *(str(python) if arg == sys.executable else arg for arg in handler["args"])]

    def behind(self, call="c-1", command="ls", *, talk="s-1", agent="", event="PostToolUse", cwd=None, **environment):
        """The hook after a call, and whether its launcher started an interpreter."""
        payload = self.payload(event, call, command, talk, agent, cwd)
        argv = self.prepared("Bash", event)
        env = {**KEPT, **self.client_environment, **environment}
        done = run_hook(
            argv, json.dumps(payload | {"tool_response": {"stdout": GREEN}}).encode(), cwd=self.root, env=env
        )
        assert (done.returncode, done.stderr) == (0, b"")
        started = self.root.parent / "started"
        was_started = started.exists()
        started.unlink(missing_ok=True)
        return was_started, done.stdout.decode()

    def ahead(self, call="c-1", command="ls", *, talk="s-1", agent="", cwd=None, client="claude-code"):
        """The answer of the hook before a call."""
        return self.raw(json.dumps(self.payload("PreToolUse", call, command, talk, agent, cwd)).encode(), client=client)

    def payload(self, event, call, command, talk, agent, cwd):
        payload = {"session_id": talk, "cwd": str(cwd or self.root), "hook_event_name": event, "tool_use_id": call}
        payload |= {"tool_name": "Bash", "tool_input": {"command": command}}
        return payload | ({"agent_id": agent} if agent else {})

    def receipts(self):
        return [event["receipt"]["result"] for event in self.events() if event["type"] == "gate_checked"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    place = Conversation(tmp_path_factory.mktemp("whole") / "project")
    place.detent("start", "row", "Add search")
    return place


@pytest.fixture
def place(whole, tmp_path):
    """Every directory around the project is the test's own."""
    made = object.__new__(Conversation)
    made.__dict__.update(whole.copied(tmp_path / "here" / "project").__dict__)
    made.client_environment = {"CLAUDE_PROJECT_DIR": str(made.root)}
    made.expected = made.root / ".workflow/.expected"
    installing.apply(installing.plan(str(made.root), ["claude-code"]))
    made.hook("SessionStart", source="startup")
    return made


@pytest.fixture
def gated(tmp_path):
    place = Conversation(tmp_path / "project", settings=GATED)
    place.detent("start", "row", "Add search")
    place.hook("SessionStart", source="startup")
    return place


def edit_state(place):
    document = place.disk.state()
    document["phases"]["16-quality-loop"]["summary"] = "all green, believe me"
    place.disk.edit(document)


def cut_journal(place):
    path = place.disk.journal_path(SESSION)
    path.write_bytes(path.read_bytes()[:-20])


def remove_marker(place):
    (place.root / ".workflow" / f".active-{SESSION}").unlink()


def edit_settings(place):
    with (place.root / "detent.toml").open("a") as file:
        file.write("# changed\n")


def remove_marker_and_state(place):
    """Nothing at the top of the state directory tells of the session any more."""
    remove_marker(place)
    (place.root / ".workflow/state.json").unlink()


def end_in_the_state(place):
    remove_marker(place)
    place.disk.edit(place.disk.state() | {"active_workflow": None})


CHANGES = [
    (edit_state, "kept as state.json.rejected-1"),
    (cut_journal, "journal"),
    (remove_marker, f"the marker .active-{SESSION} was removed"),
    (remove_marker_and_state, f"the marker .active-{SESSION} was removed"),
    (end_in_the_state, f"the marker .active-{SESSION} was removed"),
    (edit_settings, "detent.toml changed during the session"),
]


@pytest.mark.parametrize("command", ["ls", "cp a b", "git status", "python app.py > out.txt"])
@pytest.mark.parametrize("event", ["PostToolUse", "PostToolUseFailure"])
def test_after_a_call_that_expects_nothing_no_interpreter_is_started(place, command, event):
    assert place.ahead(command=command) == ""
    assert place.behind(command=command, event=event) == (False, "")


def test_the_hook_runs_where_the_one_before_the_call_did_not(place):
    assert place.behind() == (True, "")


@pytest.mark.parametrize(("change", "word"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_change_by_another_program_is_told_before_the_next_call(place, change, word):
    place.ahead("c-1")
    change(place)
    assert place.behind("c-1") == (False, "")

    answer = json.loads(place.ahead("c-2"))["hookSpecificOutput"]

    assert word in answer["additionalContext"]
    assert "permissionDecision" not in answer
    assert not (place.root / ".workflow/hook-failures.log").exists()


@pytest.mark.parametrize(("change", "word"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_change_by_the_last_call_of_a_turn_is_told_when_the_turn_ends(place, change, word):
    place.ahead()
    change(place)
    assert place.behind() == (False, "")

    assert word in place.hook("Stop").told
    assert not place.expected.exists()


@pytest.mark.parametrize(("change", "word"), CHANGES, ids=lambda value: getattr(value, "__name__", ""))
def test_a_directory_that_an_agent_made_hides_nothing(place, change, word):
    place.expected.mkdir()
    change(place)
    assert place.behind() == (False, "")

    assert word in json.loads(place.ahead("c-2"))["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("change", [remove_marker_and_state, end_in_the_state])
@pytest.mark.parametrize("has_note", [True, False])
def test_a_session_that_a_program_hid_is_not_over(place, change, has_note):
    change(place)
    if not has_note:
        (place.root / ".workflow/.settings").unlink()

    assert place.delegate("code-reviewer", "phase id: 08-code-review").denied is not None
    assert "was removed" in place.hook("Stop").told

    place.detent("doctor", "--fix")
    assert place.hook("Stop").text == ""
    place.detent("resume", SESSION)
    # An edited document is set aside by the next event.
    place.hook("Stop")
    assert "the current phase is" in str(place.delegate("code-reviewer", "phase id: 08-code-review").denied)


def test_a_session_that_is_paused_hides_nothing(place):
    place.ahead("c-1")
    place.detent("pause")

    assert place.behind("c-1") == (False, "")
    assert place.ahead("c-2") == ""
    assert place.delegate("code-reviewer", "phase id: 08-code-review").text == ""


def test_words_that_cannot_be_kept_allow_nothing(place):
    """An agent that wrote a file in their place must not make the hook fail."""
    place.ahead("c-1")
    (place.root / ".workflow/.told").write_text("")
    edit_settings(place)

    assert "is a person's decision" in place.ahead("c-2", "detent approve 06-implementation -m fine")


def test_settings_that_change_in_a_turn_that_never_ends_are_told_in_the_next_conversation(place):
    place.ahead()
    edit_settings(place)
    place.behind()

    place.hook("SessionStart", source="startup", session_id="s-2")
    place.ahead("d-1", talk="s-2")

    assert "detent.toml changed" in place.ahead("d-2", talk="s-2")


def test_a_change_is_told_before_work_is_delegated_and_the_denial_does_not_drop_it(place):
    place.ahead()
    edit_state(place)
    place.behind()

    denied = place.delegate("code-reviewer", "phase id: 08-code-review").denied

    assert denied is not None
    assert "kept as state.json.rejected-1" in place.ahead("c-2")
    assert place.ahead("c-3") == ""


@pytest.mark.parametrize("name", [".claude/settings.json", ".claude/settings.local.json"])
@pytest.mark.parametrize("how", ["written", "replaced"])
def test_where_the_hooks_may_be_gone_the_hook_after_the_call_runs(place, name, how):
    """The next hook might never come."""
    (place.root / ".claude/settings.local.json").write_text("{}")
    place.ahead("c-0")
    command = place.prepared("Bash", "PostToolUse")
    place.ahead("c-1")
    file = place.root / name
    if how == "written":
        file.write_text('{"disableAllHooks": true}')
    else:
        (place.root / "new").write_text('{"disableAllHooks": true}')
        os.utime(place.root / "new", (1, 1))
        (place.root / "new").rename(file)
    payload = place.payload("PostToolUse", "c-1", "ls", "s-1", "", None)

    done = run_hook(command, json.dumps(payload).encode(), cwd=place.root, env={**KEPT, **place.client_environment})

    assert f"{name} changed during the session" in done.stdout.decode()


def test_where_the_record_is_gone_the_hook_after_the_call_says_so(place):
    place.ahead()
    shutil.rmtree(place.root / ".workflow")

    was_started, said = place.behind()

    assert was_started
    assert "the record is gone" in said


# Test runs


def test_a_test_run_is_seen(gated):
    assert gated.ahead(command="pytest") == ""
    assert os.listdir(gated.expected) == ["c-1"]

    assert gated.behind(command="pytest") == (True, "")

    assert gated.receipts() == ["passed"]
    assert os.listdir(gated.expected) == []


@pytest.mark.parametrize("agent", ["", "a-1"])
@pytest.mark.parametrize("first", ["pytest", "ls"])
def test_a_call_beside_it_does_not_hide_a_test_run(gated, first, agent):
    """Two calls of one conversation, or of one of its agents, in each order."""
    calls = {"pytest": ("c-1", agent), "ls": ("c-2", "")}
    for command in sorted(calls, reverse=first == "pytest"):
        gated.ahead(calls[command][0], command, agent=calls[command][1])

    assert gated.behind("c-2", "ls") == (True, "")
    assert gated.behind("c-1", "pytest", agent=agent) == (True, "")

    assert gated.receipts() == ["passed"]


def test_the_end_of_a_turn_does_not_hide_the_test_run_of_an_agent(gated):
    gated.ahead("c-1", "pytest", agent="a-1")
    gated.hook("Stop")
    gated.ahead("c-2")

    assert gated.behind("c-1", "pytest", agent="a-1") == (True, "")
    assert gated.receipts() == ["passed"]


@pytest.mark.parametrize(
    ("agent", "event"), [("", "Stop"), ("a-1", "SubagentStop"), ("", "SessionStart")], ids=["turn", "agent", "resumed"]
)
def test_a_call_that_a_person_denied_is_not_under_way_for_ever(gated, agent, event):
    gated.ahead("c-1", "pytest", agent=agent)
    gated.ahead("c-2")
    assert gated.behind("c-2") == (True, "")

    gated.hook(event, source="resume", **({"agent_id": agent} if agent else {}))

    gated.ahead("c-3")
    assert gated.behind("c-3") == (False, "")


def test_a_call_that_detent_denies_is_not_under_way(gated):
    assert "deny" in gated.ahead(command="pytest && rm -rf .workflow")
    assert not gated.expected.exists()


def test_the_hook_runs_where_words_wait(gated):
    gated.ahead("c-1", "pytest")
    gated.ahead("c-2")
    gated.behind("c-1", "pytest")

    was_started, said = gated.behind("c-2")

    assert was_started
    assert "is PASS" in said
    assert not (gated.root / ".workflow/.told").exists()


def test_words_wait_for_a_prompt_and_not_longer_than_their_conversation(gated):
    gated.ahead("c-1", "pytest")
    gated.behind("c-1", "pytest")
    payload = {"session_id": "s-1", "cwd": str(gated.root), "hook_event_name": "UserPromptSubmit", "prompt": "go on"}
    assert "is PASS" in gated.raw(json.dumps(payload).encode())

    gated.ahead("c-2", "pytest")
    gated.behind("c-2", "pytest")
    assert gated.has_words()
    gated.raw(json.dumps(payload | {"hook_event_name": "SessionEnd"}).encode())
    assert not gated.has_words()


# Where it is never left out


@pytest.mark.parametrize("made", ["file", "link to a file"])
def test_where_no_call_can_be_noted_every_hook_runs(gated, made):
    (gated.root / "file").write_text("")
    if made == "file":
        gated.expected.write_text("")
    else:
        gated.expected.symlink_to(gated.root / "file")
    gated.ahead(command="pytest")

    assert gated.behind(command="pytest")[0]
    assert gated.receipts() == ["passed"]


def test_in_a_sandbox_every_hook_runs(place):
    """There the state is read-only, so that no call can be noted; the directory may be of a conversation outside."""
    place.ahead()

    was_started, _ = place.behind(DETENT_SOCKET=str(place.root / "nowhere"))

    assert was_started


def test_a_call_in_another_project_expects_its_hook(place, tmp_path):
    place.detent("pause")
    other = Place(tmp_path / "other", settings=GATED)
    other.detent("start", "row", "Something else")
    place.ahead("c-1")
    place.ahead("c-2", cwd=other.root)

    assert place.behind("c-2", cwd=other.root)[0]


def test_a_change_of_the_clients_project_is_told_in_another_directory(place, tmp_path):
    place.ahead("c-1")
    remove_marker(place)
    place.behind("c-1")
    other = Place(tmp_path / "other", settings=GATED)

    assert "was removed" in place.ahead("c-2", cwd=other.root)


def test_a_change_of_a_package_is_told_before_the_next_call(tmp_path):
    packages = SETTINGS + "[projects.api]\npath = 'api'\n[projects.web]\npath = 'web'\n"
    place = Conversation(tmp_path / "project", settings=packages)
    for name in ("api", "web"):
        (place.root / name).mkdir()
        place.detent("--project", name, "start", "row", "Add search")
    place.hook("SessionStart", source="startup")
    place.ahead("c-1", cwd=place.root / "api")
    (place.root / ".workflow/projects/web/state.json").unlink()
    assert place.behind("c-1", cwd=place.root / "api") == (False, "")

    assert "state.json was missing" in place.ahead("c-2", cwd=place.root / "api")


def test_other_clients_leave_nothing_out(place):
    place.ahead(client="codex")
    assert not place.expected.exists()


def test_no_session_no_harm(tmp_path):
    place = Conversation(tmp_path / "project")
    place.ahead("c-1")
    assert place.behind("c-1") == (False, "")
    assert place.ahead("c-2") == ""
    assert place.hook("Stop").text == ""


def test_the_launcher_needs_no_variable(place):
    place.ahead()
    place.client_environment = {}
    assert place.behind() == (True, "")


def test_the_same_launcher_is_in_the_plugin(place):
    hooks = json.loads((PLUGIN / "hooks/hooks.json").read_text())["hooks"]
    place.ahead()
    for event in ("PostToolUse", "PostToolUseFailure"):
        [shells] = [group for group in hooks[event] if group["matcher"] == "Bash"]
        [handler] = shells["hooks"]
        script, launcher = handler["args"][1:3]
        trace = place.root.parent / "launch.sh"
        trace.write_text("echo started\n")

        def said(script=script, trace=trace):
            argv = ["/bin/sh", "-c", script, str(trace), "hook", "claude-code"]
            env = {**KEPT, **place.client_environment}
            done = subprocess.run(argv, env=env, input=b"", capture_output=True, check=True, timeout=RUN_S_MAX)
            return done.stdout.decode()

        assert launcher.endswith("/launch.sh")
        assert said() == ""
        (place.expected / "c-9").touch()
        assert said() == "started\n"
        (place.expected / "c-9").unlink()
