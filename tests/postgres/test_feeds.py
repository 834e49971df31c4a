"""The feeds of runs in the database: complete while the database answers, bounded always, and never in the way."""

import threading

from detent.store.postgres.feeds import CLOSE_S, KEEP_DAYS, MAX_BATCH, MAX_BYTES, MAX_WAITING
from tests.support.postgres import ROLE, new_project, postgres_store, server
from tests.support.values import journal
from tests.support.waiting import until

SESSION = "WFS-trial"
HEAD = [b"start\n"]


def stores(tmp_path, count, url=None):
    """The same session, as several machines have it."""
    first = postgres_store(tmp_path / "0", url=url)
    first.create(SESSION, journal(1)[0])
    return [first, *(postgres_store(tmp_path / str(n), first.project, url=url) for n in range(1, count))]


def rows(store, what="count(*)"):
    found = f"SELECT {what} FROM detent.feed WHERE session = {store._number(SESSION)}"
    return server().execute(found)[0][0]


def test_a_reader_misses_nothing_of_machines_that_tell_at_once(tmp_path):
    *machines, here = stores(tmp_path, 5)
    reader, seen = here.feed_reader(SESSION), set()

    def tell(number, store):
        writer = store.feed_writer(SESSION)
        for line in range(200):
            writer.write(b"%d-%d\n" % (number, line), starts=False, head=[])
            if line % 20 == 0:
                # Batches, not one.
                writer.send()
        writer.close()

    threads = [threading.Thread(target=tell, args=each) for each in enumerate(machines)]
    for thread in threads:
        thread.start()
    expected = {b"%d-%d" % (number, line) for number in range(4) for line in range(200)}

    def all_seen():
        seen.update(reader.read())
        return seen >= expected

    assert until(all_seen), sorted(expected - seen)[:5]
    for thread in threads:
        thread.join()
    assert seen == expected
    assert rows(here) > 4


def test_a_batch_that_is_sent_twice_is_there_once(tmp_path):
    (store,) = stores(tmp_path, 1)
    writer = store.feed_writer(SESSION)
    writer.write(b"start\n", starts=True, head=HEAD)
    writer._lines = [b"once\n"]
    batch = writer._next()

    for _ in range(2):
        writer._sender.pool.run(lambda connection: writer._insert(store._number(SESSION), batch, connection))

    assert list(store.feed_reader(SESSION).read()).count(b"once") == 1


def test_a_feed_is_bounded_and_keeps_the_heads_of_silent_machines(tmp_path):
    silent, busy, here = stores(tmp_path, 3)
    quiet = silent.feed_writer(SESSION)
    quiet.write(b"start\n", starts=True, head=HEAD)
    quiet.close()
    writer = busy.feed_writer(SESSION)
    for _ in range(12):
        for _ in range(4):
            writer.write(b"x" * (MAX_BATCH // 2) + b"\n", starts=False, head=[b"busy\n"])
        assert writer.send()
    writer.close()

    assert rows(here, "sum(octet_length(lines))") <= MAX_BYTES + 2 * MAX_BATCH
    lines = list(here.feed_reader(SESSION).read())
    assert lines[0] == b"start"
    assert b"busy" in lines


def test_a_run_that_starts_removes_the_feeds_of_long_ago(tmp_path):
    old, here = stores(tmp_path / "a", 1)[0], stores(tmp_path / "b", 1)[0]
    writer = old.feed_writer(SESSION)
    writer.write(b"start\n", starts=True, head=HEAD)
    writer.close()
    age = f"told_at - interval '{KEEP_DAYS + 1} days'"
    server().execute(f"UPDATE detent.feed SET told_at = {age} WHERE session = {old._number(SESSION)}")
    reader = old.feed_reader(SESSION)
    assert list(reader.read())

    other = here.feed_writer(SESSION)
    other.write(b"start\n", starts=True, head=HEAD)
    other.close()

    assert (rows(old), rows(here)) == (0, 2)
    # A reader that was there before does not take the next run for the last one.
    writer = old.feed_writer(SESSION)
    writer.write(b"again\n", starts=True, head=[b"again\n"])
    writer.close()
    assert until(lambda: b"again" in list(reader.read()))


def test_a_database_that_is_away_does_not_hold_a_run_up(tmp_path, own_server):
    url = own_server.url(user=ROLE)
    project = new_project(url)
    here, there = (postgres_store(tmp_path / name, project, url=url) for name in ("here", "there"))
    here.create(SESSION, journal(1)[0])
    writer = here.feed_writer(SESSION)
    writer.write(b"start\n", starts=True, head=HEAD)
    own_server.kill()

    for number in range(3_000):
        writer.write(b"%d %s\n" % (number, b"x" * 1_000), starts=False, head=HEAD)
    # More than may wait: the oldest lines are gone, and the memory is bounded.
    assert sum(map(len, writer._lines)) <= MAX_WAITING

    own_server.start()
    seen: list[bytes] = []
    reader = there.feed_reader(SESSION)
    assert until(lambda: seen.extend(reader.read()) or any(line.startswith(b"2999 ") for line in seen))
    writer.close()


def test_a_run_that_ends_without_a_database_does_not_wait_for_it(tmp_path, own_server):
    url = own_server.url(user=ROLE)
    here = postgres_store(tmp_path / "here", new_project(url), url=url)
    here.create(SESSION, journal(1)[0])
    writer = here.feed_writer(SESSION)
    writer.write(b"start\n", starts=True, head=HEAD)
    own_server.kill()
    writer.write(b"last\n", starts=False, head=HEAD)
    assert until(lambda: writer._sender.is_failing)

    closed = threading.Thread(target=writer.close)
    closed.start()
    closed.join(CLOSE_S * 10)

    assert not closed.is_alive()
    assert writer.has_lines
    own_server.start()
