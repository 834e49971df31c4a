"""A session with a million commits behind it against one with a thousand: moving it, and loading it."""

import os
import time
from collections.abc import Iterator
from datetime import timedelta

import msgspec

from bench.measure import Pair, Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from bench.workload import ACTOR, Work, next_command
from detent.core.actor import Actor, ActorKind, Channel
from detent.core.session.decide import decide
from detent.core.session.events import Commit
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import Session
from detent.store.line import encode_line
from detent.store.port import START, Cursor

SHORT = 1_000
LONG = 1_000_000
_SAY_EVERY_S = 5.0
_LINES_AT_ONCE = 5_000
_WRITER = Actor(name=ACTOR, kind=ActorKind.PERSON, channel=Channel.LIBRARY)


def long_journal(setting: Setting) -> Section:
    long, batch, rounds = setting.pick(LONG, 50_000), setting.pick(500, 200), setting.pick(15, 5)
    short_work, short_cold_s = grown(os.path.join(setting.directory, "short"), SHORT)
    long_work, long_cold_s = grown(os.path.join(setting.directory, "long"), long)
    with long_work.project, short_work.project:
        load = interleave(
            lambda: seconds_each(lambda: _load(long_work, 20), 20),
            lambda: seconds_each(lambda: _load(short_work, 20), 20),
            rounds=rounds,
        )
        look = interleave(
            lambda: seconds_each(lambda: _look(long_work, batch), batch),
            lambda: seconds_each(lambda: _look(short_work, batch), batch),
            rounds=rounds,
        )
        move = interleave(
            lambda: seconds_each(lambda: long_work.move_and_flush(batch), batch),
            lambda: seconds_each(lambda: short_work.move_and_flush(batch), batch),
            rounds=rounds,
        )
    behind = f"{long:,} commits : {SHORT:,}"
    cold = Pair(long_cold_s, short_cold_s, long_cold_s / short_cold_s)
    megabytes = os.path.getsize(long_work.journal) / 1e6
    return Section(
        name="long-journal",
        rows=(
            Row(what=f"transition, {behind}", unit="s", **move._asdict(), goal=Goal(1.2)),
            Row(what=f"load, fresh, {behind}", unit="s", **load._asdict(), goal=Goal(1.5)),
            Row(what=f"state again, {behind}", unit="s", **look._asdict(), goal=Goal(1.5)),
            Row(what="load with no snapshot (reads every line)", unit="s", **cold._asdict()),
        ),
        remarks=(
            f"a journal of {megabytes:,.0f} MB whose chain and last state hash were verified first;",
            "load: open the project, find the session, fold it, with the snapshot that the engine left",
        ),
    )


def _load(work: Work, count: int) -> None:
    for _ in range(count):
        fresh = Work.open(work.directory)
        assert fresh.session.state.version == work.session.state.version
        fresh.project.close()


def _look(work: Work, count: int) -> None:
    for _ in range(count):
        work.session.state  # noqa: B018 - the property reads the end of the journal


def grown(directory: str, commits: int) -> tuple[Work, float]:
    """A session with so many commits, left by the engine after a transition, and the seconds its first load took."""
    with Work.start(directory).project as project:
        session = project.session()
        before, name = session.state, session.id
        end = project.store.read(name, START).end
    last = _append_in_bulk(os.path.join(project.place.state, name, "journal.jsonl"), before, end, commits)
    say(f"reading {commits:,} commits from the first line on")
    start = time.perf_counter()
    work = Work.open(directory)
    first_load_s = time.perf_counter() - start
    assert fingerprint(work.session.state) == last.state, "the journal does not fold to the state it recorded"
    work.move_and_flush(1)
    return work, first_load_s


def _append_in_bulk(journal: str, session: Session, end: Cursor, commits: int) -> Commit:
    """Write what the engine would write, hashes and all, without a sync for each line."""
    total, said = end.sum, time.monotonic()
    with open(journal, "ab", buffering=1 << 20) as file:
        for commit in _commits(session, commits):
            line, total = encode_line(commit, total)
            file.write(line)
            if commit.version % _LINES_AT_ONCE == 0 and time.monotonic() - said > _SAY_EVERY_S:
                said = time.monotonic()
                say(f"{commit.version:,} of {commits:,} commits written")
    return commit


def _commits(session: Session, until: int) -> Iterator[Commit]:
    at = session.updated_at
    for version in range(session.version + 1, until + 1):
        at += timedelta(milliseconds=1)
        draft = Commit(version=version, at=at, actor=_WRITER, events=decide(session, next_command(session)), state="")
        session = evolve(session, draft)
        yield msgspec.structs.replace(draft, state=fingerprint(session))
