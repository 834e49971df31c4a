"""What is wrong with an installation, for `detent doctor`. Looks, runs nothing, and stays inside the project.

The one file outside that it can look at is Codex's own configuration, and only where the caller says that is. Approving
a hook there is for the person: Detent reports and never writes it.
"""

import os
import re
from collections.abc import Callable, Iterator

import msgspec

from detent.errors import DetentError
from detent.install import hook_settings, switches
from detent.install import manifest as records
from detent.install.block import BEGIN
from detent.install.clients import CLIENT_TABLE, CODEX, Client, own_invocation, wanted_groups
from detent.install.files import read, resolve
from detent.install.parts import parts

ERROR, WARNING = "error", "warning"
_AGAIN = "detent init --agent NAME"
_NUMBER = re.compile(r"\d+(?:\.\d+)+")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    client: str
    severity: str
    subject: str
    message: str
    way_out: str


def findings(
    root: str, *, codex_home: str | None = None, version_of: Callable[[str], str | None] | None = None
) -> list[Finding]:
    """Everything that keeps an installed Detent from working; nothing about clients that it is not installed for.

    `codex_home` is the directory of Codex's `config.toml`; without it trust is not looked at. `version_of` gives the
    version of a client, by name, or none if it is not there; without it versions are not looked at.
    """
    root = os.path.realpath(root)
    try:
        manifest = records.load(root)
    except DetentError as error:
        return [_finding("", records.MANIFEST, error.message, error.way_out or _AGAIN)]
    recorded = {client for entry in manifest.files.values() for client in entry.clients}
    found: list[Finding] = []
    for client in CLIENT_TABLE.values():
        try:
            settings = hook_settings.read(read(root, resolve(root, client.settings)), client)
        except DetentError as error:
            if client.name in recorded:
                way_out = (error.way_out or "correct it").removeprefix("nothing was changed; ")
                found.append(_finding(client.name, client.settings, error.message, way_out))
            continue
        present = hook_settings.own_groups(settings)
        if not present and client.name not in recorded:
            continue
        found += _invocations(client, present)
        found += _entries(client, present)
        found += [
            _finding(client.name, subject, f"{what} switches hooks off", f"take it out of {subject}")
            for subject, what in switches.off(root, client, settings, codex_home)
        ]
        if client.name == CODEX and codex_home is not None:
            found += _approvals(client, switches.untrusted(root, client, settings, codex_home))
        found += _texts(root, client)
        if version_of is not None:
            found += _version(client, version_of(client.name) or "")
    return found


def _invocations(client: Client, present: hook_settings.Groups) -> Iterator[Finding]:
    started = {own_invocation(h) for groups in present.values() for group in groups for h in group["hooks"]}
    for invocation in sorted(found for found in started if found is not None):
        if not os.access(invocation.python, os.X_OK):
            message = f"the interpreter {invocation.python} is not there; the hooks do nothing"
            yield _finding(client.name, client.settings, message, _AGAIN)
        if not os.path.isfile(invocation.hook):
            message = f"the hook {invocation.hook} is not there; the client refuses every tool that has a hook"
            yield _finding(client.name, client.settings, message, f"{_AGAIN}, or detent uninstall")


def _entries(client: Client, present: hook_settings.Groups) -> Iterator[Finding]:
    """Compared with what would be written for the interpreter and hook that the entries themselves name."""
    for event in client.events:
        groups = present.get(event, [])
        invocation = own_invocation(groups[0]["hooks"][0]) if groups else None
        if invocation is None:
            yield _finding(client.name, client.settings, f"the hook for {event} is missing", _AGAIN)
        elif groups != wanted_groups(client, invocation)[event]:
            message = f"the hook for {event} was edited, or is of another version"
            yield _finding(client.name, client.settings, message, f"{_AGAIN} puts it back", WARNING)


def _approvals(client: Client, events: list[str]) -> Iterator[Finding]:
    if events:
        message = f"Codex skips the hooks for {', '.join(events)} without a word, as nobody has approved them"
        yield _finding(client.name, client.settings, message, "start codex and approve them under /hooks")


def _texts(root: str, client: Client) -> Iterator[Finding]:
    for part in parts(client.name)[1:]:
        try:
            content = read(root, resolve(root, part.path))
            is_behind = part.merge(content).content != content
        except DetentError as error:
            yield _finding(client.name, part.path, error.message, "mend it by hand", WARNING)
            continue
        if content is None or (part.path == client.instructions and BEGIN not in content):
            yield _finding(client.name, part.path, "Detent's text is missing", _AGAIN, WARNING)
        elif is_behind:
            yield _finding(client.name, part.path, "Detent's text is of another version", _AGAIN, WARNING)


def _version(client: Client, version: str) -> Iterator[Finding]:
    number = _NUMBER.search(version)
    if number is not None and tuple(map(int, number[0].split("."))) < client.oldest:
        oldest = ".".join(map(str, client.oldest))
        message = f"{client.title} is of version {number[0]}; Detent was tried with {oldest} and later"
        yield _finding(client.name, client.title, message, f"update {client.title}", WARNING)


def _finding(client: str, subject: str, message: str, way_out: str, severity: str = ERROR) -> Finding:
    return Finding(client=client, severity=severity, subject=subject, message=message, way_out=way_out)
