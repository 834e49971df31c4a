"""What every store must do, whatever it is made of. A further store joins by a line in `STORES`."""

import os
import threading
import time
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from detent.core.session.events import TailDropped
from detent.core.session.evolve import evolve
from detent.engine.journal import SessionJournal
from detent.errors import Conflict, Corrupt, LockTimeout, NotFound, StoreFailed
from detent.store.files import FileStore
from detent.store.journal_tail import JOURNAL
from detent.store.memory import MemoryStore
from detent.store.port import PROJECT, START, Cursor, SessionFile
from tests.support.postgres import postgres_store
from tests.support.project import is_wanted
from tests.support.values import NOON, actor, journal

SESSION = "WFS-trial"
STORES: dict[str, Any] = {
    "memory": lambda path: MemoryStore(),
    "files": lambda path: FileStore(str(path / ".workflow")),
    **({"postgres": postgres_store} if is_wanted() else {}),
}
#: A document of one machine, and those of kinds that all machines see.
NAMES = ["state.json", ".active-WFS-trial", f"{SESSION}/evidence/digest", f"{SESSION}/.chat/chat-1.md"]


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    opened = STORES[request.param](tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def files(tmp_path):
    opened = FileStore(str(tmp_path))
    yield opened
    opened.close()


def fill(store, count: int) -> list[Cursor]:
    """`count` commits; the position behind each, and before it the start."""
    first, *rest = journal(count)
    cursors = [START, store.create(SESSION, first)]
    for commit in rest:
        cursors.append(store.append(SESSION, cursors[-1], commit))
    return cursors


def journal_file(store: FileStore) -> Path:
    return Path(store.root) / SESSION / JOURNAL


# Sessions


def test_a_store_without_sessions_has_none(store):
    assert store.sessions() == []


def test_a_session_exists_from_its_first_commit(store):
    store.create(SESSION, journal(1)[0])

    assert store.sessions() == [SESSION]
    assert store.read(SESSION, START).commits == journal(1)


def test_sessions_are_told_in_order(store):
    for name in ("WFS-b", "WFS-c", "WFS-a"):
        store.create(name, journal(1)[0])

    assert store.sessions() == ["WFS-a", "WFS-b", "WFS-c"]


def test_creating_a_session_that_exists_is_a_conflict_and_leaves_it_alone(store):
    fill(store, 3)

    with pytest.raises(Conflict, match=SESSION):
        store.create(SESSION, journal(1)[0])

    assert store.read(SESSION, START).commits == journal(3)


def test_an_imported_session_comes_with_all_of_its_commits_and_files(store, tmp_path):
    files = [(SessionFile("run.sh", executable=True), b"#!/bin/sh\n"), (SessionFile("notes/a.md"), b"kept")]
    first, *rest = journal(4)

    end = store.create(SESSION, first, rest, files)

    assert store.read(SESSION, START).commits == journal(4)
    assert store.read(SESSION, START).end == end
    assert store.session_files(SESSION) == sorted(file for file, _ in files)
    assert store.get(f"{SESSION}/notes/a.md") == b"kept"
    store.append(SESSION, end, journal(5)[4])
    assert store.read(SESSION, START).commits == journal(5)


def test_a_session_whose_import_fails_does_not_exist(store):
    def broken():
        yield SessionFile("whole"), b"1"
        raise Corrupt("the bundle changed")

    with pytest.raises(Corrupt):
        store.create(SESSION, journal(1)[0], (), broken())

    assert store.sessions() == []
    assert store.session_files(SESSION) == []
    store.create(SESSION, journal(1)[0])


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.read("WFS-nowhere", START),
        lambda store: store.append("WFS-nowhere", START, journal(1)[0]),
        lambda store: store.lock("WFS-nowhere").__enter__(),
    ],
    ids=["read", "append", "lock"],
)
def test_a_session_that_does_not_exist_is_not_found(store, use):
    with pytest.raises(NotFound, match="WFS-nowhere"):
        use(store)

    assert store.sessions() == []


# Reading and appending


def test_reading_from_any_position_gives_what_stands_behind_it(store):
    commits, cursors = journal(7), fill(store, 7)

    for cursor in cursors:
        tail = store.read(SESSION, cursor)

        assert tail.commits == commits[cursor.version :]
        assert (tail.end, tail.torn, tail.more) == (cursors[-1], 0, False)


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_reading_in_pieces_gives_every_commit_once(store, limit):
    fill(store, 7)
    cursor, more, found = START, True, []

    while more:
        commits, cursor, _, more = store.read(SESSION, cursor, limit=limit)
        assert len(commits) <= limit
        found += commits

    assert found == journal(7)


def test_a_limit_of_nothing_only_checks_the_position(store):
    cursors = fill(store, 2)

    assert store.read(SESSION, cursors[1], limit=0).commits == []
    assert store.read(SESSION, cursors[1], limit=0).end == cursors[1]


def test_a_journal_larger_than_one_read_is_read_whole(store):
    long = msgspec.structs.replace(journal(1)[0], actor=actor("x" * 700_000))
    cursor = store.create(SESSION, long)
    for version in (2, 3, 4):
        cursor = store.append(SESSION, cursor, msgspec.structs.replace(long, version=version))

    assert [commit.version for commit in store.read(SESSION, START).commits] == [1, 2, 3, 4]
    assert store.read(SESSION, START, limit=3).end.version == 3


def test_append_at_a_stale_position_is_a_conflict_and_writes_nothing(store):
    cursors = fill(store, 4)

    for stale in cursors[:-1]:
        with pytest.raises(Conflict, match=SESSION):
            store.append(SESSION, stale, journal(5)[stale.version])

    tail = store.read(SESSION, START)
    assert tail.commits == journal(4)
    assert (tail.end, tail.torn) == (cursors[-1], 0)


@pytest.mark.parametrize(
    "move",
    [
        lambda cursor: cursor._replace(sum="f" * 32),
        lambda cursor: cursor._replace(version=cursor.version + 5, hint=cursor.hint + 100_000, sum="f" * 32),
    ],
    ids=["another sum", "behind the end"],
)
def test_a_position_that_is_not_of_this_journal_is_corruption(store, move):
    cursors = fill(store, 3)

    with pytest.raises(Corrupt, match=SESSION):
        store.read(SESSION, move(cursors[2]))


def test_a_commit_comes_back_as_it_was_given(store):
    odd = msgspec.structs.replace(
        journal(1)[0], actor=actor('line\nbreak "quote" \\ \u2028 ünï 🙂 ,"sum":"' + "0" * 32)
    )

    store.create(SESSION, odd)

    assert store.read(SESSION, START).commits == [odd]


def test_the_chain_is_the_same_in_every_store(store, tmp_path):
    other = FileStore(str(tmp_path / "other"))

    assert [cursor[:2] for cursor in fill(store, 5)] == [cursor[:2] for cursor in fill(other, 5)]

    other.close()


# Locks


@pytest.mark.parametrize("name", [PROJECT, SESSION])
def test_a_lock_is_held_by_one_thread_at_a_time(store, name):
    fill(store, 1)
    store.put("ready", b"")
    inside, most, rounds = [0], [0], [0]

    def work():
        for _ in range(30):
            with store.lock(name):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                seen = rounds[0]
                time.sleep(0.0002)
                rounds[0] = seen + 1
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (most, rounds) == ([1], [120])


@pytest.mark.parametrize("name", [PROJECT, SESSION])
def test_waiting_for_a_lock_ends_and_says_what_is_locked(store, name):
    fill(store, 1)
    store.put("ready", b"")
    failures: list[str] = []

    def wait():
        try:
            with store.lock(name, wait_s=0.05):
                failures.append("entered")
        except LockTimeout as timeout:
            failures.append(timeout.message)

    with store.lock(name):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join()

    (message,) = failures
    assert (name or "the project") in message
    with store.lock(name, wait_s=0):
        pass


def test_a_lock_is_free_again_after_an_error(store):
    fill(store, 1)

    with pytest.raises(ValueError, match="inside"), store.lock(SESSION):
        raise ValueError("inside")

    with store.lock(SESSION, wait_s=0):
        pass


def test_locks_of_sessions_do_not_hinder_each_other(store):
    fill(store, 1)
    store.create("WFS-other", journal(1)[0])

    with store.lock(PROJECT), store.lock(SESSION, wait_s=0), store.lock("WFS-other", wait_s=0):
        pass


# Documents


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_there_as_it_was_put_until_it_is_deleted(store, name):
    assert store.get(name) is None

    store.put(name, b"one")
    store.put(name, b"")
    assert store.get(name) == b""

    store.put(name, b"\0\xff\n")
    assert store.get(name) == b"\0\xff\n"

    store.delete(name)
    store.delete(name)
    assert store.get(name) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_document_is_swapped_only_by_a_caller_that_knows_its_content(store, name):
    assert not store.swap(name, b"one", b"two")
    assert store.swap(name, None, b"one")
    assert not store.swap(name, None, b"two")
    assert not store.swap(name, b"other", None)
    assert store.swap(name, b"one", b"two")
    assert store.get(name) == b"two"
    assert store.swap(name, b"two", None)
    assert store.get(name) is None


def test_the_position_of_a_session_changes_with_each_of_its_commits(store):
    assert store.positions() == {}
    end = fill(store, 2)[-1]
    store.create("WFS-other", journal(1)[0])
    before = store.positions()

    store.append(SESSION, end, journal(3)[2])

    after = store.positions()
    assert after["WFS-other"] == before["WFS-other"]
    assert after[SESSION] > before[SESSION]


def test_a_commit_that_follows_is_news(store):
    end = fill(store, 2)[-1]
    store.append(SESSION, end, journal(3)[2])

    assert store.may_have_news(SESSION, 2)


def test_a_session_stands_with_the_document_beside_it_or_not_at_all(store):
    store.create(SESSION, journal(1)[0], beside=[(".active-WFS-trial", b"1")])
    with pytest.raises(Conflict):
        store.create(SESSION, journal(1)[0], beside=[(".active-WFS-other", b"1")])

    assert store.names(".active-") == [".active-WFS-trial"]


def test_a_session_is_not_created_if_another_was_created_since_its_id_was_chosen(store):
    store.create(SESSION, journal(1)[0], seen=0)

    with pytest.raises(Conflict):
        store.create("WFS-other", journal(1)[0], beside=[(".active-WFS-other", b"2")], seen=0)

    assert store.sessions() == [SESSION]
    assert store.names(".active-") == []
    store.create("WFS-other", journal(1)[0], seen=1)


def test_a_document_in_a_directory_needs_no_preparation(store):
    store.put("one/two/three.json", b"deep")

    assert store.get("one/two/three.json") == b"deep"
    assert store.get("one/two/three.json/four") is None


@pytest.mark.parametrize("name", [".process/runner.json", ".chat/note.md", "workflow-session.json"])
def test_a_document_is_found_in_every_session_that_has_one(store, name):
    for session in ("WFS-b", "WFS-a", "WFS-without"):
        store.create(session, journal(1)[0])
    for session in ("WFS-b", "WFS-a", "WFS-no-session"):
        store.put(f"{session}/{name}", session.encode())

    assert list(store.of_sessions(name).items()) == [("WFS-a", b"WFS-a"), ("WFS-b", b"WFS-b")]
    assert store.of_sessions("other.json") == {}


def test_names_are_those_with_the_prefix_in_order(store):
    for name in (".active-b", ".active-a", ".active", "state.json", "dir/x-2", "dir/x-1", "dir/y"):
        store.put(name, b"")

    assert store.names(".active-") == [".active-a", ".active-b"]
    assert store.names("dir/x-") == ["dir/x-1", "dir/x-2"]
    assert store.names("nowhere/x") == []


def test_names_are_of_one_level(store):
    for name in ("a/x", "a/deep/y", "b"):
        store.put(name, b"")

    assert "a/deep/y" not in store.names("a/")
    assert "a/x" in store.names("a/")
    assert "a/x" not in store.names("")


def test_a_durable_document_is_one_like_any_other(store):
    store.put("new/intent.json", b"one", durable=True)
    store.put("new/intent.json", b"two", durable=True)

    assert store.get("new/intent.json") == b"two"
    assert store.names("new/") == ["new/intent.json"]


def test_all_documents_have_changed_since_the_beginning_and_those_written_later_since_a_mark(store):
    store.put("d/a", b"1")
    store.put("d/b", b"1")
    store.put("e", b"1")
    names, mark = store.changed("d/")
    assert names == ["d/a", "d/b"]
    time.sleep(0.05)
    mark = store.changed("d/", mark).mark
    time.sleep(0.05)

    assert store.changed("d/", mark).names == []
    store.put("d/b", b"2")
    store.put("d/c", b"2")
    store.delete("d/a")

    assert store.changed("d/", mark).names == ["d/b", "d/c"]
    assert store.changed("nowhere/").names == []


def test_a_document_written_right_after_a_mark_has_changed_since(store):
    for number in range(200):
        mark = store.changed("d/").mark
        store.put("d/a", b"%d" % number)
        assert store.changed("d/", mark).names == ["d/a"]


def test_a_document_written_later_has_a_higher_number(store):
    assert store.written("a") == 0
    store.put("b", b"")
    time.sleep(0.02)
    store.put("a", b"")

    assert store.written("a") > store.written("b") > 0
    store.delete("a")
    assert store.written("a") == 0


def test_the_files_of_a_session_are_all_its_documents_at_any_depth(store):
    fill(store, 2)
    for name in ("state.json", f"{SESSION}/a.json", f"{SESSION}/.task/deep/b", f"{SESSION}-2/c"):
        store.put(name, b"")

    assert store.session_files(SESSION) == [SessionFile(".task/deep/b"), SessionFile("a.json")]
    assert store.session_files("WFS-nowhere") == []


def test_a_directory_is_on_this_machine_and_outlasts_closing(store):
    path = Path(store.directory("checkpoints/artifacts"))
    path.mkdir(parents=True)
    (path / "pack").write_bytes(b"bulk")
    store.close()

    assert (Path(store.directory("checkpoints")) / "artifacts" / "pack").read_bytes() == b"bulk"
    assert store.directory("checkpoints") != store.directory("other")


def test_no_two_stores_have_the_same_location(store):
    others = [MemoryStore(), FileStore("/nowhere/.workflow")]

    assert len({each.location("") for each in (store, *others)}) == 3
    assert store.location("state.json").startswith(store.location(""))
    assert store.location("state.json").endswith("/state.json")


def test_a_store_that_was_opened_again_has_the_same_content_and_is_closed_alone(store):
    end = fill(store, 2)[-1]
    store.put("state.json", b"one")
    other = store.reopen()
    assert (other.sessions(), other.get("state.json")) == ([SESSION], b"one")

    with store.lock(SESSION):
        with pytest.raises(LockTimeout):
            other.lock(SESSION, wait_s=0.01).__enter__()
        other.close()
        store.append(SESSION, end, journal(3)[2])

    assert other.read(SESSION, START).commits == journal(3)
    other.close()


def test_a_store_can_be_used_after_it_was_closed(store):
    cursor = fill(store, 2)[-1]

    store.close()

    store.append(SESSION, cursor, journal(3)[2])
    assert store.read(SESSION, START).commits == journal(3)


def test_the_directories_of_a_memory_store_go_with_it():
    store = MemoryStore()
    path = Path(store.directory("checkpoints"))
    path.mkdir(parents=True)

    del store

    assert not path.parent.exists()


def test_documents_of_a_memory_store_are_written_by_many_threads_while_they_are_listed():
    store, failures = MemoryStore(), []

    def work(own):
        try:
            for number in range(500):
                store.put(f"d/{own}-{number}", b"")
                store.names("d/")
        except RuntimeError as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(own,)) for own in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    assert len(store.names("d/")) == 1500


# What only files can suffer


def test_links_in_the_directory_of_a_session_are_no_documents(files):
    fill(files, 1)
    (Path(files.root) / SESSION / "elsewhere").symlink_to("/etc")
    (Path(files.root) / SESSION / "passwd").symlink_to("/etc/passwd")
    (Path(files.root) / SESSION / "half.tmp").write_bytes(b"")

    assert [(file.name, file.is_document) for file in files.session_files(SESSION)] == [
        ("elsewhere", False),
        ("passwd", False),
    ]


def test_a_file_that_was_copied_with_its_old_time_has_changed(files):
    files.put("d/a", b"1")
    time.sleep(0.05)
    mark = files.changed("d/").mark
    path = Path(files.root) / "d" / "a"

    os.utime(path, (1_000_000, 1_000_000))

    assert files.changed("d/", mark).names == ["d/a"]


@pytest.mark.parametrize("torn", [b"{", b'{"version":4,"at":"2026', b"\0" * 700, b"garbage " * 10_000])
def test_an_unfinished_write_is_told_and_not_read(files, torn):
    end = fill(files, 3)[-1]
    with journal_file(files).open("ab") as file:
        file.write(torn)

    tail = files.read(SESSION, START)

    assert tail.commits == journal(3)
    assert (tail.end, tail.torn) == (end, len(torn))


def test_every_part_of_the_last_line_is_an_unfinished_write(files):
    cursors = fill(files, 3)
    whole = journal_file(files).read_bytes()

    for size in range(cursors[2].hint, len(whole) - 1):
        journal_file(files).write_bytes(whole[:size])
        tail = files.read(SESSION, START)

        assert (tail.end, tail.torn) == (cursors[2], size - cursors[2].hint)


def test_a_last_line_without_its_newline_was_acknowledged(files):
    cursors = fill(files, 3)
    whole = journal_file(files).read_bytes()
    journal_file(files).write_bytes(whole[:-1])

    assert files.read(SESSION, START)[1:] == (cursors[3], 0, False)
    assert files.read(SESSION, cursors[3]) == ([], cursors[3], 0, False)

    end = files.append(SESSION, cursors[3], journal(4)[3])

    assert journal_file(files).read_bytes()[: len(whole)] == whole
    assert files.read(SESSION, START).end == end == Cursor(4, end.sum, journal_file(files).stat().st_size)


def test_an_unfinished_write_is_cut_off_by_the_next_append(files):
    end = fill(files, 3)[-1]
    with journal_file(files).open("ab") as file:
        file.write(b'{"version":4,"at"' * 100)

    files.append(SESSION, end, journal(4)[3])

    assert files.read(SESSION, START).commits == journal(4)
    assert files.read(SESSION, START).torn == 0


def test_an_unfinished_write_that_was_cut_off_is_recorded(files):
    fill(files, 3)
    with journal_file(files).open("ab") as file:
        file.write(b"torn!")

    commit = SessionJournal(files, SESSION).commit(lambda session: (), actor=actor(), now=NOON).commit

    assert commit.events == (TailDropped(bytes=5),)
    assert files.read(SESSION, START).commits[-1] == commit


def test_a_damaged_line_is_told_by_its_number_and_never_skipped(files):
    cursors = fill(files, 5)
    whole = journal_file(files).read_bytes()

    for number in range(1, 6):
        place = cursors[number - 1].hint + 20
        journal_file(files).write_bytes(whole[:place] + b"~" + whole[place + 1 :])

        with pytest.raises(Corrupt, match=rf"line {number} of the journal"):
            files.read(SESSION, START)
        assert len(files.read(SESSION, START, limit=number - 1).commits) == number - 1


def test_a_line_that_is_removed_doubled_or_moved_is_noticed(files):
    fill(files, 5)
    lines = journal_file(files).read_bytes().splitlines(keepends=True)

    for changed in (
        [*lines[:1], *lines[2:]],
        [*lines[:2], lines[1], *lines[2:]],
        [lines[0], lines[2], lines[1], *lines[3:]],
        lines[1:],
        [*lines[:2], b"\n", *lines[2:]],
    ):
        journal_file(files).write_bytes(b"".join(changed))
        with pytest.raises(Corrupt, match="line"):
            files.read(SESSION, START)


def test_a_line_of_another_journal_in_the_same_place_is_noticed(files, tmp_path):
    fill(files, 4)
    other = FileStore(str(tmp_path / "other"))
    cursor = other.create(SESSION, journal(1)[0])
    for commit in journal(4)[1:]:
        cursor = other.append(SESSION, cursor, msgspec.structs.replace(commit, actor=actor("somebody else")))
    ours, theirs = (journal_file(store).read_bytes().splitlines(keepends=True) for store in (files, other))
    other.close()

    journal_file(files).write_bytes(b"".join([*ours[:1], theirs[1], *ours[2:]]))

    with pytest.raises(Corrupt, match=r"line 3 of the journal of \S+ is damaged"):
        files.read(SESSION, START)


def test_a_flipped_bit_is_noticed_wherever_it_is(files):
    cursors = fill(files, 3)
    whole = journal_file(files).read_bytes()
    unnoticed = []

    with journal_file(files).open("r+b", buffering=0) as file:
        for place, bit in product(range(len(whole) - 1), range(8)):
            os.pwrite(file.fileno(), bytes([whole[place] ^ 1 << bit]), place)
            try:
                files.read(SESSION, START)
                unnoticed.append((place, bit))
            except Corrupt:
                pass
            os.pwrite(file.fileno(), whole[place : place + 1], place)

        assert unnoticed == []

        # Without its newline the last line looks like a write that never finished.
        os.pwrite(file.fileno(), b"\x0b", len(whole) - 1)
        tail = files.read(SESSION, START)
        assert (tail.end, tail.torn) == (cursors[2], len(whole) - cursors[2].hint)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), rubbish=st.binary(min_size=1, max_size=40))
def test_rubbish_written_over_any_place_is_noticed(files, place, rubbish):
    if not files.sessions():
        fill(files, 3)
    whole = journal_file(files).read_bytes()
    start = int(place * (len(whole) - len(rubbish)))
    changed = whole[:start] + rubbish + whole[start + len(rubbish) :]
    assume(changed != whole and changed[-1:] == b"\n")
    journal_file(files).write_bytes(changed)

    try:
        with pytest.raises(Corrupt):
            files.read(SESSION, START)
    finally:
        journal_file(files).write_bytes(whole)


def test_a_line_that_only_a_later_version_understands_is_not_called_damaged(files):
    from detent.store import line

    end = fill(files, 2)[-1]
    body = b'{"version":3,"at":"2026-02-09T12:00:00Z","by":"x","events":[{"type":"phase_teleported"}],"state":""'
    total = line._sum(end.sum, body)
    with journal_file(files).open("ab") as file:
        file.write(body + b',"sum":"' + total.encode() + b'"}\n')

    with pytest.raises(Corrupt, match=r"line 3 of the journal of \S+ is undamaged but cannot be decoded") as refusal:
        files.read(SESSION, START)

    assert "upgrade" in refusal.value.way_out


def test_a_journal_that_was_cut_while_it_was_open_is_noticed_by_reading_and_by_appending(files):
    cursors = fill(files, 5)
    with journal_file(files).open("r+b") as file:
        file.truncate(cursors[3].hint)

    with pytest.raises(Corrupt, match="cut or replaced"):
        files.read(SESSION, cursors[5])
    with pytest.raises(Corrupt, match="cut or replaced"):
        files.append(SESSION, cursors[5], journal(6)[5])
    assert files.read(SESSION, START).commits == journal(3)


def test_a_journal_with_another_line_in_the_place_of_the_open_one_is_noticed_by_every_reading(files):
    """Several threads share a store: the second one must not take it for the same journal."""
    end, path = fill(files, 3)[-1], journal_file(files)
    files.read(SESSION, end)
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"2026", b"2027", 1))
    other.replace(path)

    for _ in range(3):
        with pytest.raises(Corrupt):
            files.read(SESSION, end)


def test_a_session_directory_that_was_replaced_is_locked_anew(files):
    fill(files, 2)
    with files.lock(SESSION):
        pass
    journal_file(files).unlink()
    journal_file(files).parent.rmdir()
    files.create(SESSION, journal(1)[0])

    with files.lock(SESSION):
        assert len(files.read(SESSION, START).commits) == 1


def test_a_file_that_replaced_the_journal_is_read_from_its_start_whatever_its_end(files):
    end = fill(files, 4)[-1]
    whole = journal_file(files).read_bytes()
    other = journal_file(files).with_name("other")
    other.write_bytes(whole[:40] + b"~" + whole[41:])
    other.replace(journal_file(files))

    with files.lock(SESSION), pytest.raises(Corrupt, match="line 1 of the journal"):
        files.read(SESSION, end)


def test_an_unfinished_creation_is_no_session_and_does_not_hinder_the_next(files):
    litter = Path(files.root) / f".new-{SESSION}"
    litter.mkdir()
    (litter / JOURNAL).write_bytes(b'{"half')

    assert files.sessions() == []
    files.create(SESSION, journal(1)[0])

    assert files.sessions() == [SESSION]
    assert not litter.exists()


def test_a_directory_without_a_journal_is_no_session_and_is_not_taken_over(files):
    mine = Path(files.root) / SESSION
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")

    with pytest.raises(Conflict):
        files.create(SESSION, journal(1)[0])

    assert files.sessions() == []
    assert (mine / "notes.txt").read_text() == "mine"


def test_another_process_that_holds_the_lock_is_named(files):
    fill(files, 1)
    other = FileStore(files.root)

    with other.lock(SESSION), pytest.raises(LockTimeout, match=r"locked by (process \d+|another process)"):
        files.lock(SESSION, wait_s=0.01).__enter__()

    other.close()


def test_what_is_in_the_place_of_a_document_is_kept_when_it_is_written(files):
    (Path(files.root) / "state.json").mkdir()

    assert files.get("state.json") is None
    files.put("state.json", b"{}")

    assert files.get("state.json") == b"{}"
    assert files.notices == ["state.json could not be read and is kept as state.json.set-aside-1"]
    assert (Path(files.root) / "state.json.set-aside-1").is_dir()


def test_what_is_left_of_an_unfinished_write_is_no_document(files):
    (Path(files.root) / "state.json.rejected-1.tmp").write_text("half")

    assert files.names("state.json") == []


def test_a_failed_write_of_a_document_leaves_the_old_one(files, monkeypatch):
    files.put("state.json", b"old")

    def full(fd, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("os.write", full)
        with pytest.raises(StoreFailed, match="the disk is full"):
            files.put("state.json", b"new")

    assert files.get("state.json") == b"old"


# Feeds


def read_feed(reader, count: int) -> list[bytes]:
    """At least `count` lines, each once; they may be late, and come twice."""
    seen: dict[bytes, None] = {}
    limit = time.monotonic() + 30
    while len(seen) < count and time.monotonic() < limit:
        seen |= dict.fromkeys(reader.read())
        time.sleep(0.01)
    return list(seen)


def test_the_lines_of_a_feed_are_read_in_order_while_they_are_written(store):
    fill(store, 1)
    other = store.reopen()
    writer, reader = store.feed_writer(SESSION), other.feed_reader(SESSION)
    assert list(reader.read()) == []

    writer.write(b"start\n", starts=True, head=[b"start\n"])
    assert read_feed(reader, 1) == [b"start"]
    for number in range(300):
        writer.write(b"%d\n" % number, starts=False, head=[b"start\n"])

    assert read_feed(reader, 300) == [b"%d" % number for number in range(300)]
    writer.close()
    reader.close()
    other.close()


def test_a_run_begins_the_feed_anew_and_a_reader_of_the_last_one_goes_on(store):
    fill(store, 1)
    first = store.feed_writer(SESSION)
    first.write(b"old\n", starts=True, head=[b"old\n"])
    first.close()
    reader = store.feed_reader(SESSION)
    assert read_feed(reader, 1) == [b"old"]

    second = store.feed_writer(SESSION)
    second.write(b"new\n", starts=True, head=[b"new\n"])
    second.close()

    assert read_feed(reader, 1) == [b"new"]
    late = store.feed_reader(SESSION)
    assert set(read_feed(late, 1)) == {b"new"}
    reader.close()
    late.close()


def test_a_feed_that_is_too_long_is_cut_and_keeps_what_a_later_reader_needs(store):
    fill(store, 1)
    writer = store.feed_writer(SESSION)
    writer.write(b"start\n", starts=True, head=[b"start\n"])
    long = b"x" * 100_000
    for number in range(60):
        writer.write(b"%d %s\n" % (number, long), starts=False, head=[b"start\n"])
    writer.close()
    reader = store.feed_reader(SESSION)

    lines = read_feed(reader, 2)

    assert lines[0] == b"start"
    assert lines[-1].startswith(b"59 ")
    assert sum(map(len, lines)) <= 4 * 1024 * 1024
    reader.close()


def test_a_feed_of_a_session_that_has_none_is_empty(store):
    fill(store, 1)
    reader = store.feed_reader(SESSION)

    assert list(reader.read()) == []
    reader.close()


def test_every_commit_that_a_store_returns_can_be_folded(store):
    fill(store, 6)
    session = None

    for commit in store.read(SESSION, START).commits:
        session = evolve(session, commit)

    assert session.version == 6
