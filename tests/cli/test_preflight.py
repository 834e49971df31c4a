"""Before a run begins: one list with all that is wrong, and the commands; then nothing has begun or was spent."""

import os
import subprocess

import pytest

from tests.support.command import Tool
from tests.support.project import build_project
from tests.support.sandboxed import use_sandbox

SETTINGS = """
[agents.script]
adapter = "command"
command = "echo $DETENT_PHASE >> worked"
[run]
agent = "script"
workflow = "w"
tests = "echo 1 passed in 0.1s"
[workflows.w]
phases = [{ key = "a", gates = [{ kind = "tests" }] }]
"""


@pytest.fixture
def ready(detent) -> Tool:
    build_project(detent.directory, SETTINGS)
    return detent


def repository(tool, branch="work"):
    def git(*words):
        identity = ["-c", "user.name=ada", "-c", "user.email=ada@example.org"]
        subprocess.run(["git", *identity, *words], cwd=tool.directory, check=True, capture_output=True)

    git("init", "-q", "-b", branch)
    git("add", "-A")
    git("commit", "-qm", "first")


def client(tool, name, script):
    path = tool.directory / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{path.parent}{os.pathsep}{os.environ['PATH']}"}


def states(tool, *arguments, **environment):
    checks = tool("run", "--check", *arguments, "--json", **environment).json()["checks"]
    return {(check["subject"], check["state"]) for check in checks}


def test_a_program_that_is_not_there_is_a_problem_before_a_session_is_started(ready):
    code, message, _ = ready("run", "Do it", "--agent", "codex", PATH="/usr/bin:/bin").error()

    assert code == 1
    assert "codex is started as codex, which is not on PATH" in message
    assert ready("sessions", "--json").ok().json()["sessions"] == []


def test_a_program_that_does_not_answer_is_a_problem(ready):
    environment = client(ready, "codex", "echo cannot load its library; exit 3")

    code, message, _ = ready("run", "Do it", "--agent", "codex", **environment).error()

    assert (code, "does not answer `codex --version`: exit code 3: cannot load its library" in message) == (1, True)


def test_a_program_that_answers_is_told_with_its_version(ready):
    environment = client(ready, "codex", "echo codex-cli 1.2.3")

    assert "codex: codex-cli 1.2.3" in ready("run", "--check", "--agent", "codex", **environment).out


@pytest.mark.parametrize(("more", "code"), [("", 1), ('mode = "ask"', 0), ('client = "gemini"', 0)])
def test_an_acp_agent_that_is_not_known_to_ask_is_a_problem_without_a_sandbox(ready, more, code):
    settings = ready.directory / "detent.toml"
    given = settings.read_text() if settings.exists() else ""
    settings.write_text(f'{given}\n[agents.x]\nadapter = "acp"\ncommand = "true acp"\n{more}\n')

    ran = ready("run", "--check", "--agent", "x")

    assert ran.code == code
    assert ("no mode is known in which it asks" in ran.out + ran.err) is (code == 1)


def test_all_problems_are_in_one_list_with_their_commands(ready):
    repository(ready)
    (ready.directory / "half.py").write_text("x = 1\n")

    code, message, _ = ready(
        "run", "Do it", "--agent", "codex", "--tests", "no-such-runner -q", PATH="/usr/bin:/bin"
    ).error()

    assert code == 1
    assert "not on PATH" in message
    assert "gate tests runs `no-such-runner -q`, and the program no-such-runner was not found" in message
    assert "changes of 1 file are not committed: half.py (try: git commit or git stash; or go on with --yes)" in message
    assert ready("sessions", "--json").ok().json()["sessions"] == []


def test_files_that_are_not_committed_need_a_person_who_says_go_on(ready):
    repository(ready)
    (ready.directory / "half.py").write_text("x = 1\n")

    assert "the run did not begin" in ready("run", "Do it", "--no-wait").error()[1]
    assert ready("run", "Do it", "--no-wait", "--yes").ok()
    assert (ready.directory / "worked").read_text() == "a\n"


def test_what_detent_wrote_itself_needs_nobody(ready):
    repository(ready)
    (ready.directory / "detent.toml").write_text(SETTINGS + "# changed\n")
    ready("init", "--agent", "claude-code").ok()

    assert ("files", "ok") in states(ready)


def test_the_files_of_a_session_that_goes_on_are_its_own(ready):
    repository(ready)
    ready("start", "w", "Do it").ok()
    (ready.directory / "made.py").write_text("x = 1\n")

    assert {subject for subject, _ in states(ready)} == {"agent", "tests", "branch", "budget", "hooks", "sandbox"}


def test_work_on_main_is_warned_of(ready):
    repository(ready, "main")

    assert ("branch", "warning") in states(ready)
    assert ("branch", "ok") in states(ready, "--isolation", "session")


def test_a_test_program_that_a_worktree_does_not_have_is_a_problem(ready):
    repository(ready)
    program = ready.directory / ".venv" / "bin" / "tests"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 1 passed in 0.1s\n")
    program.chmod(0o755)
    command = ("--tests", ".venv/bin/tests -q")

    assert ("tests", "ok") in states(ready, *command)
    assert ("tests", "problem") in states(ready, *command, "--isolation", "session")

    (ready.directory / "detent.toml").write_text(SETTINGS.replace("[run]", '[run]\nlink = [".venv"]'))
    assert {("tests", "ok"), ("files", "problem")} <= states(ready, *command, "--isolation", "session")
    (ready.directory / ".gitignore").write_text(".venv/\n_version.py\n*.log\n")
    assert ("files", "problem") not in states(ready, *command, "--isolation", "session")

    for generated in ("_version.py", "a.log"):
        (ready.directory / generated).write_text("")
    checks = ready("run", "--check", "--isolation", "session", "--json").json()["checks"]
    [warned] = [check["text"] for check in checks if (check["subject"], check["state"]) == ("files", "warning")]
    assert warned == "git ignores _version.py, so a worktree does not have them"


def test_a_repository_that_isolation_needs_and_that_is_not_there_is_a_problem(ready):
    assert ("branch", "problem") in states(ready, "--isolation", "session")


def test_tests_that_nothing_says_how_to_run_are_warned_of(detent):
    build_project(detent.directory, SETTINGS.replace('tests = "echo 1 passed in 0.1s"\n', ""))

    ran = detent("run", "--check")

    assert (ran.code, "detent run --tests COMMAND" in ran.out) == (0, True)


def test_a_check_alone_begins_nothing_and_offers_the_baseline(ready):
    before = ready.digest()
    assert ready("run", "--check").ok()
    assert ready.digest() == before

    ready("start", "w", "Do it").ok()
    answer = ready("run", "--check", "--json").ok().json()
    assert answer["offered"] == "detent gate baseline"
    assert "detent gate baseline" in ready("run", "--check").ok().out
    assert not (ready.directory / "worked").exists()


def test_a_check_says_that_there_is_no_agent(ready):
    ran = ready("run", "--check", "--agent", "nobody")

    assert (ran.code, "there is no agent nobody; known agents:" in ran.out) == (1, True)


def test_the_limits_and_the_budget_are_told(detent):
    build_project(detent.directory, 'budget = "light"\n' + SETTINGS)

    assert "30 minutes, 10 phase_minutes; limits of the run: 8 hours, 200 turns, 50 tasks added by agents" in " ".join(
        detent("run", "--check").ok().out.split()
    )


@pytest.mark.parametrize(
    ("agent", "untold"),
    [
        ('adapter = "claude-code"\ncommand = "sh"', ""),
        ('adapter = "codex"\ncommand = "sh"', "cost"),
        ('adapter = "acp"\ncommand = "sh gemini --acp"', "cost"),
        ('adapter = "acp"\ncommand = "sh"\nmode = "ask"', "tokens and its cost"),
        ('adapter = "command"\ncommand = "true"', "tokens and its cost"),
        ('adapter = "command"\ncommand = "true"\nresult = "json"', ""),
    ],
)
def test_an_agent_that_a_budget_cannot_stop_is_warned_of(detent, agent, untold):
    settings = SETTINGS.replace('agent = "script"', 'agent = "worker"') + f"[agents.worker]\n{agent}\n"
    build_project(detent.directory, f"[budget]\nphase_tokens = 1000\ncost = 2.0\n{settings}")

    checks = detent("run", "--check", "--json").json()["checks"]

    warned = [check["text"] for check in checks if (check["subject"], check["state"]) == ("budget", "warning")]
    told = f"worker does not tell its {untold}: such a limit does not stop it"
    assert warned == ([told] if untold else [])


def test_a_client_with_a_sandbox_of_its_own_is_warned_of(detent, monkeypatch):
    use_sandbox(monkeypatch)
    path = {"PATH": f"{detent.directory}/bin{os.pathsep}{os.environ['PATH']}"}
    client(detent, "codex", "echo 1.0")
    for args, warned in (('["--sandbox", "workspace-write"]', 1), ('["-s=danger-full-access"]', 0), ("[]", 0)):
        settings = f'[agents.worker]\nadapter = "codex"\nargs = {args}\n'
        build_project(detent.directory, SETTINGS.replace('agent = "script"', 'agent = "worker"') + settings)
        checks = detent("run", "--check", "--json", **path).json()["checks"]
        texts = [check["text"] for check in checks if check["subject"] == "sandbox"]

        assert texts[0] == "on; network on"
        assert len(texts[1:]) == warned
        assert all("worker starts a sandbox of its own" in text for text in texts[1:])


@pytest.mark.parametrize(
    ("mode", "state", "words"),
    [
        ("auto", "warning", "there is no sandbox: bwrap"),
        ("off", "ok", "says so"),
        ("required", "problem", "must be in"),
    ],
)
def test_a_sandbox_that_cannot_be_had_is_told(ready, mode, state, words):
    build_project(ready.directory, SETTINGS.replace("[run]\n", f'[run]\nsandbox = "{mode}"\n'))
    checks = ready("run", "--check", "--json").json()["checks"]

    ((found, text),) = [(check["state"], check["text"]) for check in checks if check["subject"] == "sandbox"]
    assert (found, words in text) == (state, True)


def test_a_test_command_that_is_set_after_the_start_is_not_that_of_the_session(detent):
    line = 'tests = "echo 1 passed in 0.1s"\n'
    build_project(detent.directory, SETTINGS.replace(line, ""))
    detent("start", "w", "Do it").ok()
    (detent.directory / "detent.toml").write_text(SETTINGS)

    assert ("tests", "warning") in states(detent)
    way_out = "detent run --tests 'echo 1 passed in 0.1s'"
    assert way_out in " ".join(detent("run", "--check").out.split())
    assert ("tests", "ok") in states(detent, "--tests", "echo 1 passed in 0.1s")
