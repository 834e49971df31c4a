"""The scripted server and the runner, without any client."""

import http.client
import json
import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clients.client import Client, run_client
from tests.clients.scripts import Call, do, say

MESSAGES = {
    "anthropic": (
        "/v1/messages",
        lambda text: {"messages": [{"role": "user", "content": text}], "tools": [{"name": "T"}]},
    ),
    "openai": ("/v1/responses", lambda text: {"input": text, "tools": [{"type": "function", "name": "T"}]}),
    "gemini": (
        "/v1beta/models/some-model:generateContent",
        lambda text: {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "tools": [{"functionDeclarations": [{"name": "T"}]}],
        },
    ),
}


def ask(server, method, path, body=None):
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=10)
    connection.request(method, path, json.dumps(body) if body is not None else None)
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    return answer.status, content


@pytest.fixture(params=MESSAGES)
def wire(request):
    return MESSAGES[request.param]


def test_each_conversation_plays_its_own_script(server, wire):
    path, body = wire
    server.play({"main": [do(Call("T", {"a": 1})), say("main is done")], "sub": [say("sub is done")]})

    first = ask(server, "POST", path, body("[[S:main]] one"))[1]
    sub = ask(server, "POST", path, body("[[S:sub]] go"))[1]
    second = ask(server, "POST", path, body("[[S:main]] two"))[1]

    assert "main is done" not in first
    assert '"T"' in first
    assert "sub is done" in sub
    assert "main is done" in second
    assert [request.conversation for request in server.requests] == ["main", "sub", "main"]
    assert server.problems == []


def test_a_repeated_request_gets_the_same_answer(server, wire):
    path, body = wire
    server.play({"main": [say("first"), say("second")]})

    answers = [ask(server, "POST", path, body("[[S:main]] go")) for _ in range(2)]

    assert answers[0] == answers[1]


def test_a_script_that_is_too_short_is_a_problem(server, wire):
    path, body = wire
    server.play({"main": [say("only")]})

    for text in ("[[S:main]] one", "[[S:main]] two", "[[S:other]] three"):
        assert ask(server, "POST", path, body(text))[0] == 200

    assert server.problems == ["the script of 'main' is over", "no script for the conversation 'other'"]


def test_a_request_without_a_marker_or_without_tools_takes_no_turn(server, wire):
    path, body = wire
    server.play({"main": [say("the only turn")]})

    ask(server, "POST", path, body("a title, please"))
    ask(server, "POST", path, {**body("[[S:main]] a title, please"), "tools": []})

    assert "the only turn" in ask(server, "POST", path, body("[[S:main]] go"))[1]
    assert len(server.asides) == 2


def test_a_script_may_be_a_generator_that_looks_at_what_it_was_told(server, wire):
    path, body = wire

    def patient(request):
        while "ready" not in request.told:
            request = yield say("not yet")
        yield say("at last")

    server.play({"main": patient})
    answers = [ask(server, "POST", path, body(f"[[S:main]] {text}"))[1] for text in ("a", "b", "ready")]

    assert ["at last" in answer for answer in answers] == [False, False, True]


def test_a_broken_script_is_a_problem_and_not_a_hang(server, wire):
    path, body = wire
    server.play({"main": [lambda request: request.nonsense]})

    assert ask(server, "POST", path, body("[[S:main]] go"))[0] == 400
    assert "nonsense" in server.problems[0]


def test_nothing_outside_is_reached(server):
    assert ask(server, "GET", "http://example.invalid/x")[0] == 403
    assert ask(server, "CONNECT", "example.invalid:443")[0] == 403
    assert server.outward == ["http://example.invalid/x", "example.invalid:443"]


def test_a_client_that_does_not_end_is_killed_with_all_it_started(server, tmp_path):
    """A stand-in: a shell that starts a child and waits."""
    kind: Any = SimpleNamespace(
        NAME="sleeper",
        prepare=lambda home, url: None,
        environment=lambda home, url: {},
        arguments=lambda prompt, **_: [],
        session_id=lambda events: None,
    )
    child = tmp_path / "child"
    client = Client(kind, ("/bin/sh", "-c", f"sleep 300 & echo $! > {child}; wait"), tmp_path)

    run = run_client(client, "", tmp_path, server, timeout_s=0.5)

    assert run.exit_code is None
    assert _is_gone(int(child.read_text()))


def _is_gone(pid):
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False
