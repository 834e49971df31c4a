"""What agents, checks and steps of a run can do in its sandbox, and how a run says whether it has one."""

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from detent.clients.installing.plans import HOOK
from tests.support.repository import ENVIRONMENT
from tests.support.run_process import SESSION, TASK, ended, kill
from tests.support.sandboxed import NO_SANDBOX, OFF_NOTICE, use_sandbox
from tests.support.task_documents import stepped
from tests.support.waiting import is_running, wait_until

REQUIRED = 'sandbox = "required"\n'
EXAMPLES = Path(__file__).parents[2] / "examples"
ONE_PHASE = '{ key = "a" }'


@pytest.fixture
def inside(monkeypatch, play):
    """A scene whose agent and checks are in a sandbox."""
    use_sandbox(monkeypatch)
    monkeypatch.setenv("PATH", f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}")

    def make(script, phases=ONE_PHASE, run=REQUIRED, **settings):
        return play(script, phases, run=run, **settings)

    return make


def committed(scene):
    """Make the project a repository with everything committed."""
    for command in (["init", "-q", "-b", "work"], ["add", "-A"], ["commit", "-qm", "all"]):
        subprocess.run(["git", *command], cwd=scene.directory, env={**os.environ, **ENVIRONMENT}, check=True)


def test_a_turn_and_its_check_work_as_without_a_sandbox(inside):
    scene = inside(
        "cat > prompt.txt; echo made > work.txt; echo shared > /tmp/note; echo DELIVERED",
        '{ key = "a", gates = [{ kind = "command", command = "grep made work.txt && cat /tmp/note" }] }',
    )
    ran = scene.run()

    assert ran.exit_code == 0, ran
    assert TASK in (scene.directory / "prompt.txt").read_text()
    receipt = scene.session().phases["a"].gates["command"].receipt
    assert (receipt.sandboxed, receipt.tail) == (True, "made\nshared\n")
    assert not Path("/tmp/note").exists()


def test_an_agent_changes_the_session_through_the_runner(inside):
    script = """\
    test $DETENT_PHASE = a || exit 0
    detent note 'an idea' --kind ideas --name idea
    detent task add 'Do it'
    detent task add 'Do it too' --json > added.json
    detent --json task list > listed.json
    detent status --json > status.json
    detent finish -m 'ended by the agent'
    """
    scene = inside(script, '{ key = "a" }, { key = "b", gates = [{ kind = "approval" }] }')
    ran = scene.run("--no-wait")

    session = scene.session()
    assert session.phases["a"].summary == "ended by the agent", ran
    assert list(session.tasks.ids) == ["IMPL-1", "IMPL-2"]
    assert [path.name for path in Path(scene.state, SESSION, ".brainstorming").iterdir()] == ["idea.md"]
    assert json.loads((scene.directory / "status.json").read_text())["sandbox"] == "on"
    written = [commit for commit in scene.commits() if "TaskWritten" in repr(commit.events)]
    assert {(commit.actor.kind.value, commit.actor.name) for commit in written} == {("agent", "script")}
    assert scene.findings() == []


def test_a_file_that_an_agent_names_is_read_in_the_sandbox(inside):
    scene = inside("detent task add --file tasks.json; echo $? > code")
    (scene.directory / "tasks.json").write_text(json.dumps([stepped(1, "true")]))
    scene.run("--no-wait")

    assert (scene.directory / "code").read_text() == "0\n"
    assert list(scene.session().tasks.ids) == ["IMPL-1"]


def test_a_question_of_an_agent_is_answered_from_outside(inside):
    scene = inside("detent ask 'Which colour?' --choice red --choice blue > answer.txt")
    run = scene.start("run", TASK, "--wait")
    wait_until(lambda: scene.journal.exists() and scene.session().questions, during=run)
    with scene.project() as project:
        project.session(SESSION).reply("blue")

    assert ended(run).exit_code == 0
    assert (scene.directory / "answer.txt").read_text() == "blue\n"


def test_steps_of_a_task_and_the_agent_of_the_task_are_in_the_sandbox(inside):
    step = f"echo x >> .workflow/{SESSION}/journal.jsonl; test $? != 0 && echo refused > step.txt"
    scene = inside("detent task show IMPL-1 > shown.txt; touch worked", '{ key = "a" }, { key = "b", tasks = true }')
    with scene.project() as project:
        handle = project.start("trial", TASK)
        handle.tasks.write([stepped(1, step)], new=True)
    ran = scene.detent("run")

    assert ran.exit_code == 0, ran
    assert (scene.directory / "step.txt").read_text() == "refused\n"
    assert "IMPL-1" in (scene.directory / "shown.txt").read_text()


def test_a_check_that_an_agent_starts_is_in_the_sandbox_too(inside):
    """The runner carries out the command, and the tests that it runs are the agent's."""
    check = f"echo x >> .workflow/{SESSION}/journal.jsonl; test $? != 0 && ! kill -0 $PPID_OF_RUN 2> /dev/null"
    scene = inside(
        "detent gate run look > looked.txt; echo $? > code",
        f'{{ key = "a", gates = [{{ kind = "command", name = "look", command = "{check}" }}] }}',
    )
    ran = scene.run()

    assert ran.exit_code == 0, ran
    assert (scene.directory / "code").read_text() == "0\n"
    assert scene.findings() == []


def test_hooks_of_a_client_are_answered_by_the_runner(inside):
    hook = f"{sys.executable} -I -S {HOOK} claude-code"
    scene = inside(f"for each in write start guarded; do {hook} < $each.json > $each.txt; done")
    event = {"session_id": "s", "cwd": str(scene.directory)}
    write = {**event, "hook_event_name": "PreToolUse", "tool_name": "Write", "tool_use_id": "1"}
    events = {
        "write": {**write, "tool_input": {"file_path": "made.py", "content": "x"}},
        "guarded": {**write, "tool_input": {"file_path": "detent.toml", "content": "x"}},
        "start": {**event, "hook_event_name": "SessionStart", "source": "startup"},
    }
    for name, each in events.items():
        (scene.directory / f"{name}.json").write_text(json.dumps(each))
    scene.run()

    assert (scene.directory / "write.txt").read_text() == ""
    assert "made.py" in Path(scene.state, SESSION, ".process/written").read_text()
    assert "additionalContext" in (scene.directory / "start.txt").read_text()
    assert '"deny"' in (scene.directory / "guarded.txt").read_text()


def test_work_in_a_worktree_is_merged_and_the_project_is_read_only_meanwhile(inside):
    scene = inside(
        "echo made > made.txt; echo x > ../../../outside.txt; git status > /dev/null && echo ok > git.txt; "
        "echo 'gitdir: /elsewhere' > .git || mv .git moved || echo held > held.txt"
    )
    committed(scene)
    ran = ended(scene.start("run", TASK, "--isolation", "phase", **ENVIRONMENT))

    assert ran.exit_code == 0, ran
    shown = subprocess.run(
        ["git", "ls-tree", "--name-only", f"detent/{SESSION}"], cwd=scene.directory, capture_output=True, check=True
    )
    assert {"made.txt", "git.txt", "held.txt"} <= set(shown.stdout.decode().split())
    assert not (scene.directory / "outside.txt").exists()


def test_settings_that_an_agent_makes_are_moved_aside(inside):
    scene = inside(
        "mkdir -p .codex; echo evil > .codex/hooks.json; echo '[run]' > approvers.toml; echo evil > .git/commondir; "
        "detent note x; test ! -e approvers.toml || touch used"
    )
    committed(scene)
    ran = scene.run()

    assert ran.exit_code == 0, ran
    assert not (scene.directory / "approvers.toml").exists()
    assert (scene.directory / "approvers.toml.aside-1").read_text() == "[run]\n"
    assert (scene.directory / ".codex/hooks.json.aside-1").read_text() == "evil\n"
    assert (scene.directory / ".git/commondir.aside-1").exists()
    assert not (scene.directory / "used").exists()
    assert "approvers.toml was made during the run, and is not used" in ran.errors


def test_all_processes_of_a_turn_end_with_the_runner(inside):
    scene = inside("(exec -a left sleep 600) & echo started > started; wait")
    run = scene.start("run", TASK)
    wait_until((scene.directory / "started").exists, during=run)
    processes = scene.alive()
    assert processes
    kill(run)

    wait_until(lambda: not any(is_running(pid) for pid in processes))


def test_an_agent_that_is_stopped_may_end_by_itself(inside):
    scene = inside("trap 'echo bye > bye; exit 0' TERM; echo started > started; while true; do sleep 0.05; done")
    run = scene.start("run", TASK)
    wait_until((scene.directory / "started").exists, during=run)
    run.terminate()

    assert ended(run).exit_code == 130
    assert (scene.directory / "bye").exists()


def test_allowed_paths_are_given_back_and_others_can_be_hidden(inside, tmp_path):
    open_, closed = tmp_path / "open", tmp_path / "closed"
    open_.mkdir()
    closed.mkdir()
    (closed / "key").write_text("secret")
    run = f'[run.sandbox]\nmode = "required"\nallow = ["{open_}"]\nhide = ["{closed}"]\n'
    scene = inside(f"echo x > {open_}/made; cat {closed}/key > got || true", run=run)
    ran = scene.run()

    assert ran.exit_code == 0, ran
    assert (open_ / "made").exists()
    assert (scene.directory / "got").read_text() == ""


@pytest.mark.parametrize(("network", "reached"), [("on", True), ("off", False)])
def test_the_network_is_as_configured(inside, network, reached):
    look = "import socket; print(len(socket.if_nameindex()) > 1 or open('/proc/net/route').read().count(chr(10)) > 1)"
    scene = inside(f'python3 -c "{look}" > reached', run=f'[run.sandbox]\nmode = "required"\nnetwork = "{network}"\n')
    scene.run()

    outside = subprocess.run([sys.executable, "-c", look], capture_output=True, check=True).stdout.decode()
    assert (scene.directory / "reached").read_text() == (outside if reached else "False\n")


def test_the_agent_of_the_demo_works_unchanged(inside, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    files = runpy.run_path(str(EXAMPLES / "demo.py"))["FILES"]
    settings = {"detent.toml": files["detent.toml"].replace("[run]\n", f"[run]\n{REQUIRED}")}
    scene = inside("")
    agent = {"agent.py": (EXAMPLES / "agent.py").read_text()}
    for path, text in {**files, **agent, **settings}.items():
        (scene.directory / path).parent.mkdir(exist_ok=True)
        (scene.directory / path).write_text(text)
    committed(scene)
    ran = scene.detent("run", "Let a wallet pay", "--size", "light")

    assert ran.exit_code == 6, ran
    assert "08-code-review" in ran.output
    assert "- Sandbox: on\n" in next(Path(scene.state).glob("WFS-*/REPORT.md")).read_text()


# Without a sandbox


def test_a_run_that_needs_a_sandbox_does_not_begin_without_one(play):
    scene = play("touch worked", run=REQUIRED)
    ran = scene.run()

    assert ran.exit_code == 1
    assert f"the run must be in a sandbox, and there is none: bwrap does not work here: {NO_SANDBOX}" in ran.errors
    assert "install bubblewrap" in ran.errors
    assert not (scene.directory / "worked").exists()
    assert not scene.journal.exists()


def test_a_run_says_that_it_has_no_sandbox(play):
    scene = play("echo 'Summary: done'", '{ key = "a", gates = [{ kind = "approval" }] }', run='sandbox = "auto"\n')
    ran = scene.run("--no-wait")

    assert f"there is no sandbox: bwrap does not work here: {NO_SANDBOX}" in ran.errors
    assert "sandbox      off" in scene.detent("status").output
    assert scene.detent("doctor").errors == OFF_NOTICE
    assert "- Sandbox: off\n" in Path(scene.state, SESSION, "REPORT.md").read_text()
    assert json.loads(scene.detent("report", "--format", "json").output or "{}").get("sandbox", "off") == "off"


def test_a_person_may_turn_it_off(play):
    scene = play("echo 'Summary: done'", run='sandbox = "off"\n')
    ran = scene.run()

    assert ran.exit_code == 0
    assert "sandbox" not in ran.errors
