"""The journal format: the fixture replays, prose is not hashed, other formats are refused."""

import shutil
from typing import get_args

import msgspec
import pytest

from detent.core.session import evolve as evolve_module
from detent.core.session.events import Event
from detent.core.session.evolve import evolve, fingerprint
from detent.core.session.session import decode_session, encode_session
from detent.engine.project import init_project, open_project
from detent.errors import UnknownFormat
from detent.store.files import FileStore
from detent.store.line import FORMAT, GENESIS, _sum
from detent.store.memory import MemoryStore
from detent.store.port import START
from tests.support.journal_fixture import FIXTURE, NAME, write
from tests.support.values import journal as small_journal

#: An import opens a session of its own, so the fixture cannot hold one.
ELSEWHERE = {"phases_imported"}


@pytest.fixture
def commits(tmp_path):
    """The commits of the fixture journal, read as a store reads them."""
    own = tmp_path / NAME / "journal.jsonl"
    own.parent.mkdir()
    shutil.copy(FIXTURE, own)
    store = FileStore(str(tmp_path))
    yield store.read(NAME, START).commits
    store.close()


def test_the_fixture_has_an_event_of_every_type(commits):
    types = {event.__struct_config__.tag for commit in commits for event in commit.events}

    assert {each.__struct_config__.tag for each in get_args(Event)} - types == ELSEWHERE


@pytest.mark.parametrize("kept", [lambda session: session, lambda session: decode_session(encode_session(session))])
def test_every_commit_gives_the_hash_that_it_recorded(commits, kept):
    session = None
    for commit in commits:
        session = evolve(session, commit)
        assert (commit.version, fingerprint(session)) == (commit.version, commit.state)
        session = kept(session)


def test_no_sentence_that_describes_an_event_counts_for_the_hash(commits, monkeypatch):
    monkeypatch.setattr(evolve_module, "event_lines", lambda events: [f"another sentence for {len(events)} events"])

    session = None
    for commit in commits:
        session = evolve(session, commit)
        assert fingerprint(session) == commit.state
    assert session.notes[-1].action.startswith("another sentence")


def test_todays_code_writes_the_same_journal(tmp_path):
    """If this fails, the format has changed: give it the next number and write the fixture again."""
    written = write(tmp_path).read_bytes()

    assert _facts(written) == _facts(FIXTURE.read_bytes())


def _facts(journal):
    """What does not depend on the machine.

    Durations, digests of files that hold times, and the account and terminal of a decision are left out.
    """
    lines = [msgspec.json.decode(line) for line in journal.splitlines()]
    for line in lines:
        if "proof" in line["actor"]:
            line["actor"]["proof"] = sorted(line["actor"]["proof"])
    return [(line["version"], line["actor"], [event["type"] for event in line["events"]]) for line in lines]


def test_only_the_first_line_states_the_format():
    first, *others = FIXTURE.read_bytes().splitlines()

    assert first.startswith(b'{"format":%d,' % FORMAT)
    assert not [line for line in others if b'"format":' in line]


@pytest.fixture(params=[0, FORMAT + 1, 99])
def foreign(request, tmp_path):
    """A project with a journal of another format, whose sums are right."""
    init_project(tmp_path)
    commit = msgspec.to_builtins(small_journal(1)[0])
    head = {"format": request.param} if request.param else {}
    body = msgspec.json.encode({**head, **commit})[:-1]
    path = tmp_path / ".workflow" / "WFS-trial" / "journal.jsonl"
    path.parent.mkdir()
    path.write_bytes(body + b',"sum":"' + _sum(GENESIS, body).encode() + b'"}\n')
    return path


def test_a_journal_of_another_format_is_refused_with_its_number_and_left_alone(foreign, tmp_path):
    before = foreign.read_bytes()
    number = msgspec.json.decode(before).get("format", "none")

    with (
        open_project(tmp_path, actor="tester") as project,
        pytest.raises(UnknownFormat, match=f"format {number}, and this Detent reads format {FORMAT}"),
    ):
        project.session("WFS-trial").finish("done")

    assert foreign.read_bytes() == before


def test_a_position_means_nothing_but_a_commit_outside_the_file_store():
    store = MemoryStore()
    first, *rest = small_journal(3)
    cursor = store.create("WFS-trial", first)
    for commit in rest:
        cursor = store.append("WFS-trial", cursor, commit)

    assert (cursor.version, cursor.hint) == (3, 0)
