"""How the clients are called: a program in their place tells what it was given."""

import json
import sys

import pytest

from detent.clients.registry import Client, register
from detent.config.settings import AgentSettings
from detent.core.run.agent_event import Failed, Failure, Finished, Said
from detent.process.sandbox import Access, Mount, Sandbox
from detent.run.agents import make_agent
from tests.support.sandboxed import use_sandbox
from tests.support.turns import STREAMS, turn, work

TELLER = f"""#!{sys.executable}
import json, os, sys
told = {{"argv": sys.argv[1:], "given": sys.stdin.read(), "cwd": os.getcwd(), "mine": os.environ.get("MINE")}}
open("told.json", "w").write(json.dumps(told))
"""


def program(directory, text):
    path = directory / "client"
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("adapter", "args", "argv"),
    [
        ("claude-code", (), "-p --output-format stream-json --verbose --permission-mode acceptEdits"),
        (
            "claude-code",
            ("--model", "x"),
            "-p --output-format stream-json --verbose --permission-mode acceptEdits --model x",
        ),
        ("claude-code", ("--permission-mode=plan",), "-p --output-format stream-json --verbose --permission-mode=plan"),
        (
            "claude-code",
            ("--dangerously-skip-permissions",),
            "-p --output-format stream-json --verbose --dangerously-skip-permissions",
        ),
        ("codex", (), "exec --json --sandbox workspace-write --skip-git-repo-check -c allow_login_shell=false -"),
        ("codex", ("-s", "read-only"), "exec --json --skip-git-repo-check -c allow_login_shell=false -s read-only -"),
        (
            "codex",
            ("--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check"),
            "exec --json -c allow_login_shell=false --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check -",
        ),
        ("gemini", (), "--output-format stream-json --approval-mode auto_edit"),
        ("gemini", ("-y", "-m", "x"), "--output-format stream-json -y -m x"),
    ],
)
def test_a_client_is_given_its_prompt_on_its_input_and_its_usual_rights_unless_the_settings_give_others(
    tmp_path, adapter, args, argv
):
    settings = AgentSettings(adapter=adapter, command=program(tmp_path, TELLER), args=args, env={"MINE": "yes"})

    work(make_agent(settings), turn(tmp_path, prompt="do\nthis"))

    told = json.loads((tmp_path / "told.json").read_text())
    assert told == {"argv": argv.split(), "given": "do\nthis", "cwd": str(tmp_path), "mine": "yes"}


def test_claude_code_is_given_the_cost_that_is_left(tmp_path):
    client = make_agent(AgentSettings(adapter="claude-code", command=program(tmp_path, TELLER)))

    work(client, turn(tmp_path, max_cost=0.25))

    argv = json.loads((tmp_path / "told.json").read_text())["argv"]
    assert argv[-2:] == ["--max-budget-usd", "0.250000"]


@pytest.mark.parametrize(("args", "own"), [((), "danger-full-access"), (("--sandbox", "read-only"), "read-only")])
def test_codex_starts_no_sandbox_of_its_own_in_one_of_detent(tmp_path, monkeypatch, args, own):
    use_sandbox(monkeypatch)
    sandbox = Sandbox(mounts=(Mount(path=str(tmp_path), access=Access.WRITE),))
    settings = AgentSettings(adapter="codex", command=program(tmp_path, TELLER), args=args)

    work(make_agent(settings), turn(tmp_path, sandbox=lambda: sandbox))

    argv = json.loads((tmp_path / "told.json").read_text())["argv"]
    assert [argv[at + 1] for at, word in enumerate(argv) if word == "--sandbox"] == [own]


@pytest.mark.parametrize("adapter", ["claude-code", "codex", "gemini"])
def test_a_client_that_is_not_installed_is_a_failure(tmp_path, adapter):
    missing = AgentSettings(adapter=adapter, command=str(tmp_path / "missing"))

    assert work(make_agent(missing), turn(tmp_path)) == [
        Failed(failure=Failure.ERROR, reason=f"could not start {tmp_path}/missing: No such file or directory")
    ]


@pytest.mark.parametrize("adapter", ["claude-code", "codex", "gemini"])
def test_a_recorded_stream_comes_through_a_process(tmp_path, adapter):
    replay = program(tmp_path, f"#!/bin/sh\ncat {STREAMS}/{adapter}.works.jsonl\n")

    events = work(make_agent(AgentSettings(adapter=adapter, command=replay)), turn(tmp_path))

    assert isinstance(events[-1], Finished)
    assert events[-1].report.summary == "wrote out.txt"
    assert any(isinstance(event, Said) for event in events)


@pytest.mark.parametrize(
    ("adapter", "call", "tool"),
    [
        ("claude-code", b'"name": "Bash"', "Bash"),
        ("codex", b'"type": "command_execution"', "Bash"),
        ("gemini", b'"tool_name": "run_shell_command"', "run_shell_command"),
    ],
)
def test_a_client_that_hangs_tells_at_which_tool(tmp_path, adapter, call, tool):
    recorded = (STREAMS / f"{adapter}.works.jsonl").read_bytes()
    (tmp_path / "begun").write_bytes(recorded[: recorded.index(b"\n", recorded.index(call)) + 1])
    hanging = program(tmp_path, "#!/bin/sh\ncat begun; sleep 600\n")

    events = work(make_agent(AgentSettings(adapter=adapter, command=hanging)), turn(tmp_path, timeout_s=1))

    assert (events[-2].tool, events[-2].succeeded) == (tool, False)
    assert events[-1].failure is Failure.TIMEOUT


@pytest.mark.parametrize("adapter", ["claude-code", "codex", "gemini"])
def test_a_program_that_puts_out_something_else_has_failed(tmp_path, adapter):
    other = program(tmp_path, "#!/bin/sh\necho hello; echo '{\"a\": 1}'; echo 'unknown option' >&2; exit 2\n")

    [last] = work(make_agent(AgentSettings(adapter=adapter, command=other)), turn(tmp_path))

    assert last.failure is Failure.ERROR
    assert last.reason.endswith("ended with exit code 2: unknown option")


@pytest.mark.parametrize("adapter", ["claude-code", "codex", "gemini"])
def test_a_program_that_cannot_reach_its_model_is_worth_another_try(tmp_path, adapter):
    other = program(tmp_path, "#!/bin/sh\necho 'connect ECONNREFUSED 1.2.3.4:443' >&2; exit 1\n")

    [last] = work(make_agent(AgentSettings(adapter=adapter, command=other)), turn(tmp_path))

    assert last.failure is Failure.TRANSIENT


@pytest.mark.parametrize("missing", ["dialect", "installation", "marks", "settings"])
def test_a_client_with_hooks_names_its_marks_and_its_settings(missing):
    facts = {"dialect": "acme", "installation": "acme", "marks": ("ACME",), "settings": (".acme/hooks.json",)}

    with pytest.raises(TypeError, match=f"acme-cli has hooks and names no {missing}"):
        register(Client("acme-cli", **(facts | {missing: ""})))
