"""The MCP server with the official SDK in both eras of the protocol, and with the Inspector."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from detent.mcp.tools import TOOLS
from tests.clients.client import ClientUnavailable
from tests.clients.mcp_clients import install_inspector, install_sdk
from tests.support.gated import started
from tests.support.waiting import wait_until

RUN_S_MAX = 120
SERVER = [sys.executable, "-m", "detent", "mcp"]


@pytest.fixture
def place(tmp_path):
    slow = f"echo $$ > {tmp_path}/pid; sleep 600"
    phases = (
        '[{ key = "build", gates = [{ kind = "command", command = "sleep 1.5" }] }, '
        '{ key = "release", needs = ["build"], gates = [{ kind = "approval" }] }, '
        f'{{ key = "later", needs = [], gates = [{{ kind = "command", name = "slow", command = "{slow}" }}] }}]'
    )
    project, handle = started(tmp_path, "", phases=phases)
    handle.begin("later")
    project.close()
    return tmp_path


def run(command: list[str], place: Path) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"]}
    done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=RUN_S_MAX, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
def test_the_sdk_works_on_a_phase_in_both_eras(mode, version, place):
    try:
        python = install_sdk()
    except ClientUnavailable as why:
        pytest.skip(str(why))

    seen = json.loads(run([str(python), str(Path(__file__).with_name("sdk_client.py")), mode, *SERVER], place))

    assert seen["version"] == version
    assert seen["tools"] == list(TOOLS)
    assert {name for name, reads in seen["hints"].items() if reads} == {n for n, tool in TOOLS.items() if tool.reads}
    assert (len(seen["resources"]), len(seen["templates"]), seen["prompts"]) == (3, 2, ["go_on"])
    assert seen["check"]["verdict"] == "PASS"
    assert any("the check of command runs" in message for _, message in seen["progress"])
    done = [figure for figure, _ in seen["progress"][:2]]
    assert done == sorted(done)
    assert "timed out" in seen["timed_out"].lower()
    check = (place / "pid").read_text().strip()
    wait_until(lambda: not os.path.exists(f"/proc/{check}"))  # the SDK cancels what it does not wait for
    assert seen["finished"]["is_error"] is False
    assert seen["pending"]["state"] == "pending"
    assert seen["pending"]["waits_for"][0]["person_types"].startswith("detent approve release")
    assert seen["elicited"] == []
    assert seen["unknown"][0] == -32602
    assert seen["commits"] >= 4
    assert seen["report"].startswith("<!-- Generated")
    assert "release" in seen["prompt"] or "later" in seen["prompt"]


def test_the_inspector_lists_and_calls(place):
    try:
        inspector = install_inspector()
    except ClientUnavailable as why:
        pytest.skip(str(why))

    listed = json.loads(run([*inspector, *SERVER, "--method", "tools/list"], place))
    called = json.loads(
        run([*inspector, *SERVER, "--method", "tools/call", "--tool-name", "why", "--tool-arg", "phase=build"], place)
    )
    read = json.loads(run([*inspector, *SERVER, "--method", "resources/read", "--uri", "detent://session"], place))
    prompt = json.loads(run([*inspector, *SERVER, "--method", "prompts/get", "--prompt-name", "go_on"], place))

    assert [tool["name"] for tool in listed["tools"]] == list(TOOLS)
    assert called["structuredContent"]["phase"] == "build"
    assert json.loads(read["contents"][0]["text"])["workflow"] == "short"
    assert "In progress: build" in prompt["messages"][0]["content"]["text"]
