"""`init`: looks at a directory, makes it a project, and writes its settings."""

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import click

from detent.cli.person import is_at_terminal
from detent.cli.request import Request, write_text
from detent.cli.verb import verb
from detent.clients.registry import CLIENTS, with_hooks

if TYPE_CHECKING:
    from detent.config.discovery import Discovered
    from detent.engine.choose_store import Chosen
    from detent.render.terminal.canvas import Canvas

_CLIENTS = with_hooks()
_SETTINGS = "detent.toml"


@verb("init", example=f"detent init --agent {_CLIENTS[0]} --agent {_CLIENTS[1]}")
@click.option(
    "--agent", "agents", multiple=True, type=click.Choice(_CLIENTS), help="Install hooks in this client; repeat it."
)
@click.option(
    "--instructions", is_flag=True, help="Write how to work with Detent into AGENTS.md, which most clients read."
)
@click.option(
    "--store", metavar="STORE", help="Where the journals are: files, or postgresql://USER@HOST/DATABASE (no password)."
)
@click.option("--store-project", metavar="NAME", help="The name of the project in the database; by default a new one.")
@click.option("--yes", is_flag=True, help="Ask nothing: write detent.toml with what was found.")
@click.option(
    "--dry-run", is_flag=True, help="Show what would change in files of clients as a diff, and change nothing."
)
def init_verb(
    request: Request,
    *,
    agents: tuple[str, ...],
    instructions: bool,
    store: str | None,
    store_project: str | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Make a directory a project, and install hooks in agents.

    It looks for tests (pytest, unittest, npm, cargo, go, make), installed clients and CI. If there is no detent.toml,
    it asks at a terminal for the test command and the agent, and writes one with comments. The state is in .workflow/,
    which git ignores until you remove .workflow/.gitignore.

    --agent adds hooks, instructions and agent definitions to that client's files in the project. Existing content is
    not touched, and detent uninstall removes what was added.

    --store records in detent.toml where the journals are, so that several machines can share them: docs/scale.md.
    """
    from detent.clients import installing
    from detent.config.discovery import discover, settings_text
    from detent.config.place import read_settings
    from detent.config.store_table import with_store
    from detent.engine.project import init_project
    from detent.engine.stores import open_store
    from detent.run.agents import on_path

    root = os.path.realpath(request.directory)
    shared = (installing.SHARED,) if instructions else ()
    if dry_run:
        diff = installing.plan(root, (*agents, *shared)).diff()
        request.answer(lambda _: diff or "nothing would change", {"diff": diff})
        return
    discovered, clients = discover(root), on_path()
    path = os.path.join(root, _SETTINGS)
    asks = not yes and not request.json and is_at_terminal()
    chosen = _Chosen(discovered.tests[0].command if discovered.tests else None, (*agents, *clients, None)[0], agents)
    writes = not os.path.lexists(path) and (yes or asks)
    asked = asks and writes
    if asked:
        chosen = _asked(discovered, chosen)
    chosen_store = _choose_store(request, root, store, store_project)
    place, fresh = init_project(request.directory)
    _record(request, place.root)
    changed: list[str] = []
    if chosen.hooks or shared:
        plan = installing.plan(place.root, (*chosen.hooks, *shared))
        installing.apply(plan)
        changed = [change.path for change in plan if not change.path.startswith(".workflow/")]
        request.notices += plan.notes
    if writes:
        text = settings_text(chosen.tests, chosen.agent, discovered)
        if chosen_store is not None and chosen_store.url is not None:
            text = with_store(text, chosen_store.url, chosen_store.project)
        with open(path, "x" if chosen_store is None else "w", encoding="utf-8") as file:
            file.write(text)
    if writes or (chosen_store is not None and chosen_store.is_new):
        changed.append(_SETTINGS)
    request.answer(
        lambda canvas: "\n".join(
            [
                *canvas.wrap(f"{place.root} {'is a project now' if fresh else 'is already a project'}"),
                *(_chosen_lines(chosen, canvas) if asked else _found_lines(discovered, clients, canvas)),
                *_store_lines(chosen_store, canvas),
                *(f"  wrote {path}" for path in _folded(changed)),
                "",
                *_next_lines(
                    canvas, read_settings(root).run.workflow, wrote=os.path.lexists(path), has_agent=bool(clients)
                ),
            ]
        ),
        {
            "root": place.root,
            "state": open_store(place).location(""),
            "created": fresh,
            "changed": changed,
            "found": discovered,
            "clients": clients,
        },
    )


def _choose_store(request: Request, root: str, store: str | None, name: str | None) -> "Chosen | None":
    if store is None:
        return None
    from detent.core.actor import Channel
    from detent.engine.choose_store import choose_store

    return choose_store(root, store, name, request.workspace.actor(Channel.TERMINAL, changes=True))


def _store_lines(chosen: "Chosen | None", canvas: "Canvas") -> list[str]:
    if chosen is None:
        return []
    if chosen.url is None:
        return canvas.wrap("journals: files of this project", "  ")
    return canvas.wrap(f"journals: {chosen.url}, project {chosen.project}; commit {_SETTINGS}", "  ")


def _record(request: Request, root: str) -> None:
    """Record this Detent for the launchers of plugins. Only a person says which program they start."""
    from detent.clients.installing.programs import record_program
    from detent.core.actor import ActorKind, Channel
    from detent.engine.stores import user_state
    from detent.errors import StoreFailed

    if request.workspace.actor(Channel.TERMINAL, changes=True).kind is not ActorKind.PERSON:
        return
    try:
        record_program(user_state(), root, python=sys.executable)
    except StoreFailed as error:
        request.notices.append(f"plugins look for detent on PATH: {error.message}")


class _Chosen(NamedTuple):
    tests: str | None
    agent: str | None
    #: The clients to install hooks in.
    hooks: tuple[str, ...]


def _asked(discovered: "Discovered", proposed: _Chosen) -> _Chosen:
    """Ask for the test command, the agent and its hooks. An empty answer takes what is proposed; `-` means none."""
    write_text("Enter takes the answer in brackets, - means none.\n")
    candidates = "".join(f"\n  found: {each.command} ({each.source})" for each in discovered.tests)
    tests = _answer(f"Which command runs the tests?{candidates}", proposed.tests)
    known = [name for name in CLIENTS if CLIENTS[name].program]
    agent = _answer(f"Which agent does the work of detent run: {', '.join(known)}?", proposed.agent)
    while agent is not None and agent not in known:
        agent = _answer(f"  {agent!r} is none of {', '.join(known)}", proposed.agent)
    hooks = proposed.hooks
    if agent in _CLIENTS and agent not in hooks:
        title = CLIENTS[agent].title
        question = f"Install hooks, which hold your own conversations in {title} to the workflow too? y or n"
        if (_answer(question, "y") or "n")[0] in "yY":
            hooks = (*hooks, agent)
    return _Chosen(tests, agent, hooks)


def _answer(question: str, proposed: str | None) -> str | None:
    sys.stdout.write(f"{question}\n  [{proposed or 'none'}] ")
    sys.stdout.flush()
    text = sys.stdin.buffer.readline().decode("utf-8", "replace").strip()
    return None if text == "-" else text or proposed


def _chosen_lines(chosen: _Chosen, canvas: "Canvas") -> list[str]:
    lines = (f"tests: {chosen.tests or 'none'}", f"agent: {chosen.agent or 'none'}")
    return [line for text in lines for line in canvas.wrap(text, "  ")]


def _found_lines(discovered: "Discovered", clients: list[str], canvas: "Canvas") -> list[str]:
    lines = [f"tests: {each.command} ({each.source})" for each in discovered.tests] or ["tests: none found"]
    lines.append(f"agents on PATH: {', '.join(clients) or 'none'}")
    if discovered.ci:
        lines.append(f"CI: {', '.join(discovered.ci)}")
    return [line for text in lines for line in canvas.wrap(text, "  ")]


def _next_lines(canvas: "Canvas", workflow: str, *, wrote: bool, has_agent: bool) -> list[str]:
    """The next commands to type."""
    commands = [] if wrote else ["detent init --yes"]
    commands += ["detent run --check", 'detent run "TASK"'] if has_agent else []
    return canvas.commands([*commands, f'detent start {workflow} "TASK"', "detent workflows"])


def _folded(paths: list[str]) -> list[str]:
    """The paths; a directory with more than three of them replaces its files."""
    count = Counter(os.path.dirname(path) for path in paths)
    return list(
        dict.fromkeys(
            f"{directory}/ ({count[directory]} files)" if directory and count[directory] > 3 else path
            for path in paths
            for directory in (os.path.dirname(path),)
        )
    )
