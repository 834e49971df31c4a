"""The command line and the page of one machine follow and decide the runs of another."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from itertools import islice

import pytest

from detent.engine.project import open_project
from detent.store.state_home import digest
from tests.support.page import opened
from tests.support.postgres import server
from tests.support.project import write
from tests.support.waiting import wait_until

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
SESSION = "WFS-try-it"
SECRET = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
SETTINGS = """
[agents.script]
adapter = "command"
command = "exec bash ../agent.sh"

[run]
agent = "script"
workflow = "trial"
sandbox = "off"

[workflows.trial]
phases = [{ key = "work"%s }]
"""
WORKS = f"""
cat >/dev/null
echo "I read the plan"
echo "export GITHUB_TOKEN={SECRET}"
while [ ! -e ../go ]; do sleep 0.05; done
echo "made" >made.txt
echo "all done"
"""


@pytest.fixture
def pair(machines, nobody):
    """Two machines, and an agent that begins, and waits until the test lets it go on."""

    def make(gates=""):
        here, there = machines(2, settings=SETTINGS % gates)
        write(here.parent, "agent.sh", WORKS)
        return here, there

    return make


@contextmanager
def started(root, *arguments):
    """A command that works while the test looks, as a process of its own."""
    process = subprocess.Popen(
        [DETENT, *arguments],
        cwd=root,
        env={**os.environ, "DETENT_ACTOR": "tester"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(lines):
    """What agents said, from the lines of a feed."""
    for line in lines:
        event = json.loads(line)
        if event["type"] == "agent_did" and event["did"]["type"] == "said":
            yield event["did"]["text"]


def base(root):
    return f"/api/p/{digest(os.fsencode(root.resolve()))}/s/{SESSION}"


def is_running(root):
    with open_project(root, actor="looker") as project:
        return SESSION in project.store.sessions() and project.store.get(f"{SESSION}/.process/runner.json")


def test_a_run_on_one_machine_is_watched_on_another_while_it_works(pair):
    here, there = pair()
    with started(there, "run", "try it") as run:
        wait_until(lambda: is_running(here), during=run)
        with started(here, "watch", "--json") as watch:
            spoken = said(watch.stdout)
            first = list(islice(spoken, 2))
            write(here.parent, "go", "")

            assert first[0] == "I read the plan"
            assert list(spoken) == ["all done"]
            assert watch.wait(30) == 0
        assert run.wait(30) == 0
    assert not (here / ".workflow" / SESSION / ".process" / "run.jsonl").exists()


def test_the_feed_holds_no_secret(pair):
    here, there = pair()
    with started(there, "run", "try it") as run:
        write(here.parent, "go", "")
        assert run.wait(60) == 0

    lines = b"".join(bytes(lines) for (lines,) in server().execute("SELECT lines FROM detent.feed"))

    assert b"I read the plan" in lines
    assert SECRET.encode() not in lines


def test_the_page_of_one_machine_shows_a_run_of_another_while_it_works(pair):
    here, there = pair()
    with started(there, "run", "try it") as run:
        wait_until(lambda: is_running(here), during=run)
        with opened(here) as page, page.stream(f"{base(here)}/events?after=1") as messages:

            def lines(message):
                return [line for job in (message.data["run"] or {"jobs": []})["jobs"] for line in job["lines"]]

            shown = next(each for each in messages if each.event == "run" and "I read the plan" in lines(each))
            assert shown.data["run"]["jobs"][0]["agent"] == "script"
            assert page.get(base(here)).ok()["run"]["jobs"][0]["phase"] == "work"
            write(here.parent, "go", "")
            next(each for each in messages if each.event == "run" and each.data["runner"] is None)
            assert page.get(base(here)).ok()["status"] == "completed"
        assert run.wait(30) == 0
