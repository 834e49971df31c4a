"""Runs under DBOS's own Python: a workflow whose every step is committed to SQLite before the next one begins.

Argument: the database. Each request on stdin runs a new workflow of `count` steps.
"""

import json
import sqlite3
import sys
import time
from contextlib import closing
from importlib.metadata import version

from dbos import DBOS, DBOSConfig


@DBOS.step()
def work(number: int) -> int:
    return number


@DBOS.workflow()
def steps(count: int) -> None:
    for number in range(count):
        work(number)


def main(database: str) -> None:
    config: DBOSConfig = {"name": "bench", "system_database_url": f"sqlite:///{database}", "log_level": "ERROR"}
    DBOS(config=config)
    DBOS.launch()
    made = 0
    for line in sys.stdin:
        count = json.loads(line)["count"]
        begun = time.perf_counter()
        steps(count)
        seconds = time.perf_counter() - begun
        made += count
        answer = {"seconds": seconds, "mode": _mode(database, made), "versions": f"dbos {version('dbos')}"}
        print(json.dumps(answer), flush=True)
    DBOS.destroy()


def _mode(database: str, made: int) -> str:
    """How it commits. DBOS sets neither, so that any connection of this Python has what its own have."""
    with closing(sqlite3.connect(database)) as connection:
        kept = connection.execute("SELECT count(*) FROM operation_outputs").fetchone()[0]
        if kept != made:
            sys.exit(f"{made} steps were made, and {kept} are kept")
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        synchronous = ("OFF", "NORMAL", "FULL", "EXTRA")[connection.execute("PRAGMA synchronous").fetchone()[0]]
    return f"journal_mode={journal}, synchronous={synchronous}"


if __name__ == "__main__":
    main(*sys.argv[1:])
