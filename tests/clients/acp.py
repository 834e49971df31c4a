"""The real clients as agents that speak ACP: Gemini CLI by itself, the others through adapters from npm.

An adapter is installed without the client that it would bring along: it starts the client of the other tests.
"""

import fcntl
import json
import shutil
from types import ModuleType

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.client import ClientUnavailable, cache, npm_install
from tests.clients.running import WORKFLOW, git
from tests.clients.scripts import Call
from tests.clients.stage import Stage

#: The package and version of each adapter, and its program in the package.
PACKAGES: dict[ModuleType, str] = {
    claude_code: "@agentclientprotocol/claude-agent-acp@0.99.1",
    codex: "@agentclientprotocol/codex-acp@2.6.0",
}
PROGRAM = "dist/index.js"


def install(kind: ModuleType) -> list[str]:
    """The command that starts the adapter, installed if need be. Raises ClientUnavailable."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        raise ClientUnavailable("the adapters need node and npm, and they are not on PATH")
    name, _, version = PACKAGES[kind].rpartition("@")
    prefix = cache() / f"acp-{kind.NAME}-{version}"
    prefix.mkdir(parents=True, exist_ok=True)
    ready = prefix / ".ready"
    with (prefix / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            npm_install(PACKAGES[kind], prefix, "--omit=optional")
            ready.touch()
    program = prefix / "node_modules" / name / PROGRAM
    if not program.exists():
        raise ClientUnavailable(f"{PACKAGES[kind]} was installed to {prefix} without {PROGRAM}")
    return [node, str(program)]


def agent_command(stage: Stage) -> list[str]:
    if stage.kind is gemini_cli:
        return [*stage.client.command, "--acp", "-m", gemini_cli.MODEL]
    return install(stage.kind)


def agent_environment(stage: Stage) -> dict[str, str]:
    proxied = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), stage.server.url)
    local = dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost,::1")
    started = {claude_code: "CLAUDE_CODE_EXECUTABLE", codex: "CODEX_PATH"}
    own = {started[stage.kind]: stage.client.command[-1]} if stage.kind in started else {}
    return {**proxied, **local, **stage.kind.environment(stage.client.home, stage.server.url), **own}


def set_up(stage: Stage, *, hooked: bool = False, more: str = "", top: str = "", sandbox: str = "off") -> None:
    """A project whose agent is the client by ACP. `more` are lines of its table, `top` tables before it."""
    stage.kind.prepare(stage.client.home, stage.server.url)
    program = stage.client.home / f"{stage.kind.NAME}-acp"
    program.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in agent_command(stage)) + ' "$@"\n')
    program.chmod(0o755)
    env = "".join(f"{name} = {json.dumps(value)}\n" for name, value in agent_environment(stage).items())
    allow = more if "allow" in more else f'allow = ["read", "search", "think", "edit", "execute"]\n{more}'
    agent = f'[agents.worker]\nadapter = "acp"\ncommand = "{program}"\n{allow}\n[agents.worker.env]\n{env}'
    git(stage, "init", "-q")
    workflow = WORKFLOW.replace("[run]\n", f'[run]\nsandbox = "{sandbox}"\n')
    (stage.project / "detent.toml").write_text(f"{top}\n{workflow}\n{agent}")
    if hooked:
        stage.detent("init", "--agent", stage.kind.NAME)
    git(stage, "add", ".")
    git(stage, "commit", "-q", "-m", "begin")


def writing_shell(stage: Stage, command: str, **more: object) -> Call:
    """A shell call that can write. Codex has to ask for that; its sandbox forbids it otherwise."""
    call = stage.kind.shell(command)
    if stage.kind is not codex:
        return call
    assert isinstance(call.input, dict)
    escalated = {"sandbox_permissions": "require_escalated", "justification": "scripted"}
    return Call(call.tool, {**call.input, **escalated, **more})
