"""What the readers make of streams that the real clients put out against a scripted model.

The recordings are whole but for fields that say nothing here: lists of tools, identifiers, times.
"""

from typing import Any

import pytest

from detent.clients.claude_code.adapter import ClaudeCodeReader
from detent.clients.codex.adapter import CodexReader
from detent.clients.gemini.adapter import GeminiReader
from detent.core.run.agent_event import Failed, Failure, Finished, Said, Started, ToolUsed, Used
from detent.core.session.phase_state import Report, Tokens
from detent.process.conversation import Exited
from tests.support.turns import STREAMS

READERS: dict[str, Any] = {"claude-code": ClaudeCodeReader, "codex": CodexReader, "gemini": GeminiReader}
WORDS = "Done it.\n\nSummary: wrote out.txt\nDeliverables: out.txt\nContext for next: nothing else"
DONE = Finished(report=Report(summary="wrote out.txt", deliverables=("out.txt",), context="nothing else"))


def lines(client, name):
    return (STREAMS / f"{client}.{name}.jsonl").read_bytes().splitlines()


def read(client, given, exit_code=0, errors=""):
    reader = READERS[client]()
    events = [event for line in given for event in reader.line(line)]
    return [*events, *reader.end(Exited(exit_code, errors))]


def of(kind, events):
    return [event for event in events if isinstance(event, kind)]


@pytest.mark.parametrize(
    ("client", "tools", "cost"),
    [
        ("claude-code", [("Write", "out.txt", True), ("Bash", "false", False)], 0.0018),
        ("codex", [("apply_patch", "/project/out.txt", True), ("Bash", "/bin/bash -lc false", False)], 0.0),
        ("gemini", [("write_file", "out.txt", True), ("run_shell_command", "false", False)], 0.0),
    ],
)
def test_work_that_went_well_is_told_with_its_tools_and_tokens(client, tools, cost):
    events = read(client, lines(client, "works"))

    assert isinstance(events[0], Started)
    assert events[0].conversation
    assert [(tool.tool, tool.input, tool.succeeded) for tool in of(ToolUsed, events)] == tools
    assert [said.text for said in of(Said, events)] == [WORDS]
    used = of(Used, events)[-1].tokens
    assert (used.input, used.output, used.cost) == (300, 30, pytest.approx(cost))
    assert events[-1] == DONE
    assert len(of(Finished, events)) == 1


@pytest.mark.parametrize(
    ("client", "tools", "tokens"),
    [
        ("claude-code", ["Write", "Agent"], 400),
        ("codex", ["spawn_agent", "wait"], 300),  # its stream does not have what sub-agents do
        ("gemini", ["invoke_agent"], 400),
    ],
)
def test_what_sub_agents_did_counts_as_far_as_the_client_tells_it(client, tools, tokens):
    events = read(client, lines(client, "sub_agent"))

    assert [tool.tool for tool in of(ToolUsed, events)] == tools
    assert of(Used, events)[-1].tokens.input == tokens
    assert events[-1] == Finished(report=Report(summary="delegated", context="Summary: delegated"))


@pytest.mark.parametrize(
    ("client", "name", "exit_code", "failure", "reason"),
    [
        ("claude-code", "rate_limit", 1, Failure.TRANSIENT, "Request rejected (429)"),
        ("claude-code", "overloaded", 1, Failure.TRANSIENT, "529 Overloaded"),
        ("claude-code", "unreachable", 1, Failure.TRANSIENT, "ECONNREFUSED"),
        ("claude-code", "unauthorized", 1, Failure.ERROR, "Invalid API key"),
        ("claude-code", "refusal", 1, Failure.REFUSED, "safeguards flagged this message"),
        ("claude-code", "max_turns", 1, Failure.ERROR, "Reached maximum number of turns (1)"),
        ("codex", "rate_limit", 1, Failure.TRANSIENT, "429 Too Many Requests"),
        ("codex", "overloaded", 1, Failure.TRANSIENT, "unexpected status 529"),
        ("codex", "unauthorized", 1, Failure.ERROR, "401 Unauthorized"),
        ("gemini", "rate_limit", 173, Failure.TRANSIENT, "Resource has been exhausted"),
        ("gemini", "overloaded", 247, Failure.TRANSIENT, "The model is overloaded"),
        ("gemini", "unauthorized", 145, Failure.ERROR, "invalid x-api-key"),
        ("gemini", "safety", 0, Failure.REFUSED, "blocked due to safety settings"),
    ],
)
def test_a_failure_is_told_from_the_others_that_call_for_something_else(client, name, exit_code, failure, reason):
    last = read(client, lines(client, name), exit_code)[-1]

    assert isinstance(last, Failed)
    assert last.failure is failure
    assert reason in last.reason


@pytest.mark.parametrize("client", READERS)
def test_a_stream_that_breaks_off_is_a_failure_at_every_line(client):
    whole = lines(client, "works")

    for count in range(len(whole)):
        last = read(client, whole[:count], exit_code=1, errors="boom")[-1]
        assert isinstance(last, Failed), count
        assert last.failure is Failure.ERROR
        assert "exit code 1: boom" in last.reason


@pytest.mark.parametrize("client", READERS)
def test_an_end_without_a_result_is_no_success_even_with_exit_code_0(client):
    assert isinstance(read(client, lines(client, "works")[:-1], exit_code=0)[-1], Failed)


@pytest.mark.parametrize("client", READERS)
def test_a_result_does_not_count_if_the_program_failed_afterwards(client):
    last = read(client, lines(client, "works"), exit_code=-9)[-1]

    assert isinstance(last, Failed)
    assert "was ended by signal 9 without output" in last.reason


@pytest.mark.parametrize("client", READERS)
@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"not json",
        b"{",
        b'{"type":',
        b"\xff\xfe{",
        b"[1, 2]",
        b"null",
        b"{}",
        b'{"type": 7}',
        b'{"type": "assistant", "message": 7}',
        b'{"type": "assistant", "message": {"content": [7]}}',
        b'{"type": "item.completed", "item": []}',
        b'{"type": "tool_result", "tool_id": "never begun", "status": "success"}',
        b'{"type": "something.new", "item": {"type": "x"}}',
        b'{"a":' * 50_000,
    ],
)
def test_lines_that_cannot_be_understood_change_nothing(client, garbage):
    whole = lines(client, "works")
    mixed = [line for one in whole for line in (garbage, one, garbage)]

    assert read(client, mixed) == read(client, whole)


@pytest.mark.parametrize("client", READERS)
def test_bad_bytes_inside_a_line_cost_the_characters_and_not_the_line(client):
    spoilt = [line.replace(b"Done it.", b"Done \xff it \\ud83d.") for line in lines(client, "works")]

    events = read(client, spoilt)

    assert "Done \ufffd it ?." in of(Said, events)[0].text
    assert events[-1] == DONE


@pytest.mark.parametrize("client", READERS)
def test_an_agent_that_says_it_failed_has_failed(client):
    failing = [line.replace(b"Done it.", b"Status: failed") for line in lines(client, "works")]

    last = read(client, failing)[-1]

    assert last == Failed(failure=Failure.ERROR, reason="the agent reports a failure: wrote out.txt")


TURNS_WITHOUT_WORK = {
    "claude-code": b'{"type": "result", "subtype": "success", "result": "%s"}',
    "codex": b'{"type": "item.completed", "item": {"type": "agent_message", "text": "%s"}}\n{"type": "turn.completed"}',
    "gemini": b'{"type": "message", "role": "assistant", "content": "%s"}\n{"type": "result", "status": "success"}',
}


@pytest.mark.parametrize("client", TURNS_WITHOUT_WORK)
@pytest.mark.parametrize("answer", [b"", b"I cannot help with that request."])
def test_a_turn_that_does_nothing_and_reports_no_result_has_failed(client, answer):
    stream = (TURNS_WITHOUT_WORK[client] % answer).splitlines()

    last = read(client, stream)[-1]

    assert isinstance(last, Failed)
    assert last.reason.startswith("the agent did nothing and reported no result")
    assert answer.decode() in last.reason


@pytest.mark.parametrize("client", TURNS_WITHOUT_WORK)
def test_a_turn_without_a_tool_call_may_report_a_result(client):
    stream = (TURNS_WITHOUT_WORK[client] % b"Summary: nothing to do").splitlines()

    assert read(client, stream)[-1].report.summary == "nothing to do"


@pytest.mark.parametrize(
    ("client", "tool"), [("claude-code", "Bash"), ("codex", "Bash"), ("gemini", "run_shell_command")]
)
def test_the_tool_at_work_when_it_was_ended_is_known(client, tool):
    reader = READERS[client]()
    for line in lines(client, "works"):
        list(reader.line(line))
        if [each.tool for each in reader.unfinished()] == [tool]:
            break

    assert list(reader.unfinished()) == [ToolUsed(tool=tool, input=reader.unfinished()[0].input, succeeded=False)]
    assert "false" in reader.unfinished()[0].input


def test_claude_code_counts_what_came_from_the_cache_and_each_message_once():
    reader = ClaudeCodeReader()
    usage = (
        b'"usage": {"input_tokens": 1, "cache_read_input_tokens": 20,'
        b' "cache_creation_input_tokens": 300, "output_tokens": 5}'
    )
    line = b'{"type": "assistant", "message": {"id": "m1", "content": [], ' + usage + b"}}"

    assert list(reader.line(line)) == [Used(tokens=Tokens(input=321, output=5))]
    assert list(reader.line(line)) == []
    assert list(reader.line(line.replace(b"m1", b"m2"))) == [Used(tokens=Tokens(input=642, output=10))]


def test_claude_code_that_answers_again_after_background_work_is_taken_at_its_last_word():
    whole = lines("claude-code", "works")
    again = whole[-1].replace(b"wrote out.txt", b"wrote more")

    assert read("claude-code", [*whole, again])[-1].report.summary == "wrote more"


def test_claude_code_that_refuses_is_known_by_its_reason_to_stop_and_not_by_its_words():
    reworded = [
        line.replace(b"safeguards flagged this message", b"way is another") for line in lines("claude-code", "refusal")
    ]

    assert read("claude-code", reworded, exit_code=1)[-1].failure is Failure.REFUSED


def test_gemini_puts_the_pieces_of_a_message_together():
    pieces = [
        b'{"type": "message", "role": "assistant", "content": "Summ", "delta": true}',
        b'{"type": "message", "role": "assistant", "content": "ary: two pieces", "delta": true}',
        b'{"type": "result", "status": "success", "stats": {}}',
    ]

    events = read("gemini", pieces)

    assert of(Said, events) == [Said(text="Summary: two pieces")]
    assert events[-1].report.summary == "two pieces"
