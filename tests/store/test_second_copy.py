"""Second copies of journals outside the project: what they cost, what they notice, and who they belong to."""

import os
import shutil
import stat

import pytest

from detent.errors import Corrupt
from detent.store import second_copy
from detent.store.files import FileStore
from detent.store.port import PROJECT, START
from detent.store.second_copy import Registration, SecondCopies
from detent.store.state_home import lost_sessions, state_home
from tests.support.faults import Counter, watching
from tests.support.values import journal

SESSION = "WFS-trial"


class Place:
    def __init__(self, directory):
        self.home, self.root = directory / "home" / "detent", directory / "project"
        self.root.mkdir()
        (self.root / "old.txt").write_text("older than any commit")

    def open(self, root=None, home=None):
        root = str(root or self.root)
        registration = Registration(str(home or self.home), root, f"{root}/.workflow")
        return FileStore(f"{root}/.workflow", SecondCopies(registration))

    @property
    def journal(self):
        return self.root / ".workflow" / SESSION / "journal.jsonl"

    @property
    def copy(self):
        return next(self.home.glob(f"*/journals/{SESSION}.jsonl"))

    def fill(self, count):
        store = self.open()
        first, *rest = journal(count)
        end = store.create(SESSION, first)
        for commit in rest:
            end = store.append(SESSION, end, commit)
        return store, end


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


def test_the_copy_holds_the_same_bytes_and_is_private(place):
    store, _ = place.fill(3)
    store.close()

    assert place.copy.read_bytes() == place.journal.read_bytes()
    assert stat.S_IMODE(place.copy.stat().st_mode) == 0o600
    for directory in (place.home, place.home / "index", place.copy.parent, place.copy.parent.parent):
        assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_commit_writes_and_syncs_the_journal_alone_and_one_write_brings_the_copy_up(place):
    store, end = place.fill(2)
    store.back_up(SESSION)
    counter = Counter()

    with watching(counter):
        for version in range(3, 9):
            end = store.append(SESSION, end, journal(version)[-1])
    assert counter.calls == ["write", "fdatasync"] * 6
    counter = Counter()
    with watching(counter):
        store.back_up(SESSION)
        store.back_up(SESSION)

    assert counter.calls == ["write"]
    assert place.copy.read_bytes() == place.journal.read_bytes()


@pytest.mark.parametrize(("most", "longest"), [(2, 1 << 30), (1 << 30, 1)])
def test_few_and_short_lines_wait_in_memory(place, monkeypatch, most, longest):
    store, end = place.fill(2)
    store.back_up(SESSION)
    monkeypatch.setattr(second_copy, "MAX_WAITING", most)
    monkeypatch.setattr(second_copy, "MAX_WAITING_LINE", longest)

    for version in (3, 4):
        end = store.append(SESSION, end, journal(version)[-1])

    assert place.copy.read_bytes() == place.journal.read_bytes()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2])),
        lambda path: path.write_bytes(path.read_bytes() + b"x\n"),
        lambda path: path.unlink(),
        lambda path: shutil.rmtree(path.parent),
    ],
)
def test_lines_that_wait_reach_the_copy_whatever_became_of_the_journal(place, damage):
    store, end = place.fill(2)
    store.back_up(SESSION)
    for version in (3, 4):
        end = store.append(SESSION, end, journal(version)[-1])
    whole = place.journal.read_bytes()
    damage(place.journal)

    store.close()

    assert place.copy.read_bytes() == whole


def test_a_kill_before_the_copy_is_written_leaves_it_behind_and_the_next_command_catches_up(place):
    store, end = place.fill(2)
    store.back_up(SESSION)
    store.append(SESSION, end, journal(3)[2])
    before = place.copy.read_bytes()
    del store

    again = place.open()
    end = again.read(SESSION, START).end
    assert (end.version, place.copy.read_bytes()) == (3, before)
    again.back_up(SESSION)
    assert place.copy.read_bytes() == place.journal.read_bytes()
    again.append(SESSION, end, journal(4)[3])
    again.close()

    assert place.copy.read_bytes() == place.journal.read_bytes()


@pytest.mark.parametrize("first_closed", [0, 1])
def test_commits_of_two_processes_follow_one_another_in_the_copy(place, first_closed):
    first, end = place.fill(1)
    second = place.open()
    for version in range(2, 8):
        store = first if version % 2 else second
        end = store.append(SESSION, end, journal(version)[-1])

    stores = (first, second) if first_closed == 0 else (second, first)
    stores[0].close()
    assert place.copy.read_bytes() == place.journal.read_bytes()
    stores[1].close()
    assert place.copy.read_bytes() == place.journal.read_bytes()


def test_what_another_process_added_to_the_copy_is_not_added_again(place):
    first, end = place.fill(1)
    first.back_up(SESSION)
    end = first.append(SESSION, end, journal(2)[1])
    second = place.open()
    end = second.append(SESSION, second.read(SESSION, START).end, journal(3)[2])
    second.close()
    first.close()

    assert place.copy.read_bytes() == place.journal.read_bytes()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2])), "ends at commit 2"),
        (lambda path: path.unlink(), "is gone"),
        (lambda path: shutil.rmtree(path.parent), "is gone"),
        (lambda path: path.write_bytes(b""), "ends at commit 0"),
    ],
)
def test_a_journal_that_lost_commits_is_refused_before_anything_is_made_of_it(place, damage, message):
    store, _ = place.fill(4)
    store.close()
    damage(place.journal)
    again = place.open()

    assert again.sessions() == [SESSION]
    assert again.repairs.lost() == [SESSION]
    with pytest.raises(Corrupt, match=message) as refused:
        again.read(SESSION, START)
    assert refused.value.way_out.startswith(f"detent doctor --restore {SESSION}")


def test_a_journal_that_was_rewritten_with_sums_that_verify_is_refused(place, tmp_path):
    store, _ = place.fill(4)
    store.close()
    other = FileStore(str(tmp_path / "other"))
    first, *rest = journal(3)
    end = other.create(SESSION, first)
    for commit in rest:
        end = other.append(SESSION, end, commit)
    altered = (tmp_path / "other" / SESSION / "journal.jsonl").read_bytes().splitlines(keepends=True)
    place.journal.write_bytes(b"".join([*altered, *rewritten(altered)]))

    with pytest.raises(Corrupt, match="was rewritten: behind commit 3"):
        place.open().read(SESSION, START)


def rewritten(lines):
    """Two more commits, of which the second copy knows nothing."""
    import msgspec

    from detent.store.line import encode_line

    total = lines[-1][-35:-3].decode()
    for commit in journal(5)[3:]:
        line, total = encode_line(msgspec.structs.replace(commit, state="f" * 16), total)
        yield line


def test_a_journal_that_is_ahead_of_its_copy_is_fine_and_the_next_commit_catches_up(place):
    store, end = place.fill(3)
    store.close()
    place.copy.write_bytes(b"".join(place.journal.read_bytes().splitlines(keepends=True)[:1]))
    again = place.open()

    assert again.read(SESSION, START).end == end
    again.append(SESSION, end, journal(4)[3])
    again.close()

    assert place.copy.read_bytes() == place.journal.read_bytes()


@pytest.mark.parametrize("is_set", [True, False])
def test_a_state_directory_that_cannot_be_written_stops_no_commit(place, is_set):
    home = f"{place.root}/old.txt/state" if is_set else ""
    registration = Registration(home, str(place.root), str(place.root / ".workflow"))
    store = FileStore(str(place.root / ".workflow"), SecondCopies(registration))
    first, second = journal(2)

    store.append(SESSION, store.create(SESSION, first), second)
    store.back_up(SESSION)

    assert len(store.read(SESSION, START).commits) == 2
    assert store.repairs.problem
    outside = place.open()
    assert outside.repairs.catch_up() == ""
    assert place.copy.read_bytes() == place.journal.read_bytes()


def test_a_failing_write_of_the_copy_stops_no_commit_and_is_made_up_for(place):
    store, end = place.fill(2)
    store.back_up(SESSION)
    path = place.copy
    size = path.stat().st_size

    def full(name, args):
        if name == "write" and os.readlink(f"/proc/self/fd/{args[0]}") == str(path):
            raise OSError(28, "no space")

    with watching(Counter(full, 1, lasting=True)):
        end = store.append(SESSION, end, journal(3)[2])
        store.back_up(SESSION)
    assert path.stat().st_size == size

    store.append(SESSION, end, journal(4)[3])
    store.back_up(SESSION)

    assert path.read_bytes() == place.journal.read_bytes()


def test_a_torn_end_of_the_copy_is_no_finding(place):
    store, end = place.fill(3)
    store.close()
    with place.copy.open("ab") as file:
        file.write(b'{"version":4,"at":')
    again = place.open()

    again.append(SESSION, end, journal(4)[3])
    again.close()

    assert place.copy.read_bytes() == place.journal.read_bytes()


def test_damage_in_the_copy_never_cuts_off_what_the_journal_lacks(place):
    store, _ = place.fill(6)
    store.close()
    lines = place.journal.read_bytes().splitlines(keepends=True)
    place.copy.write_bytes(b"".join([*lines[:1], b"x" + lines[1][1:], *lines[2:]]))
    place.journal.write_bytes(b"".join(lines[:4]))
    before = place.copy.read_bytes()

    place.open().repairs.catch_up()
    place.open().repairs.refresh(SESSION)
    place.open().repairs.refresh(SESSION, verify=True)

    assert place.copy.read_bytes() == before
    assert place.open().repairs.mend(SESSION).commits == 6
    assert place.journal.read_bytes() == b"".join(lines)


# Whose copies they are


def test_a_moved_project_keeps_its_copies(place, tmp_path):
    place.fill(3)[0].close()
    moved = place.root.rename(tmp_path / "moved")

    store = place.open(moved)

    assert store.repairs.catch_up() == f"this project was moved here from {place.root}"
    assert len(list(place.home.glob("*/journals"))) == 1
    assert place.open(moved).repairs.catch_up() == ""
    assert lost_sessions(str(place.home), str(place.root), f"{place.root}/.workflow") == []


def test_a_copied_project_gets_an_id_of_its_own(place, tmp_path):
    store, end = place.fill(3)
    copied = shutil.copytree(place.root, tmp_path / "copied")

    other = place.open(copied)
    assert other.repairs.catch_up() == f"this project is a copy of {place.root}; it is recorded as a project of its own"
    other.append(SESSION, end, journal(4)[3])
    store.append(SESSION, end, journal(4)[3])
    other.close()
    store.close()

    ids = {(root / ".workflow/project-id").read_text() for root in (place.root, copied)}
    assert len(ids) == len(list(place.home.glob("*/journals"))) == 2
    assert place.open(copied).repairs.lost() == place.open().repairs.lost() == []


def test_a_project_without_its_id_is_found_by_its_path(place):
    place.fill(3)[0].close()
    shutil.rmtree(place.journal.parent)
    (place.root / ".workflow/project-id").unlink()

    assert place.open().sessions() == [SESSION]


@pytest.mark.parametrize("is_known", [True, False])
def test_another_id_in_the_project_does_not_hide_what_is_missing(place, tmp_path, is_known):
    place.fill(3)[0].close()
    other = shutil.copytree(place.root, tmp_path / "other")
    place.open(other).repairs.catch_up()
    shutil.rmtree(place.journal.parent)
    own = (other / ".workflow/project-id").read_text()
    (place.root / ".workflow/project-id").write_text(own if is_known else "0" * 32 + "\n")

    store = place.open()

    assert store.sessions() == store.repairs.lost() == [SESSION]


def test_a_project_whose_whole_state_is_gone_is_known_by_its_path(place):
    place.fill(3)[0].close()
    shutil.rmtree(place.root / ".workflow")

    assert lost_sessions(str(place.home), str(place.root), f"{place.root}/.workflow") == [SESSION]


def test_a_fresh_clone_at_the_same_path_is_another_project(place):
    place.fill(3)[0].close()
    shutil.rmtree(place.root)
    place.root.mkdir()
    (place.root / "new.txt").write_text("cloned")

    assert lost_sessions(str(place.home), str(place.root), f"{place.root}/.workflow") == []
    store = place.open()
    assert store.sessions() == []
    assert store.repairs.catch_up().startswith("another project was at this path before")


def test_a_project_from_another_machine_is_recorded_here(place, tmp_path):
    store, end = place.fill(3)
    store.close()
    other = place.open(home=tmp_path / "other" / "detent")

    other.append(SESSION, end, journal(4)[3])
    other.close()

    assert next((tmp_path / "other").glob("detent/*/journals/*")).read_bytes() == place.journal.read_bytes()
    assert place.open().read(SESSION, START).end.version == 4


def test_forgetting_a_session_lets_its_journal_count_as_it_stands(place):
    place.fill(4)[0].close()
    place.journal.write_bytes(b"".join(place.journal.read_bytes().splitlines(keepends=True)[:2]))
    store = place.open()

    store.repairs.forget(SESSION)

    assert store.read(SESSION, START).end.version == 2


def test_forgetting_the_project_leaves_nothing_outside_of_it(place):
    store, _ = place.fill(2)

    assert store.repairs.forget_all() == [SESSION]

    assert [path for path in place.home.rglob("*") if path.is_file()] == []
    assert place.journal.exists()


@pytest.mark.parametrize(
    ("chosen", "home", "directory"),
    [
        ("/state", "/home/ada", "/state/detent"),
        ("", "/home/ada", "/home/ada/.local/state/detent"),
        ("relative", "/home/ada", "/home/ada/.local/state/detent"),
        ("", "", ""),
    ],
)
def test_the_state_directory_is_the_users(chosen, home, directory):
    assert state_home(chosen, home) == directory


def test_a_forked_child_has_copies_of_its_own(place):
    store, end = place.fill(2)
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            with store.lock(PROJECT):
                store.append(SESSION, end, journal(3)[2])
            store.back_up(SESSION)
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

    end = store.read(SESSION, end).end
    store.append(SESSION, end, journal(4)[3])
    store.back_up(SESSION)

    assert place.copy.read_bytes() == place.journal.read_bytes()
