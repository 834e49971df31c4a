"""The tokens that the stream of Gemini CLI does not tell: those of a turn that was ended before its result."""

import json

import pytest

from detent.clients.gemini.adapter import GeminiReader
from detent.core.run.agent_event import Failed, Failure, Used
from detent.core.session.phase_state import Tokens
from detent.process.conversation import Exited

TALK, AGENT, OTHER = "9fd8a024-01bd-4916", "a8700921-9864-4db5", "9fd8a024-ffff-0000"


@pytest.fixture
def home(tmp_path):
    return tmp_path / ".gemini"


def record(home, conversation, *messages, of=None):
    """A record as Gemini CLI 0.61.0 writes it, without the fields that say nothing here. `of` is the caller's id."""
    chats = home / "tmp/shop/chats"
    path = chats / of / f"{conversation}.jsonl" if of else chats / f"session-2026-11-17T19-30-{conversation[:8]}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [{"sessionId": conversation, "kind": "subagent" if of else "main"}, {"id": "u", "type": "user"}]
    for name, read, written, thought in messages:
        tokens = {"input": read, "output": written, "thoughts": thought, "total": read + written + thought}
        lines.append({"id": name, "type": "gemini", "tokens": tokens})
    path.write_text("".join(f"{json.dumps(line)}\n" for line in [*lines, {"$set": {"lastUpdated": "now"}}]))
    return path


def started(home):
    reader = GeminiReader(str(home))
    list(reader.line(json.dumps({"type": "init", "session_id": TALK}).encode()))
    return reader


def used(events):
    return [event.tokens for event in events if isinstance(event, Used)]


def test_a_turn_that_was_ended_has_the_tokens_of_its_record_with_its_thoughts(home):
    reader = started(home)
    record(home, TALK, ("m1", 100, 10, 5), ("m1", 100, 10, 5), ("m2", 200, 20, 0))

    assert used(reader.unfinished()) == [Tokens(input=300, output=35)]


def test_sub_agents_are_counted_and_a_conversation_with_a_like_name_is_not(home):
    reader = started(home)
    record(home, OTHER, ("m1", 9000, 900, 0))
    assert used(reader.unfinished()) == []

    record(home, TALK, ("m1", 100, 10, 0))
    record(home, AGENT, ("m1", 200, 20, 0), of=TALK)
    assert used(reader.unfinished()) == [Tokens(input=300, output=30)]


def test_the_figure_of_the_stream_counts_if_the_record_tells_no_more(home):
    reader = started(home)
    record(home, TALK, ("m1", 100, 10, 0))
    stats = {"total_tokens": 110, "input_tokens": 100, "output_tokens": 10}
    list(reader.line(json.dumps({"type": "result", "status": "success", "stats": stats}).encode()))

    assert used(reader.end(Exited(0))) == []


@pytest.mark.parametrize("conversation", ["", "../../x", "x*"])
def test_a_name_that_leads_elsewhere_reads_nothing(home, conversation):
    reader = GeminiReader(str(home))
    record(home, TALK, ("m1", 100, 10, 0))
    list(reader.line(json.dumps({"type": "init", "session_id": conversation}).encode()))

    assert used(reader.unfinished()) == []


@pytest.mark.parametrize(
    "message",
    [
        "The model returned an empty response with no text or thoughts. This may be a transient API issue.",
        "Model stream ended without a finish reason.",
    ],
)
def test_a_service_that_never_answers_is_taken_for_one_that_refuses(message):
    reader = GeminiReader()
    result = {"type": "result", "status": "error", "error": {"message": message}}
    list(reader.line(json.dumps(result).encode()))

    [end] = [event for event in reader.end(Exited(1)) if isinstance(event, Failed)]

    assert end.failure is Failure.REFUSED
    assert "PROHIBITED_CONTENT" in end.reason
