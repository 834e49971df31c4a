"""The plugins of `integrations/`, installed and removed with the commands of the clients themselves."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.client import environment_of
from tests.clients.scripts import Call
from tests.clients.stage import Stage

REPOSITORY = Path(__file__).parent.parent.parent
TREES = REPOSITORY / "integrations"
#: The parts of a clone that a client reads.
READ = (".claude-plugin", ".agents", "integrations")
RUN_S_MAX = 90
NAME = "detent@detent"
#: Files in which clients keep what is installed, and what names the plugin or its marketplace there.
KEPT_IN = ("settings.json", "installed_plugins.json", "known_marketplaces.json", "config.toml", ".claude.json")
KEPT = re.compile(r'"detent[@"]|marketplaces\.detent\b')


def administer(stage: Stage, *arguments: str, succeeds: bool = True) -> str:
    """What a command of the client about its plugins says."""
    stage.kind.prepare(stage.client.home, stage.server.url)
    done = subprocess.run(
        [*stage.client.command, *arguments],
        cwd=stage.project,
        env=environment_of(stage.client, stage.server),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )
    assert (done.returncode == 0) == succeeds, f"{arguments}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def install_plugin(stage: Stage, *, scope: str = "project") -> None:
    """Install it from a clone of the repository. `scope` is Claude Code's; the others install for the user."""
    clone = stage.client.home.parent / "clone"
    for name in READ:
        shutil.copytree(REPOSITORY / name, clone / name, dirs_exist_ok=True)
    if stage.kind is claude_code:
        administer(stage, "plugin", "marketplace", "add", str(clone), "--scope", scope)
        administer(stage, "plugin", "install", NAME, "--scope", scope)
    elif stage.kind is codex:
        allow_plugins(stage)
        administer(stage, "plugin", "marketplace", "add", str(clone))
        administer(stage, "plugin", "add", NAME)
    else:
        administer(stage, "extensions", "install", str(clone / "integrations" / "gemini"), "--consent")


def remove_plugin(stage: Stage) -> None:
    if stage.kind is claude_code:
        administer(stage, "plugin", "uninstall", NAME, "--scope", "project")
        administer(stage, "plugin", "marketplace", "remove", "detent", "--scope", "project")
    elif stage.kind is codex:
        administer(stage, "plugin", "remove", NAME)
        administer(stage, "plugin", "marketplace", "remove", "detent")
    else:
        administer(stage, "extensions", "uninstall", "detent")


def validate_plugin(stage: Stage) -> str:
    """What the client's own validator says, where it has one."""
    if stage.kind is claude_code:
        tree = str(TREES / "claude-code/plugins/detent")
        said = administer(stage, "plugin", "validate", "--strict", "--profile", "directory", tree)
        for marketplace in (TREES / "claude-code", REPOSITORY):
            said += administer(stage, "plugin", "validate", "--strict", str(marketplace))
        return said
    if stage.kind is gemini_cli:
        return administer(stage, "extensions", "validate", str(TREES / "gemini"))
    return ""


def allow_plugins(stage: Stage) -> None:
    """The configuration of the other tests switches the plugins of Codex off."""
    path = stage.client.home / ".codex/config.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text() if path.exists() else codex.CONFIG.format(model=codex.MODEL, url=stage.server.url)
    path.write_text(text.replace("plugins = false", "plugins = true"))


def remains(stage: Stage) -> set[str]:
    """Files of the plugin in the client's home and in the project, and settings that name it.

    Claude Code keeps a copy in its cache for some days, marked as an orphan; it does not load it.
    """
    left = set()
    for root in (stage.client.home, stage.project):
        for path in root.rglob("*"):
            if not path.is_file() or path.is_symlink() or ".workflow" in path.parts:
                continue
            if path.name in KEPT_IN and KEPT.search(path.read_text("utf-8", "replace")):
                left.add(str(path))
            if "detent" not in str(path.relative_to(root)):
                continue
            if any((parent / ".orphaned_at").exists() for parent in path.parents if parent.is_relative_to(root)):
                continue
            if path.name in (
                "launch.sh",
                "hooks.json",
                "SKILL.md",
                "plugin.json",
                "gemini-extension.json",
                ".mcp.json",
            ):
                left.add(str(path))
    return left


def tool(stage: Stage, name: str, **arguments: object) -> Call:
    """A call of a tool of the plugin's MCP server."""
    if stage.kind is claude_code:
        return Call(f"mcp__plugin_detent_detent__{name}", dict(arguments))
    if stage.kind is codex:
        return Call(f"mcp__detent/{name}", dict(arguments))
    return Call(f"mcp_detent_{name}", dict(arguments))


def lay_out_program(directory: Path) -> Path:
    """A program `detent` in a directory of its own, as pipx makes one."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "detent"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m detent "$@"\n')
    program.chmod(0o755)
    return program


def without_record(stage: Stage) -> None:
    """As if no person had run `detent init` on this machine."""
    record = stage.client.home / ".local/state/detent/programs"
    if record.exists():
        os.unlink(record)
