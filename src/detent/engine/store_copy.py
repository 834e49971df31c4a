"""Copies all sessions of a project from one store to another, and compares both when it is done.

A session that the target has already is continued from where it ends there, so an interrupted copy is repeated. Two
sessions with one name that differ are refused: nothing is joined or replaced.
"""

import os
from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from itertools import islice
from typing import NamedTuple

from detent.core.actor import Actor
from detent.engine.gates.stored import EVIDENCE, PROTECTED, is_intact
from detent.engine.policy import Decision, authorize
from detent.engine.run_lease import live_leases
from detent.errors import Conflict, Corrupt, Refused
from detent.store.port import PROJECT, START, Cursor, SessionFile, Store, all_commits
from detent.store.shared_names import MARKERS, shared_kind

#: Documents that mean something only to the process that wrote them.
_OF_PROCESSES = (".process/",)


class Copied(NamedTuple):
    sessions: int
    #: That the target did not have.
    commits: int
    documents: int


def copy_store(
    source: Store,
    target: Store,
    *,
    actor: Actor,
    now: datetime,
    progress: Callable[[int, int], object] | None = None,
) -> Copied:
    """Copy journals, evidence, protected files and texts, and verify them.

    `Conflict` if a session differs, or goes on while it is copied.
    """
    authorize(actor, Decision.STORE)
    running = live_leases(source, now=now)
    if running:
        name, lease = next(iter(running.items()))
        raise Refused(f"{name} is being run by {lease}", way_out="wait until the run ends, or stop it")
    names, commits, documents = source.sessions(), 0, 0
    with ExitStack() as locks:
        # The views of a database and the files of this project share a directory, and with it a lock.
        locks.enter_context(source.lock(PROJECT))
        if target.location("") != source.location(""):
            locks.enter_context(target.lock(PROJECT))
        markers = {name: source.get(name) or b"1" for name in source.names(MARKERS)}
        for number, name in enumerate(names):
            if progress is not None:
                progress(number, len(names))
            commits += _copy_journal(source, target, name)
            documents += _copy_documents(source, target, name)
        if not target.names(MARKERS):
            for marker, rank in markers.items():
                target.put(marker, rank)
        if not target.is_shared:
            os.sync()
        for name in names:
            _verify(source, target, name)
    if source.sessions() != names:
        raise Conflict("a session was started while the others were copied", way_out="repeat the command")
    return Copied(len(names), commits, documents)


def _copy_journal(source: Store, target: Store, name: str) -> int:
    """Returns the number of commits that the target lacked."""
    if name not in target.sessions():
        commits = all_commits(source, name)
        first = next(commits)
        end = target.create(name, first, commits, _files(source, name))
        return end.version
    end = _common_end(source, target, name)
    count = 0
    for commit in islice(all_commits(source, name), end.version, None):
        with target.lock(name):
            end = target.append(name, end, commit)
        count += 1
    return count


def _common_end(source: Store, target: Store, name: str) -> Cursor:
    """The end of the target's journal, if the source's begins with it."""
    end, more = START, True
    while more:
        commits, behind, _, more = target.read(name, end)
        own = source.read(name, end, len(commits)) if commits else None
        if own is not None and own.end[:2] != behind[:2]:
            if not own.commits or target.read(name, end, len(own.commits)).end[:2] == own.end[:2]:
                raise Conflict(
                    f"{name} has more commits in TO than in FROM", way_out="copy it the other way: exchange both"
                )
            raise Conflict(
                f"{name} is another session in TO than in FROM: they differ behind commit {end.version}",
                way_out="copy to a store that does not have it",
            )
        end = behind
    return end


def _files(source: Store, name: str) -> list[tuple[SessionFile, bytes]]:
    files = []
    for file in source.session_files(name):
        data = source.get(f"{name}/{file.name}") if _is_copied(f"{name}/{file.name}") and file.is_document else None
        if data is not None:
            files.append((file, data))
    return files


def _is_copied(name: str) -> bool:
    inside = name.partition("/")[2]
    return shared_kind(name) is not None and not inside.startswith(_OF_PROCESSES)


def _copy_documents(source: Store, target: Store, name: str) -> int:
    count = 0
    for file, data in _files(source, name):
        full = f"{name}/{file.name}"
        if target.get(full) is None:
            target.put(full, data, durable=True)
            count += 1
    return count


def _verify(source: Store, target: Store, name: str) -> None:
    """Read both whole: every line is verified, and both end with the same sum."""
    ends = [_read_all(store, name) for store in (source, target)]
    if ends[0][:2] != ends[1][:2]:
        raise Conflict(f"{name} went on while it was copied", way_out="repeat the command")
    for file, data in _files(source, name):
        full = f"{name}/{file.name}"
        if target.get(full) != data:
            raise Conflict(f"{full} differs in {target.location('')}", way_out="look at both, and remove one")
        kind, _, digest = file.name.partition("/")
        if kind in (EVIDENCE, PROTECTED) and not is_intact(digest, data):
            raise Corrupt(f"{full} is not what was recorded", way_out="detent doctor")


def _read_all(store: Store, name: str) -> Cursor:
    cursor, more = START, True
    while more:
        _, cursor, _, more = store.read(name, cursor)
    return cursor
