"""The clients that Detent knows: one entry a client, with plain facts and the names of its modules.

This module is a leaf: it imports builtins only, and a client's modules by name on demand, so that the hook process and
every layer can read the facts. The hook process imports it for every tool call.
"""

import posix
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.dialect import Dialect


class Client:
    """A program that agents run in. Paths are relative to the project."""

    title = ""
    #: Module with `adapter(settings)`, which creates an agent.
    adapter = ""
    #: Module with `DIALECT`; builtins only, because the hook process imports it for every tool call.
    dialect = ""
    #: Module with `INSTALLATION`.
    installation = ""
    #: Module with `read_tasks(decoded)`, which reads the client's own task list.
    task_list = ""
    #: The program on PATH. Whatever it starts is an agent's.
    program = ""
    #: Verbs of that program that change its hooks, plugins or servers; an agent must not use them.
    managing: "tuple[str, ...]" = ()
    #: Variables that the client sets in the shells of its agents.
    marks: "tuple[str, ...]" = ()
    #: Files that hold its hooks and switches; an agent must not write them.
    settings: "tuple[str, ...]" = ()
    #: Its directory in the account, `~` for the home of the account, and the variable that names another one.
    home = ""
    home_variable = ""
    #: Names in that directory that hold settings, hooks or code that the client runs; an agent must not write them.
    home_settings: "tuple[str, ...]" = ()
    #: Those of them, or with `~` files beside it, with hooks, plugins or switches of hooks: the guard keeps
    #: agents from them outside of a sandbox too.
    home_hooks: "tuple[str, ...]" = ()
    #: Files in that directory, or with `~` beside it, with settings that the client itself writes. In a sandbox it has
    #: copies of them.
    home_files: "tuple[str, ...]" = ()
    #: The file in that directory that names Detent while it is installed as a plugin, and the text in it that does.
    plugin: "tuple[str, ...]" = ()
    #: The file in that directory that names the directory from which it loads plugins, if it keeps no copy of them.
    marketplaces = ""
    #: Options that start a sandbox of its own, which cannot be inside another one.
    sandbox_options: "tuple[str, ...]" = ()
    #: What its turns tell of what they used: `tokens`, `cost`.
    tells: "tuple[str, ...]" = ()
    #: Documents that show the session to the client. Detent writes them if it is installed in this client.
    documents: "tuple[str, ...]" = ()
    #: Views beside those documents.
    generated: "tuple[str, ...]" = ()

    def __init__(self, name: str, **facts: "str | tuple[str, ...]") -> None:
        """`facts` are the attributes above."""
        self.name = name
        for fact, value in {"title": name, **facts}.items():
            if not hasattr(Client, fact):
                raise TypeError(f"a client has no {fact}")
            setattr(self, fact, value)

    @property
    def has_hooks(self) -> bool:
        return bool(self.dialect and self.installation)

    def load(self, part: str) -> "Any":
        """The module of a part: `adapter`, `dialect`, `installation` or `task_list`."""
        name = getattr(self, part)
        __import__(name)
        return sys.modules[name]


#: In the order in which `detent run` searches PATH.
CLIENTS: "dict[str, Client]" = {}


def register(client: Client) -> None:
    """Add a client, or replace the one of the same name.

    A client with hooks must name the marks of its shells, or its agents would count as people, and its settings files,
    or its agents could remove the hooks.
    """
    if client.installation or client.marks or client.settings:
        missing = [fact for fact in ("dialect", "installation", "marks", "settings") if not getattr(client, fact)]
        if missing:
            raise TypeError(f"{client.name} has hooks and names no {', '.join(missing)}")
    CLIENTS[client.name] = client


def with_hooks() -> "tuple[str, ...]":
    """The names of the clients that Detent can be installed in."""
    return tuple(name for name, client in CLIENTS.items() if client.has_hooks)


def dialect(name: str) -> "Dialect":
    """The hook dialect of a client; that of the first one for an unknown name."""
    client = CLIENTS.get(name)
    if client is None or not client.dialect:
        client = CLIENTS[with_hooks()[0]]
    loaded: Dialect = client.load("dialect").DIALECT
    return loaded


def shell_marks() -> "dict[str, str]":
    """Variables that clients set in the shells of agents, each with its client."""
    return {mark: client.name for client in CLIENTS.values() for mark in client.marks}


def client_programs() -> "dict[str, str]":
    """The programs of the clients, each with its client: what they start is an agent's."""
    return {client.program: client.name for client in CLIENTS.values() if client.program}


def guarded_files() -> "dict[str, tuple[str, ...]]":
    """The clients' files that agents must not write, by their kind for the guard."""
    return {
        "config": tuple(path for client in CLIENTS.values() for path in client.settings),
        "document": tuple(path for client in CLIENTS.values() for path in client.documents),
        "account": tuple(path for client in CLIENTS.values() for path in _in_account(client)),
        "verbs": tuple(f"{client.program} {verb}" for client in CLIENTS.values() for verb in client.managing),
    }


def _in_account(client: Client) -> "list[str]":
    """The files and directories of the account that hold the client's hooks, absolute."""
    home, own = (posix.environ.get(name.encode(), b"") for name in ("HOME", client.home_variable or "HOME"))
    user = home.decode("utf-8", "surrogateescape").rstrip("/")
    chosen = own.decode("utf-8", "surrogateescape").rstrip("/") if client.home_variable else ""
    directory = chosen or client.home.replace("~", user, 1)
    paths = [name.replace("~", user, 1) if name[:1] == "~" else f"{directory}/{name}" for name in client.home_hooks]
    return [path for path in paths if path[:1] == "/" and user]


def generated_files() -> "tuple[str, ...]":
    """The clients' files that Detent writes itself from the journal."""
    return tuple(path for client in CLIENTS.values() for path in (*client.documents, *client.generated))


#: The files of Detent itself in the root of a project; `core/guard/protected.py` guards the same.
ROOT_FILES = ("detent.toml", "approvers.toml")


def settings_files() -> "tuple[str, ...]":
    return guarded_files()["config"]


def client_files() -> "tuple[str, ...]":
    """Files of the project that configure Detent or show its state; no part of the work."""
    return (*ROOT_FILES, *settings_files(), *generated_files())


def directories() -> "tuple[str, ...]":
    """The directories in which clients keep their files."""
    paths = (*settings_files(), *generated_files())
    return tuple(dict.fromkeys(path.partition("/")[0] for path in paths if "/" in path))


def shown_to() -> "tuple[str, ...]":
    """The clients with a document of the session in their own directory."""
    return tuple(client.name for client in CLIENTS.values() if client.documents)


register(
    Client(
        "claude-code",
        title="Claude Code",
        adapter="detent.clients.claude_code.adapter",
        dialect="detent.clients.claude_code.dialect",
        installation="detent.clients.claude_code.installation",
        task_list="detent.clients.claude_code.task_list",
        program="claude",
        managing=("plugin", "plugins", "mcp"),
        marks=("CLAUDECODE",),
        settings=(".claude/settings.json", ".claude/settings.local.json", ".mcp.json"),
        home="~/.claude",
        home_variable="CLAUDE_CONFIG_DIR",
        home_settings=(
            *("settings.json", "settings.local.json", "CLAUDE.md", "plugins", "hooks"),
            *("agents", "commands", "skills", "rules", "output-styles", "keybindings.json"),
        ),
        home_hooks=("settings.json", "settings.local.json", "plugins", "hooks", "~/.claude.json", ".claude.json"),
        home_files=("~/.claude.json", ".claude.json"),
        plugin=("plugins/installed_plugins.json", '"detent@'),
        marketplaces="plugins/known_marketplaces.json",
        tells=("tokens", "cost"),
        documents=(".claude/state/workflow.json",),
        generated=(".claude/workflow_state_system.md",),
    )
)
register(
    Client(
        "codex",
        title="Codex",
        adapter="detent.clients.codex.adapter",
        dialect="detent.clients.codex.dialect",
        installation="detent.clients.codex.installation",
        program="codex",
        managing=("plugin", "mcp", "features"),
        marks=("CODEX_THREAD_ID", "CODEX_SESSION_ID", "CODEX_TOOL_CALL_ID", "CODEX_CI", "CODEX_SANDBOX"),
        settings=(".codex/hooks.json", ".codex/config.toml"),
        home="~/.codex",
        home_variable="CODEX_HOME",
        home_settings=(
            *("config.toml", "hooks.json", "AGENTS.md", "AGENTS.override.md", "requirements.toml"),
            *("rules", "plugins", "prompts", "skills", "agents"),
        ),
        home_hooks=("config.toml", "hooks.json", "requirements.toml", "plugins"),
        plugin=("config.toml", '[plugins."detent@'),
        tells=("tokens",),
        sandbox_options=("--sandbox", "-s", "--full-auto"),
    )
)
register(
    Client(
        "gemini",
        title="Gemini CLI",
        adapter="detent.clients.gemini.adapter",
        dialect="detent.clients.gemini.dialect",
        installation="detent.clients.gemini.installation",
        program="gemini",
        managing=("extensions", "extension", "mcp", "hooks"),
        marks=("GEMINI_CLI",),
        settings=(".gemini/settings.json",),
        home="~/.gemini",
        home_settings=(
            *("settings.json", "trustedFolders.json", "GEMINI.md", ".env"),
            *("extensions", "commands", "policies", "hooks", "skills", "agents"),
        ),
        home_hooks=("settings.json", "trustedFolders.json", "extensions", "policies", "hooks"),
        plugin=("extensions/detent/gemini-extension.json", '"detent"'),
        tells=("tokens",),
        sandbox_options=("--sandbox", "-s"),
    )
)
register(
    Client(
        "acp",
        title="any agent that speaks ACP",
        adapter="detent.clients.acp.adapter",
        dialect="detent.clients.acp.dialect",
    )
)
register(Client("command", title="any command", adapter="detent.clients.command"))
register(Client("manual", title="a person", adapter="detent.clients.manual"))
