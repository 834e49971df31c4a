"""The feed of a run: a follower sees what was told, whatever happens to the file."""

import os
import threading
import time
from pathlib import Path

import msgspec
import pytest

from detent.core.run.agent_event import Said, Started, ToolUsed
from detent.core.run.run_event import AgentDid, End, PersonNeeded, PhaseEnded, RunEnded, RunEvent, TurnStarted
from detent.core.run.run_view import RunView, fold
from detent.run.feed import Feed, follow, open_conversations, redact_event
from detent.store.feed_file import FeedFile, FeedFileReader, feed_path
from detent.store.files import FileStore
from tests.support.run_story import at, did, needed, started, turn, view, whole_run

END = RunEnded(at=at(999), end=End.COMPLETED)


@pytest.fixture
def path(tmp_path) -> str:
    return feed_path(FileStore(str(tmp_path)), "WFS-trial")


def told(path: str, *events: RunEvent, max_bytes: int = 4 * 1024 * 1024) -> Feed:
    feed = Feed(FeedFile(path, max_bytes=max_bytes))
    for event in events:
        feed.tell(event)
    return feed


def read(path: str, **options) -> list[RunEvent]:
    """What is there now."""
    settings = {"stopping": lambda: True, **options}
    return [event for event in follow(FeedFileReader(path), **settings) if event is not None]


class Follower:
    """Follows in a thread, until the run ends."""

    def __init__(self, path: str) -> None:
        self.seen: list[RunEvent] = []
        self.silences = 0
        self._path = path
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        for event in follow(FeedFileReader(self._path), stopping=lambda: False):
            if event is None:
                self.silences += 1
            else:
                self.seen.append(event)

    def until(self, count: int) -> None:
        limit = time.monotonic() + 60
        while len(self.seen) < count and time.monotonic() < limit:
            time.sleep(0.01)
        assert len(self.seen) >= count

    def quiet(self) -> None:
        before, limit = self.silences, time.monotonic() + 60
        while self.silences < before + 2 and time.monotonic() < limit:
            time.sleep(0.01)

    def joined(self) -> list[RunEvent]:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.seen


def test_everything_that_is_told_is_read_as_it_was(path):
    events = whole_run()
    told(path, *events).close()

    assert read(path) == events


def test_a_line_is_an_event_in_json(path):
    told(path, started(), turn(1, "a")).close()

    lines = Path(path).read_bytes().splitlines()
    assert [msgspec.json.decode(line)["type"] for line in lines] == ["run_started", "turn_started"]


def test_following_goes_on_until_the_run_ends(path):
    feed = told(path, started())
    follower = Follower(path)
    follower.until(1)

    feed.tell(turn(1, "a"))
    follower.until(2)
    feed.tell(END)
    feed.tell(turn(2, "a"))

    assert follower.joined() == [started(), turn(1, "a"), END]


def test_a_file_that_is_not_there_yet_is_waited_for(path):
    follower = Follower(path)
    follower.quiet()

    told(path, started(), END).close()

    assert follower.joined() == [started(), END]


def test_a_run_has_a_file_of_its_own(path):
    told(path, *whole_run()).close()
    told(path, started(run="run-2"), turn(1, "a")).close()

    assert read(path) == [started(run="run-2"), turn(1, "a")]


def test_of_a_run_that_is_meant_nothing_of_another_is_told(path):
    told(path, *whole_run()).close()
    assert read(path, belongs="run-2".__eq__) == []

    told(path, started(run="run-2"), END).close()
    assert read(path, belongs="run-2".__eq__) == [started(run="run-2"), END]


def test_half_a_line_is_waited_for(path):
    told(path, started()).close()
    follower = Follower(path)
    follower.until(1)
    line = msgspec.json.encode(turn(1, "a")) + b"\n"

    with open(path, "ab", buffering=0) as file:
        file.write(line[:20])
        follower.quiet()
        assert len(follower.seen) == 1
        file.write(line[20:])
        follower.until(2)
        file.write(msgspec.json.encode(END) + b"\n")

    assert follower.joined() == [started(), turn(1, "a"), END]


def test_what_cannot_be_read_is_passed_over(path):
    told(path, started()).close()
    with open(path, "ab") as file:
        file.write(b'{"type":"of the future"}\n\n{"type":"turn_sta\n\xff\n' + msgspec.json.encode(END) + b"\n")

    assert read(path) == [started(), END]


def test_the_file_stays_below_its_limit_and_starts_with_its_run(path):
    feed = told(path, started(), turn(1, "a"), max_bytes=4_000)
    for number in range(500):
        feed.tell(did(number, "a", Said(text=f"line {number}")))
        assert os.path.getsize(path) <= 4_000

    found = read(path)
    assert found[:2] == [started(), turn(1, "a")]
    assert found[-1] == did(499, "a", Said(text="line 499"))


def test_whoever_comes_after_it_started_anew_knows_who_works_and_who_is_needed(path):
    feed = told(path, started(), turn(1, "a"), turn(1, "b"), needed(2, "b"), turn(3, "c"), max_bytes=4_000)
    feed.tell(PhaseEnded(at=at(4), phase="c", attempt=1, status="completed", said=""))
    for number in range(100):
        feed.tell(did(number, "a", Said(text=f"line {number}")))

    shown = view(*read(path))
    assert [(job.phase, job.agent) for job in shown.jobs] == [("a", "claude"), ("b", "claude")]
    assert [need.phase for need in shown.needs] == ["b"]


def test_whoever_follows_while_it_starts_anew_sees_everything_once(path):
    feed = told(path, started(), turn(1, "a"), needed(2, "b"), max_bytes=4_000)
    follower = Follower(path)
    follower.until(3)
    said = [did(number, "a", Said(text=f"line {number}")) for number in range(200)]

    for number, event in enumerate(said):
        feed.tell(event)
        if number % 15 == 0:
            # A follower that is two files behind cannot have seen the one between.
            follower.until(4 + number)
    feed.tell(END)

    assert follower.joined() == [started(), turn(1, "a"), needed(2, "b"), *said, END]


def test_the_picture_is_the_same_after_the_file_started_anew(path):
    events = whole_run()
    feed, follower = told(path, max_bytes=1_500), None
    shown = RunView()
    for number, event in enumerate(events):
        feed.tell(event)
        follower = follower or Follower(path)
        follower.until(number + 1)
    for event in follower.joined():
        shown = fold(shown, event)

    assert shown == view(*events)


def test_secrets_are_not_written(path):
    used = ToolUsed(tool="Bash", input="export GITHUB_TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789 && ls")
    told(path, started(), redact_event(did(1, "a", used))).close()

    assert b"ghp_" not in Path(path).read_bytes()
    assert isinstance(read(path)[1], AgentDid)


def test_a_feed_that_cannot_be_written_stops_nothing(tmp_path):
    (tmp_path / "file").write_text("")

    told(str(tmp_path / "file" / "run.jsonl"), *whole_run()).close()


def test_a_line_that_was_not_written_to_its_end_spoils_no_other(path):
    writer = FeedFile(path)
    feed = Feed(writer)
    feed.tell(started())
    with open(path, "ab") as file:
        file.write(b'{"type":"turn_star')
    writer._is_torn = True
    feed.tell(turn(1, "a"))

    assert read(path) == [started(), turn(1, "a")]


def test_a_directory_that_is_removed_is_made_again_by_the_next_run(path):
    feed = told(path, started())
    os.unlink(path)
    os.rmdir(os.path.dirname(path))
    feed.tell(turn(1, "a"))
    assert read(path) == []

    feed.tell(started(run="run-2"))
    assert read(path) == [started(run="run-2")]


def test_stopping_ends_it_with_what_is_there(path):
    feed = told(path, started())
    stopped = []
    seen = []
    for event in follow(FeedFileReader(path), stopping=lambda: bool(stopped)):
        seen.append(event)
        if event == started():
            feed.tell(turn(1, "a"))
            stopped.append(True)

    assert [event for event in seen if event is not None] == [started(), turn(1, "a")]
    assert {type(event) for event in seen if event} <= {type(started()), TurnStarted, PersonNeeded}


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ((), True),
        ((PhaseEnded(at=at(3), phase="plan", attempt=1, status="failed", said="stopped"),), True),
        ((RunEnded(at=at(4), end=End.PAUSED),), True),
        ((RunEnded(at=at(4), end=End.WAITING),), False),
        ((PhaseEnded(at=at(3), phase="plan", attempt=1, status="completed", said="done"),), False),
    ],
    ids=["died", "failed", "interrupted", "ended by itself", "completed"],
)
def test_the_conversation_of_a_turn_that_was_left_in_the_middle_is_known(path, last, kept):
    begun = TurnStarted(at=at(1), phase="plan", attempt=1, turn=1, agent="worker")
    talk = AgentDid(at=at(2), phase="plan", did=Started(conversation="c-1"))
    told(path, started(), begun, talk, *last).close()

    assert open_conversations(FeedFileReader(path)) == ({("plan", None, "worker"): "c-1"} if kept else {})
