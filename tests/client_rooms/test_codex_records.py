"""The tokens that the stream of Codex does not tell: those of sub-agents, and of turns that failed or were ended."""

import json
import os
import time

import pytest

from detent.clients.codex.adapter import CodexReader
from detent.core.run.agent_event import Failed, Failure, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited
from tests.support.turns import STREAMS

PARENT, CHILD, OTHER = "01a1e76c-e6ba", "01a1e76c-e9f7", "01a1e76d-0000"


@pytest.fixture
def home(tmp_path):
    return tmp_path / "codex"


def record(home, thread, session, *totals, day="2026/11/17"):
    """A record as Codex 0.166.0 writes it, without the fields that say nothing here."""
    directory = home / "sessions" / day
    directory.mkdir(parents=True, exist_ok=True)
    meta = {"session_id": session, "id": thread, "originator": "codex_exec", "cli_version": "0.166.0"}
    empty = {"type": "event_msg", "payload": {"type": "token_count", "info": None}}
    lines = [{"type": "session_meta", "payload": meta}, empty]
    for given, told in totals:
        usage = {"input_tokens": given, "cached_input_tokens": 0, "output_tokens": told, "total_tokens": given + told}
        payload = {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}
        lines.append({"type": "event_msg", "payload": payload})
    lines.append({"type": "response_item", "payload": {"type": "message", "id": None}})
    path = directory / f"rollout-2026-11-17T02-53-56-{thread}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def started(home, thread=PARENT):
    reader = CodexReader(str(home))
    list(reader.line(json.dumps({"type": "thread.started", "thread_id": thread}).encode()))
    return reader


def used(events):
    return [event.tokens for event in events if isinstance(event, Used)]


def test_a_turn_that_was_ended_has_the_tokens_of_its_record(home):
    reader = started(home)
    record(home, PARENT, PARENT, (1000, 100), (2400, 236))

    assert used(reader.unfinished()) == [Tokens(input=2400, output=236)]


def test_an_answer_whose_tools_have_not_ended_is_counted(home):
    reader = started(home)
    path = record(home, PARENT, PARENT, (1000, 100))
    usage = {"input_tokens": 2000, "output_tokens": 200}
    answer = {"type": "token_usage_record", "payload": {"thread_id": PARENT, "thread_token_usage": usage}}
    path.write_text(path.read_text() + json.dumps(answer) + "\n")

    assert used(reader.unfinished()) == [Tokens(input=2000, output=200)]


def test_a_turn_that_failed_has_the_tokens_of_its_record(home):
    reader = started(home)
    record(home, PARENT, PARENT, (500, 50))
    list(reader.line(b'{"type": "turn.failed", "error": {"message": "unexpected status 400"}}'))

    assert used(reader.end(Exited(1))) == [Tokens(input=500, output=50)]


def test_sub_agents_are_counted_and_other_threads_are_not(home):
    reader = started(home)
    record(home, PARENT, PARENT, (300, 30))
    record(home, CHILD, PARENT, (100, 10), day="2026/11/18")
    record(home, OTHER, OTHER, (9000, 900))
    usage = b'{"type": "turn.completed", "usage": {"input_tokens": 300, "output_tokens": 30}}'
    assert used(reader.line(usage)) == [Tokens(input=300, output=30)]

    assert used(reader.end(Exited(0))) == [Tokens(input=400, output=40)]


def test_the_stream_counts_where_there_is_no_record(home):
    reader = CodexReader(str(home))
    lines = (STREAMS / "codex.works.jsonl").read_bytes().splitlines()
    events = [event for line in lines for event in reader.line(line)]

    assert used([*events, *reader.end(Exited(0))]) == [Tokens(input=300, output=30)]


def test_records_from_before_the_turn_and_damaged_ones_are_left_out(home):
    old = record(home, PARENT, PARENT, (700, 70))
    os.utime(old, (1, 1))
    reader = started(home)
    (old.parent / "rollout-broken.jsonl").write_bytes(b"\x00not json\n")

    assert used(reader.unfinished()) == []


def test_the_wait_of_codex_before_its_own_retry_is_the_wait_that_the_service_asks_for(monkeypatch):
    """No message tells it."""
    now_s = iter([10.0, 17.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now_s))
    reader = CodexReader()
    for message in ("Reconnecting... 1/1 (last status: 429 Too Many Requests)", "last status: 429 Too Many Requests"):
        list(reader.line(json.dumps({"type": "error", "message": message}).encode()))

    [end] = [event for event in reader.end(Exited(1)) if isinstance(event, Failed)]

    assert (end.failure, end.retry_after_s) == (Failure.TRANSIENT, 7.0)
