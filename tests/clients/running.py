"""`detent run` with a real client as its agent: the settings that make it one, a run, and what came of it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.stage import Stage

RUN_S_MAX = 240
WORKFLOW = """\
[workflows.small]
phases = ["plan", "build"]

[phases.plan]
agent = "planner"

[phases.build]
agent = "builder"
gates = [{ kind = "command", name = "answer", command = "grep -x 42 answer.txt" }]

[run]
agent = "worker"
"""
TASK = "[[S:main]] Find the answer"
GATE = "grep -x 42 answer.txt"
#: What lets each client run any command without asking.
UNASKED = {
    claude_code: ("--dangerously-skip-permissions",),
    codex: ("--dangerously-bypass-approvals-and-sandbox",),
    gemini_cli: ("--approval-mode", "yolo"),
}


def settings(stage: Stage, *args: str, more: str = "") -> str:
    """The client as an agent called worker: a program of one word, and all that it needs in its environment.

    `more` are further lines of its table.
    """
    program = stage.client.home / "program"
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in stage.client.command) + ' "$@"\n')
    program.chmod(0o755)
    proxied = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), stage.server.url)
    local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")
    own = stage.kind.environment(stage.client.home, stage.server.url)
    env = "".join(f"{name} = {json.dumps(value)}\n" for name, value in {**proxied, **local, **own}.items())
    model = ["-m", stage.kind.MODEL] if stage.kind is gemini_cli else []
    agent = (
        f'[agents.worker]\nadapter = "{stage.kind.NAME}"\ncommand = "{program}"\nargs = {json.dumps([*model, *args])}\n'
        f"{more}"
    )
    return f"{WORKFLOW}\n{agent}\n[agents.worker.env]\n{env}"


def git(stage: Stage, *arguments: str) -> None:
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"]
    subprocess.run(["git", *identity, *arguments], cwd=stage.project, check=True, capture_output=True)


@contextmanager
def run(stage: Stage) -> Iterator[subprocess.Popen[str]]:
    """`detent run`, begun. It does not outlive a test that failed."""
    command = [sys.executable, "-m", "detent", "run", TASK, "--workflow", "small", "--json"]
    node = os.path.dirname(shutil.which("node") or "/usr/bin/node")
    env = {"HOME": str(stage.client.home), "PATH": f"{node}:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    running = subprocess.Popen(
        command, cwd=stage.project, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    with running:
        try:
            yield running
        finally:
            running.terminate()


def end_of(running: subprocess.Popen[str]) -> tuple[int, str]:
    """Its exit code and what it told."""
    told, _ = running.communicate(timeout=RUN_S_MAX)
    return running.returncode, told


def set_up(stage: Stage, *args: str, hooked: bool = False, more: str = "") -> None:
    stage.kind.prepare(stage.client.home, stage.server.url)
    git(stage, "init", "-q")
    (stage.project / "detent.toml").write_text(settings(stage, *args, more=more))
    if hooked:
        stage.detent("init", "--agent", stage.kind.NAME)
    git(stage, "add", ".")
    git(stage, "commit", "-q", "-m", "begin")


def session(stage: Stage) -> dict[str, Any]:
    [document] = stage.project.glob(".workflow/WFS-*/workflow-session.json")
    read: dict[str, Any] = json.loads(document.read_text())
    return read


def checkpoints(stage: Stage) -> Iterator[Path]:
    return stage.project.glob(".workflow/checkpoints/run-*/POST_*.json")


def played(stage: Stage) -> tuple[int, list[dict[str, Any]]]:
    """A whole run: its exit code, and the events that it told."""
    with run(stage) as running:
        exit_code, output = end_of(running)
    return exit_code, [json.loads(line) for line in output.splitlines() if line.startswith("{")]


def used(stage: Stage) -> list[dict[str, int]]:
    """The tokens of each attempt, as the record has them."""
    known = json.loads(stage.detent("report", "--format", "json"))["attempts"]
    return [{name: attempt["tokens"].get(name, 0) for name in ("input", "output")} for attempt in known]
