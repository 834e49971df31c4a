"""Which documents all machines must see. Every other document is a view or a cache of one machine.

A store that several machines share keeps the documents of this table where all of them read it. The hooks of a machine
read markers with a bare interpreter, and agents read texts by their path, so these are written as files too.
"""

from typing import NamedTuple

MARKERS = ".active-"
PROJECT_ID = "project-id"


class Kind(NamedTuple):
    #: Below a session, unless it is a marker.
    prefix: str
    #: Whether the machine that writes it keeps a file of it too.
    is_file_too: bool
    reason: str


KINDS = (
    Kind("evidence/", is_file_too=False, reason="a gate is judged on it, on every machine"),
    Kind("protected/", is_file_too=False, reason="the tests and settings of the start, for the checks of gates"),
    Kind(".process/runner.json", is_file_too=False, reason="the lease of a run"),
    Kind(".process/leases/", is_file_too=False, reason="the leases of claims on tasks"),
    Kind(".without-files.json", is_file_too=False, reason="an imported session came without its files"),
    Kind(".summaries/", is_file_too=True, reason="agents read the summaries of finished tasks"),
    Kind(".chat/", is_file_too=True, reason="notes are in no journal"),
    Kind(".brainstorming/", is_file_too=True, reason="notes are in no journal"),
)
_MARKER = Kind(MARKERS, is_file_too=True, reason="which session is active")


def shared_kind(name: str) -> Kind | None:
    """The kind of a shared document; None for a document of this machine."""
    if name.startswith(MARKERS):
        return _MARKER
    session, _, inside = name.partition("/")
    if not session.startswith("WFS-"):
        return None
    return next((kind for kind in KINDS if inside.startswith(kind.prefix)), None)


def may_be_shared(prefix: str) -> bool:
    """Whether shared documents may have names that start with `prefix`."""
    if MARKERS.startswith(prefix) or prefix.startswith(MARKERS):
        return True
    session, _, inside = prefix.partition("/")
    if not session.startswith("WFS-") or "/" not in prefix:
        return False
    return any(kind.prefix.startswith(inside) or inside.startswith(kind.prefix) for kind in KINDS)
