"""Compares the files of a directory with those of the last checkpoint of a record."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from detent.config.place import at_root
from detent.config.settings import Settings
from detent.core.checkpoint.manifest import Manifest
from detent.core.counted import counted, listed
from detent.core.path_text import to_text
from detent.doctor.verified import Check, note, unchecked, wrong
from detent.engine.checkpoints.checkpoints import scope_of
from detent.errors import Corrupt
from detent.objects.universe import Request, Universe

if TYPE_CHECKING:
    from detent.objects.manifest_object import Manifests

_SHOWN = 5


def other_files(directory: str, settings: Settings, manifests: "Manifests", last: str | None) -> Iterator[Check]:
    """The files of the directory that are not as in the manifest of the last checkpoint."""
    if last is None:
        yield unchecked(f"the session has no checkpoint, so the files of {directory} cannot be compared")
        return
    try:
        files, left_out = manifests.read(last)
    except Corrupt as error:
        yield unchecked(f"the files of {directory} cannot be compared: {error.message}")
        return
    universe = Universe(directory, scope_of(at_root(directory), settings.checkpoint))
    look = universe.look(Request(named=frozenset(files)))
    present = {path: row.entry for path, row in look.rows.items() if look.has(path)}
    differing = sorted(
        path for path in {*files, *present} - left_out.keys() if _content(files, path) != _content(present, path)
    )
    if differing:
        shown = listed(list(map(to_text, differing)), _SHOWN)
        yield wrong(f"the files of {directory} are not those of the last checkpoint: {shown}")
    if left_out:
        shown = ", ".join(map(to_text, sorted(left_out)[:_SHOWN]))
        yield note(f"in no checkpoint, and not compared: {counted(len(left_out), 'file')}: {shown}")


def _content(files: Manifest, path: str) -> tuple[str, str] | None:
    entry = files.get(path)
    return (entry.kind, entry.digest) if entry is not None else None
