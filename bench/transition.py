"""A durable transition against the least that durability costs: appending the same bytes and syncing them."""

import os
from collections.abc import Callable
from itertools import cycle, islice

from bench.measure import Setting, counted_calls, interleave, seconds_each
from bench.table import Goal, Row, Section
from bench.workload import Work

#: About as many as the engine makes between two writings of the documents.
BATCH = 1_000


def transition(setting: Setting) -> Section:
    work = Work.start(os.path.join(setting.directory, "transition"))
    kept = Work.start(os.path.join(setting.directory, "kept"), checkpoints=True)
    batch = setting.pick(BATCH, 300)
    with work.project, kept.project:
        append = _raw_append(os.path.join(setting.directory, "raw"), work.journal)
        pair = interleave(
            lambda: seconds_each(lambda: work.move_and_flush(batch), batch),
            lambda: seconds_each(lambda: append(batch), batch),
            rounds=setting.pick(15, 5),
        )
        with_files = interleave(
            lambda: seconds_each(lambda: kept.move_and_flush(batch), batch),
            lambda: seconds_each(lambda: append(batch), batch),
            rounds=setting.pick(7, 3),
        )
        with counted_calls() as calls:
            work.move_and_flush(batch)
    syncs = len(calls.syncs) / batch
    return Section(
        name="transition",
        rows=(
            Row(what="transition : append + fdatasync, same bytes", unit="s", **pair._asdict(), goal=Goal(2.0)),
            Row(what="  with a checkpoint of the files", unit="s", **with_files._asdict()),
            Row(what="syncs per transition : per append", ours=syncs, theirs=1.0, ratio=syncs, goal=Goal(1.1)),
        ),
        remarks=(
            f"finish, begin, redo through SessionHandle; documents and second copy once in {batch:,}, and counted;",
            "the handover of a begin is made when it is read, which nothing here does;",
            "checkpoints of the files are off, but for the row that says so, and in the other rows about transitions",
        ),
    )


def _raw_append(path: str, journal: str) -> Callable[[int], None]:
    """Appends the lines that the engine has written to `journal`, each with its own sync."""
    with open(journal, "rb") as file:
        lines = cycle(file.read().splitlines(keepends=True)[-60:])
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    sync = getattr(os, "fdatasync", os.fsync)

    def append(count: int) -> None:
        for line in islice(lines, count):
            os.write(fd, line)
            sync(fd)

    return append
