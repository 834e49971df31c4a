"""Plans the changes that install Detent in clients or remove it. Reads files and writes none.

A removal restores a file that is unchanged since the installation byte for byte. From a file that was edited since it
removes only Detent's parts; the person's edit stays.
"""

import os
import sys
from collections.abc import Sequence

import msgspec

import detent
from detent.clients.installing import manifest as records
from detent.clients.installing.files import Change, Plan, missing_directories, read, resolve
from detent.clients.installing.hook_settings import HOOK_TAIL, Invocation
from detent.clients.installing.installation import NOTHING_TO_RUN, Installation, instructions_part
from detent.clients.installing.manifest import Entry, Manifest, digest
from detent.clients.installing.parts import Outcome, Part
from detent.clients.registry import CLIENTS, with_hooks
from detent.errors import Invalid, NotFound

#: The instructions that clients share. It stands for every client that Detent has no room for.
SHARED, SHARED_FILE = "instructions", "AGENTS.md"
HOOK = os.path.join(os.path.dirname(os.path.abspath(detent.__file__)), "hooks", "fast.py")


def plan(root: str, clients: Sequence[str], *, python: str = sys.executable, hook: str = HOOK) -> Plan:
    """Install Detent in `clients`, or update it there. The plan is empty if nothing has to change."""
    invocation = _checked(Invocation(os.path.abspath(python) if python else "", os.path.abspath(hook)))
    draft = _Draft(root)
    for client in _known(clients):
        wanted = {resolve(draft.root, part.path): part for part in _parts(client, invocation)}
        for path, part in wanted.items():
            draft.merge(path, part, client)
        for path in draft.paths_of(client) - wanted.keys():
            draft.remove(path, None, client)
    return draft.plan(records_first=True)


def plan_removal(root: str, clients: Sequence[str]) -> Plan:
    """Remove Detent from `clients`; other clients keep their parts."""
    draft = _Draft(root)
    for client in _known(clients):
        known = {resolve(draft.root, part.path): part for part in _parts(client)}
        for path in [*known, *sorted(draft.paths_of(client) - known.keys())]:
            draft.remove(path, known.get(path), client)
    return draft.plan(records_first=False)


class _Draft:
    """The project after the changes so far; the disk is not changed."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        if not os.path.isdir(self.root):
            raise NotFound(f"the directory {root} does not exist")
        self._old = records.load(self.root)
        self._files = dict(self._old.files)
        self._directories = list(self._old.directories)
        self._before: dict[str, bytes | None] = {}
        self._after: dict[str, bytes | None] = {}
        self._originals: dict[str, bytes] = {}
        self._notes: list[str] = []

    def paths_of(self, client: str) -> set[str]:
        return {path for path, entry in self._files.items() if client in entry.clients}

    def merge(self, path: str, part: Part, client: str) -> None:
        present, entry = self._present(path), self._files.get(path)
        content = self._noted(part.merge(present))
        if content == present:
            if entry is not None and client not in entry.clients:
                self._files[path] = msgspec.structs.replace(entry, clients=(*entry.clients, client))
            return
        assert content is not None, "merging never removes a file"
        original = self._original(part, present, entry)
        if original is not None:
            self._originals[digest(original)] = original
        self._files[path] = Entry(
            clients=tuple(dict.fromkeys((*(entry.clients if entry else ()), client))),
            written=digest(content),
            original=None if original is None else digest(original),
        )
        self._directories += [d for d in missing_directories(self.root, path) if d not in self._directories]
        self._after[path] = content

    def remove(self, path: str, part: Part | None, client: str) -> None:
        present, entry = self._present(path), self._files.get(path)
        if entry is not None:
            others = tuple(other for other in entry.clients if other != client)
            if others:
                self._files[path] = msgspec.structs.replace(entry, clients=others)
                return
            del self._files[path]
        if present is None:
            return
        known, original = (False, None) if entry is None else records.original(self.root, entry)
        if entry is not None and known and digest(present) == entry.written:
            self._after[path] = original
        elif part is None:
            self._notes.append(f"{path} was edited and is kept")
        else:
            self._after[path] = self._noted(part.strip(present, original if known else None))
            if entry is not None and self._after[path] is not None:
                self._notes.append(f"{path} was edited since; only Detent's part was removed")

    def plan(self, *, records_first: bool) -> Plan:
        changed = [
            Change(path, self._before[path], after)
            for path, after in self._after.items()
            if after != self._before[path]
        ]
        if not self._old.files:
            self._directories += missing_directories(self.root, f"{records.ORIGINALS}/any")
        new = Manifest(files=self._files, directories=tuple(self._directories))
        recorded = records.changes(self.root, self._old, new, self._originals)
        # After an interruption at any point the records suffice to go back.
        ordered = [*recorded, *changed] if records_first else [*changed, *recorded]
        gone = any(change.after is None for change in ordered)
        return Plan(
            root=self.root,
            changes=tuple(ordered),
            notes=tuple(dict.fromkeys(self._notes)),
            directories=tuple(reversed(self._old.directories)) if gone else (),
        )

    def _present(self, path: str) -> bytes | None:
        if path in self._after:
            return self._after[path]
        if path not in self._before:
            self._before[path] = read(self.root, path)
        return self._before[path]

    def _noted(self, outcome: Outcome) -> bytes | None:
        if outcome.note:
            self._notes.append(outcome.note)
        return outcome.content

    def _original(self, part: Part, present: bytes | None, entry: Entry | None) -> bytes | None:
        """The content of the file without Detent."""
        if present is None:
            return None
        known, original = (False, None) if entry is None else records.original(self.root, entry)
        if entry is not None and known and digest(present) == entry.written:
            return original
        return part.strip(present, original if known else None).content


def _known(clients: Sequence[str]) -> list[str]:
    unknown = [client for client in clients if client not in (*with_hooks(), SHARED)]
    if unknown:
        raise NotFound(f"there is no client {', '.join(unknown)}; known clients: {', '.join(with_hooks())}")
    return list(dict.fromkeys(clients))


def _parts(name: str, invocation: Invocation = NOTHING_TO_RUN) -> list[Part]:
    if name == SHARED:
        return [instructions_part(SHARED_FILE)]
    client = CLIENTS[name]
    installation: Installation = client.load("installation").INSTALLATION
    if not client.dialect.startswith("detent."):
        # The hook process does not have the path that the dialect was imported from.
        invocation = invocation._replace(module=os.path.abspath(client.load("dialect").__file__))
    return installation.parts(invocation)


def _checked(invocation: Invocation) -> Invocation:
    """Refuse a hook that cannot start: Python then exits with the code that means `deny`, and every tool is held."""
    for what, path in (("interpreter", invocation.python), ("hook", invocation.hook)):
        if not os.path.isfile(path):
            raise NotFound(f"the {what} {path or '(unknown)'} does not exist", way_out="install Detent again")
    if not invocation.hook.endswith(HOOK_TAIL):
        raise Invalid(f"the hook {invocation.hook} does not end in {HOOK_TAIL}, so Detent could not recognise it later")
    return invocation
