"""Checks the plugins of clients for `detent doctor`: which clients have one, and whether it is loaded and starts."""

import json
import os
import shutil
from collections.abc import Iterator, Mapping

from detent.clients.installing.hook_settings import HOOK_TAIL
from detent.clients.installing.installation import WARNING, Finding
from detent.clients.installing.programs import recorded_programs
from detent.clients.registry import CLIENTS, Client
from detent.store import disk
from detent.store.state_home import state_home

_RECORD = "detent init, in a terminal of your own, records the program that it belongs to"
#: The name of the marketplace that a clone is.
_MARKETPLACE = "detent"
#: The most bytes of a file in which a client lists its plugins.
_MAX_LIST = 4 * 1024 * 1024


def clients_with_plugin(environment: Mapping[str, str]) -> list[Client]:
    """The clients that have Detent as a plugin, by the files in the home of the account."""
    return [client for client in CLIENTS.values() if client.plugin and _has_plugin(client, environment)]


def _has_plugin(client: Client, environment: Mapping[str, str]) -> bool:
    file, text = client.plugin
    return text.encode() in _read(client, file, environment)


def _read(client: Client, file: str, environment: Mapping[str, str]) -> bytes:
    """A file in the directory of the client in the account; nothing if it is not there."""
    home = environment.get("HOME", "")
    directory = environment.get(client.home_variable, "") or client.home.replace("~", home, 1)
    if not home or not os.path.isabs(directory):
        return b""
    try:
        return disk.read_file(os.path.join(directory, file))[:_MAX_LIST]
    except OSError:
        return b""


def _lost_sources(clients: list[Client], environment: Mapping[str, str]) -> Iterator[Finding]:
    """Clients that read the plugin where it was installed from, and find nothing there. They say so only when asked."""
    for client in clients:
        try:
            listed = json.loads(_read(client, client.marketplaces, environment))
            source = str(listed[_MARKETPLACE]["installLocation"])
        except (ValueError, LookupError, TypeError):
            continue
        if not os.path.isdir(source):
            yield Finding(
                client=client.name,
                severity=WARNING,
                subject="plugin",
                message=f"{client.title} does not load the plugin: {source}, where it was installed from, is gone",
                way_out="put the clone back, or remove the marketplace and add it from another clone",
            )


def plugins_beside_hooks(root: str, environment: Mapping[str, str]) -> list[str]:
    """Says which clients have the plugin and the hooks of this project: that is fine, and one of them answers."""
    sentences = []
    for client in clients_with_plugin(environment):
        try:
            settings = disk.read_file(os.path.join(root, client.settings[0]))
        except OSError:
            continue
        if HOOK_TAIL.encode() in settings:
            sentences.append(
                f"{client.title} has the plugin and the hooks of this project; the hooks of the project answer"
            )
    return sentences


def plugin_findings(root: str, environment: Mapping[str, str]) -> list[Finding]:
    """Plugins that are not loaded, or that find no Detent to start, or not the one that a person recorded."""
    clients = clients_with_plugin(environment)
    if not clients:
        return []
    lost = list(_lost_sources(clients, environment))
    names = " and ".join(client.title for client in clients)
    programs = recorded_programs(state_home(environment.get("XDG_STATE_HOME", ""), environment.get("HOME", "")), root)
    gone = [
        path
        for python, hook in programs
        for path, is_there in ((python, os.access(python, os.X_OK)), (hook, os.access(hook, os.R_OK)))
        if not is_there
    ]
    if gone:
        message = f"the plugin of {names} should start {', '.join(gone)}, which a person recorded and which is gone"
    elif not programs and shutil.which("detent", path=environment.get("PATH", "")) is None:
        message = f"the plugin of {names} does nothing: no program is recorded for it, and none is on PATH"
    else:
        return lost
    subject = "plugin"
    return [*lost, Finding(client=clients[0].name, severity=WARNING, subject=subject, message=message, way_out=_RECORD)]
