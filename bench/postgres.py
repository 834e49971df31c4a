"""The store in Postgres: a commit against a bare insert of the same bytes, and machines that write at once."""

import os
from itertools import count
from pathlib import Path
from typing import Any

from bench.measure import Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from bench.workload import ACTOR, SUMMARY, side_by_side
from bench.writers import run_writers
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from tests.support.postgres import new_project, prepare, shared_project
from tests.support.postgres_server import PostgresServer, missing

WRITERS = 8
_SETTINGS = 'gates = "off"\n\n[checkpoint]\ncapture = "off"\n'
_BARE = "CREATE TABLE bare (session bigint, version integer, line bytea, PRIMARY KEY (session, version))"


def postgres(setting: Setting) -> Section:
    if reason := missing():
        return Section(name="postgres", rows=(), remarks=(f"skipped: {reason}",))
    server = PostgresServer(durable=True).start()
    try:
        url = prepare(server)
        server.execute(_BARE)
        return Section(
            name="postgres",
            rows=(_commit(setting, server, url), _append(setting, server, url), _writers(setting, url)),
            remarks=(_growth(setting, server, url), f"{_version(server)}, synced, on loopback"),
        )
    finally:
        server.stop()


def _opened(directory: str, url: str, name: str) -> tuple[Project, SessionHandle]:
    root = shared_project(Path(directory) / name, url=url, settings=_SETTINGS)
    project = open_project(root, actor=ACTOR)
    session = project.start(side_by_side(WRITERS), "Measure commits")
    for key in session.state.ready:
        session.begin(key)
    return project, session


def _commit(setting: Setting, server: PostgresServer, url: str) -> Row:
    """A transition of a session through the engine: read, decide, insert, tell."""
    import psycopg

    say("a commit and a bare insert, in turns")
    project, session = _opened(setting.directory, url, "commit")
    phase, each = session.state.workflow.order[0], setting.pick(200, 50)
    line = _line(server)
    versions = count()

    def ours() -> float:
        def work() -> None:
            for _ in range(each // 2):
                session.finish(SUMMARY, phase=phase)
                session.redo(phase)

        return seconds_each(work, each)

    with psycopg.connect(server.url(), autocommit=True) as connection:
        pair = interleave(ours, lambda: _insert(connection, line, versions, each), rounds=setting.pick(15, 5))
    project.close()
    return Row(what="commit : bare insert of the same bytes", unit="s", **pair._asdict(), goal=Goal(2.0))


def _append(setting: Setting, server: PostgresServer, url: str) -> Row:
    """The store alone: the conditional insert, and the message to listeners."""
    import psycopg

    from detent.store.port import START
    from detent.store.postgres.store import PostgresStore
    from tests.support.values import journal

    say("an append and a bare insert, in turns")
    each, versions, line = setting.pick(200, 50), count(1_000_000), _line(server)
    store = PostgresStore(url, new_project(url), os.path.join(setting.directory, "append"))
    first, second = journal(2)
    store.create("WFS-append", first)
    position = [store.read("WFS-append", START).end]

    def ours() -> float:
        def work() -> None:
            for _ in range(each):
                commit = second.__class__(
                    version=position[0].version + 1, at=second.at, actor=second.actor, events=second.events, state=""
                )
                position[0] = store.append("WFS-append", position[0], commit)

        return seconds_each(work, each)

    with psycopg.connect(server.url(), autocommit=True) as connection:
        pair = interleave(ours, lambda: _insert(connection, line, versions, each), rounds=setting.pick(15, 5))
    store.close()
    return Row(what="append of the store : bare insert", unit="s", **pair._asdict())


def _insert(connection: Any, line: bytes, versions: Any, each: int) -> float:
    def work() -> None:
        for _ in range(each):
            connection.execute("INSERT INTO bare VALUES (1, %s, %s)", (next(versions), line))

    return seconds_each(work, each)


def _line(server: PostgresServer) -> bytes:
    """A line as long as the average commit."""
    rows = server.execute("SELECT line FROM detent.commit ORDER BY version DESC LIMIT 1")
    return bytes(rows[0][0])


def _writers(setting: Setting, url: str) -> Row:
    """Processes with a machine each, on one session, against one that makes as many transitions."""
    say(f"{WRITERS} machines and one, in turns")
    total, runs = setting.pick(1_600, 320), count()

    def throughput(machines: int) -> float:
        number, name = next(runs), new_project(url)
        roots = [
            shared_project(Path(setting.directory) / f"w{number}-{each}", url=url, project=name, settings=_SETTINGS)
            for each in range(machines)
        ]
        with open_project(roots[0], actor=ACTOR) as project:
            session = project.start(side_by_side(WRITERS), "Measure writers")
            for key in session.state.ready:
                session.begin(key)
        return run_writers([str(root) for root in roots], total // machines)

    pair = interleave(lambda: throughput(WRITERS), lambda: throughput(1), rounds=setting.pick(5, 3))
    return Row(what=f"{WRITERS} machines on one session : 1 machine, throughput", unit="/s", **pair._asdict())


def _growth(setting: Setting, server: PostgresServer, url: str) -> str:
    project, session = _opened(setting.directory, url, "growth")
    # Tables grow by many pages at once, so few commits would say nothing.
    phase, commits = session.state.workflow.order[0], 4_000
    size = "SELECT pg_total_relation_size('detent.commit'), pg_current_wal_lsn() - '0/0'::pg_lsn"
    ((table, wal),) = server.execute(size)
    for _ in range(commits // 2):
        session.finish(SUMMARY, phase=phase)
        session.redo(phase)
    ((table_after, wal_after),) = server.execute(size)
    project.close()
    rows, log = (table_after - table) / commits, int(wal_after - wal) / commits
    return f"database growth a commit: {rows:,.0f} bytes of tables, {log:,.0f} bytes of write-ahead log"


def _version(server: PostgresServer) -> str:
    return str(server.execute("SELECT version()")[0][0]).split(" on ")[0].split(" (")[0]
