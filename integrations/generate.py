"""Makes the plugin trees of all clients from `plugin.toml`, the hook tables and the installed texts of the package.

    python -m integrations.generate            writes them
    python -m integrations.generate --check    says what differs; the exit code is 1 then

A tree is a function from the description to files. The trees are committed, so that a clone can be installed as it is.
"""

import argparse
import json
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import detent
from detent.clients.installing.hook_settings import HookSettings
from detent.clients.installing.installation import JsonInstallation
from detent.clients.registry import CLIENTS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
LAUNCHER = "launch.sh"
#: Where the clients look for a marketplace.
CLAUDE_MARKET, CODEX_MARKET = ".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"
#: Starts the launcher if it is there: a plugin may be removed while its client runs, and a shell that cannot find its
#: script ends with code 2, which blocks the client.
_LAUNCH = '[ -r "$0" ] && exec /bin/sh "$0" "$@"; exit 0'
_README = """\
# {title}

{description}

It brings {parts}, and the MCP server `{server}`.

It needs Detent itself, which it does not download: install it with `pipx install .` in a clone of the repository, and
run `detent init` once in a terminal of your own. That records which program the plugin starts.{approval}

If Detent is missing, the plugin says so, and your work goes on unguarded. In a project that `detent init --agent` has
set up, the project's own hooks answer. Those of the plugin only judge calls, and look for changes when a turn ends.

This directory is generated from the Detent repository; do not edit it.
"""
_APPROVAL = " Then approve its hooks in Codex under `/hooks`: until then no hook runs, and Codex does not say so."
_HOOKS = "the hooks that hold the agent to the phase in progress"
#: What the instructions of an extension begin with: they are read in every project of the account.
_WHERE = """\
This is about projects with a directory `.workflow`, and about users who speak of Detent. Everywhere else, ignore it.
"""

Files = dict[str, bytes]


class PluginInvocation(NamedTuple):
    """The command of a plugin's hook: the launcher in the plugin's own directory."""

    #: The client's variable for that directory.
    root: str

    def argv(self, argument: str, event: str = "", first: str = "") -> list[str]:
        return ["/bin/sh", "-c", first + _LAUNCH, f"{self.root}/{LAUNCHER}", "hook", argument, event]


class Description(NamedTuple):
    """The content of `plugin.toml`, with the version of the package."""

    name: str
    title: str
    description: str
    author: str
    license: str
    keywords: list[str]
    category: str
    marketplace: str
    server: str
    skills: list[str]
    version: str

    def readme(self, parts: str, approval: str = "") -> Files:
        """The README of a plugin with these parts. `approval` is what a person does in the client besides."""
        text = _README.format(
            title=self.title, description=self.description, server=self.server, parts=parts, approval=approval
        )
        return {"README.md": text.encode()}


def describe() -> Description:
    given = tomllib.loads((HERE / "plugin.toml").read_text("utf-8"))
    server, skills = given.pop("mcp")["server"], given.pop("skills")["names"]
    return Description(**given, server=server, skills=skills, version=detent.__version__)


def trees() -> dict[str, Files]:
    """The files of each client's tree, by path."""
    plugin = describe()
    return {name: make(plugin, _installation(name)) for name, make in _TREES.items()}


def root_files() -> Files:
    """The marketplaces at the root of the repository, so that a client can add the repository itself."""
    plugin, place = describe(), f"./{HERE.name}/{{}}/plugins/{{}}"
    return {
        CLAUDE_MARKET: _claude_market(plugin, place.format("claude-code", plugin.name)),
        CODEX_MARKET: _codex_market(plugin, place.format("codex", plugin.name)),
    }


def _installation(client: str) -> JsonInstallation:
    installation: JsonInstallation = CLIENTS[client].load("installation").INSTALLATION
    return installation


def _claude_market(plugin: Description, source: str) -> bytes:
    """`source` is the directory of the plugin, relative to that of the marketplace."""
    entry = {
        "name": plugin.name,
        "source": source,
        "description": plugin.description,
        "version": plugin.version,
        "category": plugin.category,
    }
    return _json(
        {
            "name": plugin.marketplace,
            "description": plugin.description,
            "owner": {"name": plugin.author},
            "plugins": [entry],
        }
    )


def _codex_market(plugin: Description, source: str) -> bytes:
    """`source` is the directory of the plugin, relative to that of the marketplace."""
    entry = {
        "name": plugin.name,
        "source": {"source": "local", "path": source},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": plugin.category,
    }
    return _json({"name": plugin.marketplace, "interface": {"displayName": plugin.title}, "plugins": [entry]})


def _claude_code(plugin: Description, installation: JsonInstallation) -> Files:
    root = "${CLAUDE_PLUGIN_ROOT}"
    manifest = {
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "author": {"name": plugin.author},
        "license": plugin.license,
        "keywords": plugin.keywords,
    }
    #: The project's files without the directory of the client, and without the name in front that a plugin adds itself.
    parts = {
        path.removeprefix(".claude/").replace("/detent-", "/"): _unsealed(content)
        for path, content in installation.files().items()
    }
    return {
        CLAUDE_MARKET: _claude_market(plugin, f"./plugins/{plugin.name}"),
        **_below(
            f"plugins/{plugin.name}",
            {
                ".claude-plugin/plugin.json": _json(manifest),
                "hooks/hooks.json": _hooks(installation.hooks, root),
                ".mcp.json": _json({"mcpServers": _server(plugin, root)}),
                ".claude-plugin/icon.png": (HERE / "icon.png").read_bytes(),
                **parts,
                **_shared(plugin),
                **plugin.readme(f"{_HOOKS}, slash commands, the roles of the phases, a skill"),
            },
        ),
    }


def _codex(plugin: Description, installation: JsonInstallation) -> Files:
    root = "${PLUGIN_ROOT}"
    manifest = {
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "author": {"name": plugin.author},
        "license": plugin.license,
        "keywords": plugin.keywords,
        "skills": "./skills/",
        "hooks": "./hooks/hooks.json",
        "mcpServers": "./.mcp.json",
        "interface": {
            "displayName": plugin.title,
            "shortDescription": plugin.description[:100],
            "category": plugin.category,
        },
    }
    return {
        CODEX_MARKET: _codex_market(plugin, f"./plugins/{plugin.name}"),
        **_below(
            f"plugins/{plugin.name}",
            {
                ".codex-plugin/plugin.json": _json(manifest),
                "hooks/hooks.json": _hooks(installation.hooks, root),
                ".mcp.json": _json({"mcpServers": _inline_server(plugin)}),
                **_shared(plugin),
                **plugin.readme(f"{_HOOKS}, a skill", _APPROVAL),
            },
        ),
    }


def _gemini(plugin: Description, installation: JsonInstallation) -> Files:
    root = "${extensionPath}"
    manifest = {
        "name": plugin.name,
        "version": plugin.version,
        "description": plugin.description,
        "contextFileName": "GEMINI.md",
        "mcpServers": _server(plugin, root),
    }
    parts = {path.removeprefix(".gemini/"): _unsealed(content) for path, content in installation.files().items()}
    return {
        "gemini-extension.json": _json(manifest),
        "GEMINI.md": _WHERE.encode() + b"\n" + _body(_skills(plugin)[0][1]),
        "hooks/hooks.json": _hooks(installation.hooks, root),
        **parts,
        **_shared(plugin),
        **plugin.readme(f"{_HOOKS}, slash commands, instructions, a skill"),
    }


_TREES: dict[str, Callable[[Description, JsonInstallation], Files]] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "gemini": _gemini,
}


def _hooks(form: HookSettings, root: str) -> bytes:
    """The hooks that `detent init --agent` installs, started by the launcher."""
    text = _json({"hooks": form.groups(PluginInvocation(root))})
    # In a command for a shell the directory stands in double quotes: a client replaces it, or its shell does.
    path = f"{root}/{LAUNCHER}"
    return text.replace(f"'{path}'".encode(), f'\\"{path}\\"'.encode())


def _server(plugin: Description, root: str) -> dict[str, Any]:
    return {plugin.server: {"command": "/bin/sh", "args": [f"{root}/{LAUNCHER}", "mcp"]}}


def _inline_server(plugin: Description) -> dict[str, Any]:
    """The server with the whole launcher in its arguments.

    Codex starts it in the project and does not tell the plugin's directory, or in the plugin's directory and does not
    tell the project.
    """
    script = (HERE / LAUNCHER).read_text("utf-8")
    return {plugin.server: {"command": "/bin/sh", "args": ["-c", script, LAUNCHER, "mcp"]}}


def _shared(plugin: Description) -> Files:
    skills = {f"skills/{name}/SKILL.md": content for name, content in _skills(plugin)}
    return {LAUNCHER: (HERE / LAUNCHER).read_bytes(), **skills}


def _skills(plugin: Description) -> list[tuple[str, bytes]]:
    return [(name, (HERE / "skills" / name / "SKILL.md").read_bytes()) for name in plugin.skills]


def _body(skill: bytes) -> bytes:
    """A skill without the fields in front of it."""
    return skill.split(b"---\n", 2)[2].lstrip(b"\n")


def _unsealed(content: bytes) -> bytes:
    """A whole file without its last line, the seal: a plugin's files are replaced by its client."""
    return b"\n".join(content.rstrip(b"\n").split(b"\n")[:-1]) + b"\n"


def _below(directory: str, files: Files) -> Files:
    return {f"{directory}/{path}": content for path, content in files.items()}


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def differences() -> list[str]:
    """The files that are not as they would be made, and those that would not be made."""
    problems = []
    for name, files in trees().items():
        present = {path.relative_to(HERE / name).as_posix() for path in (HERE / name).rglob("*") if path.is_file()}
        problems += [f"{name}/{path} would not be made" for path in sorted(present - files.keys())]
        for path, content in files.items():
            file = HERE / name / path
            if not file.is_file() or file.read_bytes() != content:
                problems.append(f"{name}/{path} is not current")
    for path, content in root_files().items():
        if not (ROOT / path).is_file() or (ROOT / path).read_bytes() != content:
            problems.append(f"{path} at the root is not current")
    return problems


def write() -> None:
    for name, files in trees().items():
        for old in sorted((HERE / name).rglob("*"), reverse=True):
            if old.is_file() and old.relative_to(HERE / name).as_posix() not in files:
                old.unlink()
            elif old.is_dir() and not any(old.iterdir()):
                old.rmdir()
        _write(HERE / name, files)
    _write(ROOT, root_files())


def _write(directory: Path, files: Files) -> None:
    for path, content in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m integrations.generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what differs")
    if parser.parse_args().check:
        problems = differences()
        sys.stdout.write("".join(f"{problem}; run make plugins\n" for problem in problems))
        return 1 if problems else 0
    write()
    for name, files in trees().items():
        sys.stdout.write(f"{shlex.quote(str(HERE / name))}: {len(files)} files\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
