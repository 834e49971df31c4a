"""Reads the journals of all sessions of a project, one after another. A session that cannot be read is named."""

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple

from detent.core.history.gate_stats import GateHistory, GateStats
from detent.core.session.events import Commit
from detent.errors import DetentError
from detent.store.port import START, Store, all_commits

#: Called with the number of sessions that were read, and with how many there are.
Progress = Callable[[int, int], object]


class Recorded(NamedTuple):
    """The journal of one session; `problem` says why it cannot be read."""

    session: str
    commits: tuple[Commit, ...] = ()
    problem: str = ""


def recorded_sessions(
    store: Store, *, since: datetime | None = None, only: str | None = None, progress: Progress | None = None
) -> Iterator[Recorded]:
    """The sessions that started at `since` or later, or `only` one."""
    names = store.sessions() if only is None else [only]
    for number, name in enumerate(names, 1):
        if progress is not None:
            progress(number, len(names))
        try:
            if since is not None and any(commit.at < since for commit in store.read(name, START, limit=1).commits):
                continue
            commits = tuple(all_commits(store, name))
        except DetentError as error:
            yield Recorded(name, problem=error.message)
            continue
        if commits:
            yield Recorded(name, commits)


class Statistics(NamedTuple):
    """The figures of the gates of so many sessions; and the sessions that could not be read, with the reason."""

    sessions: int
    gates: tuple[GateStats, ...]
    unreadable: dict[str, str]


def gate_stats(
    store: Store, *, since: datetime | None = None, only: str | None = None, progress: Progress | None = None
) -> Statistics:
    history, unreadable, count = GateHistory(), dict[str, str](), 0
    for recorded in recorded_sessions(store, since=since, only=only, progress=progress):
        if recorded.problem:
            unreadable[recorded.session] = recorded.problem
            continue
        try:
            history.add(recorded.commits)
        except DetentError as error:
            unreadable[recorded.session] = error.message
            continue
        count += 1
    return Statistics(count, history.stats(), unreadable)
