"""Checks an installation for `detent doctor`. Reads files of the project only, and runs nothing.

It reads a client's configuration outside the project only if the caller passes an environment that names it.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

from detent.clients.installing import manifest as records
from detent.clients.installing.installation import AGAIN, ERROR, WARNING, Finding, Installation
from detent.clients.installing.plugins import plugin_findings
from detent.clients.registry import CLIENTS, Client, with_hooks
from detent.errors import DetentError

_NUMBER = re.compile(r"\d+(?:\.\d+)+")


def findings(
    root: str,
    *,
    environment: Mapping[str, str] | None = None,
    version_of: Callable[[str], str | None] | None = None,
) -> list[Finding]:
    """All problems that keep an installed Detent from working, in the clients that it is installed in or a plugin of.

    `version_of` gives the version of a client's program, or None if it is not on PATH; without it versions are not
    checked.
    """
    root = os.path.realpath(root)
    try:
        manifest = records.load(root)
    except DetentError as error:
        way_out = error.way_out or AGAIN
        return [Finding(client="", severity=ERROR, subject=records.MANIFEST, message=error.message, way_out=way_out)]
    recorded = {client for entry in manifest.files.values() for client in entry.clients}
    problems: list[Finding] = []
    for name in with_hooks():
        client = CLIENTS[name]
        installation: Installation = client.load("installation").INSTALLATION
        own = installation.findings(root, is_recorded=name in recorded, environment=environment or {})
        if own is None:
            continue
        problems += own
        if version_of is not None:
            problems += _version(client, installation.oldest, version_of(client.program) or "")
    return [*problems, *plugin_findings(root, environment or {})]


def _version(client: Client, oldest: tuple[int, ...], version: str) -> Iterator[Finding]:
    number = _NUMBER.search(version)
    if number is not None and tuple(map(int, number[0].split("."))) < oldest:
        tested = ".".join(map(str, oldest))
        message = f"{client.title} has version {number[0]}; Detent was tested with {tested} and later"
        yield Finding(
            client=client.name,
            severity=WARNING,
            subject=client.title,
            message=message,
            way_out=f"update {client.title}",
        )
