"""The tokens of a turn that died with its run: as its feed and its client's record tell them, or said to be unknown."""

import json
import os
from datetime import UTC, datetime

import pytest

from detent.config.settings import AgentSettings
from detent.core.run.agent_event import Started, Used
from detent.core.run.run_event import AgentDid, Retrying, RunStarted, TurnStarted
from detent.core.session.attempts import attempts
from detent.core.session.phase_state import Tokens, Worker
from detent.render.report_facts import work_of
from detent.run.feed import Feed
from detent.store.feed_file import FeedFile, feed_path
from tests.support.scripted_run import FLOW, Cast, scenes

AT = datetime(2026, 11, 17, tzinfo=UTC)
ID = "run-9/actor/1"
TALK = "01a1e76c-e6ba"


@pytest.fixture
def scene(tmp_path):
    with scenes(tmp_path / "shop") as make:
        yield make


def told(scene, *events, task=None, phase="a", most=4 * 1024 * 1024):
    """The feed of a run that was killed after these events of a turn."""
    feed = Feed(FeedFile(feed_path(scene.project.store, scene.handle.id), max_bytes=most))
    feed.tell(RunStarted(at=AT, run="run-9", session=scene.handle.id))
    feed.tell(TurnStarted(at=AT, phase=phase, attempt=1, turn=1, agent="actor", task=task))
    for event in events:
        is_own = isinstance(event, Retrying)
        feed.tell(event if is_own else AgentDid(at=AT, phase=phase, task=task, did=event))
    feed.close()


def dead(scene):
    scene.handle.record_agent_started("a", "actor", ID)
    return scene


def first_attempt(scene):
    return attempts(scene.handle.log())[0]


def used(read, written):
    return Used(tokens=Tokens(input=read, output=written))


def test_what_the_agent_told_before_the_kill_is_recorded_with_the_agent(scene):
    one = dead(scene('["a"]'))
    told(one, Started(conversation=TALK, model="m-5", version="1"), used(100, 10), used(250, 25))

    one.run(Cast())

    first = first_attempt(one)
    assert first.tokens == Tokens(input=250, output=25)
    assert first.error == "interrupted: run-9 ended without recording it"
    assert Worker(agent="actor", model="m-5", version="1") in {work.worker for work in work_of(one.handle.log())}


def test_earlier_tries_of_the_turn_are_added(scene):
    one = dead(scene('["a"]'))
    again = Retrying(at=AT, phase="a", reason="busy", pause_s=1.0, again=1, of=3)
    told(one, used(100, 10), again, used(5, 1))

    one.run(Cast())

    assert first_attempt(one).tokens == Tokens(input=105, output=11)


def test_a_feed_that_was_begun_anew_still_tells_them(scene):
    one = dead(scene('["a"]'))
    told(one, Started(conversation=TALK), used(100, 10), *([Started(conversation=TALK)] * 20), most=1_000)

    one.run(Cast())

    assert first_attempt(one).tokens == Tokens(input=100, output=10)


@pytest.mark.parametrize("events", [(), (Started(conversation=TALK),)], ids=["nothing", "a conversation"])
def test_tokens_that_nobody_told_are_said_to_be_unknown(scene, events):
    one = dead(scene('["a"]'))
    if events:
        told(one, *events)

    one.run(Cast())

    first = first_attempt(one)
    assert first.tokens == Tokens()
    assert first.error.endswith("the tokens that it used are unknown")


def test_the_agent_of_a_task_keeps_its_tokens_too(scene):
    one = scene("", workflow=FLOW, more='gates = "off"')
    one.handle.tasks.add("First")
    one.handle.tasks.start("IMPL-1", pid=2**22 + 1)
    one.handle.record_agent_started("IMPLEMENT", "actor", f"{ID}/IMPL-1")
    told(one, used(70, 7), phase="IMPLEMENT", task="IMPL-1")

    one.run(Cast())

    implemented = next(each for each in attempts(one.handle.log()) if each.phase == "IMPLEMENT")
    assert implemented.tokens == Tokens(input=70, output=7)


def codex_record(home):
    path = home / "sessions/2026/11/17" / f"rollout-{TALK}.jsonl"
    usage = {"total_token_usage": {"input_tokens": 900, "output_tokens": 90}}
    return path, [
        {"type": "session_meta", "payload": {"id": TALK, "session_id": TALK}},
        {"type": "event_msg", "payload": {"type": "token_count", "info": usage}},
    ]


def claude_record(home):
    message = {"id": "m1", "usage": {"input_tokens": 900, "output_tokens": 90}, "content": []}
    return home / "projects/-shop" / f"{TALK}.jsonl", [{"type": "assistant", "message": message}]


def gemini_record(home):
    tokens = {"input": 900, "output": 90, "total": 990}
    path = home / ".gemini/tmp/shop/chats" / f"session-2026-11-17T00-00-{TALK[:8]}.jsonl"
    return path, [{"sessionId": TALK}, {"id": "m1", "type": "gemini", "tokens": tokens}]


@pytest.mark.parametrize(
    ("adapter", "variable", "record"),
    [
        ("codex", "CODEX_HOME", codex_record),
        ("claude-code", "CLAUDE_CONFIG_DIR", claude_record),
        ("gemini", "HOME", gemini_record),
    ],
)
def test_the_record_of_the_client_counts_if_it_tells_more(scene, tmp_path, adapter, variable, record):
    one = dead(scene('["a"]'))
    told(one, Started(conversation=TALK), used(100, 10))
    path, lines = record(tmp_path / "home")
    path.parent.mkdir(parents=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    os.utime(path, (AT.timestamp() + 60, AT.timestamp() + 60))
    cast = Cast()
    cast.settings = AgentSettings(adapter=adapter, env={variable: str(tmp_path / "home")})

    one.run(cast)

    assert first_attempt(one).tokens == Tokens(input=900, output=90)
