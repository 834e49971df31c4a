"""The command line and the page of one machine follow and decide the runs of another."""

import json
import os
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from itertools import islice

import pytest

from detent.core.decision.statement import Statement
from detent.engine.project import open_project
from detent.errors import Refused
from detent.store.state_home import digest
from tests.support.command import Tool
from tests.support.keys import make_ssh_key
from tests.support.page import opened
from tests.support.postgres import server
from tests.support.project import write
from tests.support.waiting import until, wait_until

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
SESSION = "WFS-try-it"
PATIENCE_S = 60.0
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

APPROVED = ', gates = [{ kind = "approval" }]'


@pytest.fixture
def pair(machines, nobody):
    """Two machines, and an agent that begins, and waits until the test lets it go on."""

    def make(gates="", more=""):
        here, there = machines(2, settings=SETTINGS % gates + more)
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
    # A command that says nothing more must not hold the tests up.
    ending = threading.Timer(PATIENCE_S, process.kill)
    ending.start()
    try:
        yield process
    finally:
        ending.cancel()
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


@pytest.mark.parametrize("travels", [True, False])
def test_an_approval_on_the_page_of_one_machine_continues_a_run_on_another(pair, tmp_path, travels):
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    here, there = pair(APPROVED, f'[files]\nremote = "{tmp_path}/remote.git"\n' if travels else "")
    write(here.parent, "go", "")
    with started(there, "run", "try it", "--wait") as run, opened(here) as page:
        wait_until(lambda: is_running(here), during=run)
        needs = until(lambda: page.get(base(here)).ok()["needs"])
        assert [(need["kind"], need["phase"]) for need in needs] == [("vote", "work")]
        [approve] = [action for action in needs[0]["actions"] if action["decision"] == "approve"]

        def review():
            return page.get(f"{base(here)}/review", phase="work").ok()

        if travels:
            # The files of the other machine, not those of this one.
            shown = until(lambda: (found := review())["files"] and found)
            assert [(file["path"], file["status"]) for file in shown["files"]] == [("made.txt", "added")]
            diff = page.get(f"{base(here)}/diff", **{"from": shown["since"], "to": shown["until"], "path": "made.txt"})
            assert diff.ok()["hunks"][0]["lines"][0]["text"] == "made"
            refused = page.post(
                f"{base(here)}/decide", decision="approve", reason="x", **approve["body"], tree="0" * 64
            )
            assert refused.error[:2] == (409, "tree_changed")
        else:
            shown = review()
            assert "another machine took this checkpoint" in shown["notice"]
        body = {**approve["body"], "reason": "read on another machine", "tree": shown["tree"]}

        page.post(f"{base(here)}/decide", decision="approve", **body).ok()

        assert run.wait(60) == 0, run.stderr.read()
    with open_project(there, actor="looker") as project:
        state = project.session(SESSION).state
    assert state.status == "completed"
    [vote] = state.phases["work"].gates["approval"].votes.values()
    assert vote.reason == "read on another machine"


def test_work_of_another_machine_is_signed_where_its_files_are(pair, tmp_path):
    subprocess.run(["git", "init", "--quiet", "--bare", tmp_path / "remote.git"], check=True)
    here, there = pair(APPROVED, f'[files]\nremote = "{tmp_path}/remote.git"\n')
    detent = Tool(here)
    detent.environment["HOME"] = str(tmp_path)
    make_ssh_key(tmp_path / ".ssh" / "id_ed25519")
    detent("approver", "add", "ada", "--public-key", "~/.ssh/id_ed25519.pub").ok()
    shutil.copy(here / "approvers.toml", there)
    write(here.parent, "go", "")
    approve = ("approve", "work", "-m", "read it", "--sign")
    with started(there, "run", "try it", "--wait") as run:
        wait_until(lambda: is_running(here), during=run)
        with open_project(here, actor="looker") as project:
            # That of the start, and that of the turn.
            wait_until(lambda: len(project.checkpoints.positions(SESSION)) == 2, during=run)

        code, message, way_out = detent(*approve).error()
        assert (code, way_out) == (1, "detent files bring, then sign")
        assert message == "the files here are not those of the machine that does work; they differ in made.txt"
        assert detent("files", "bring").error()[1] == "this would add 1 file, as the checkpoint has them"
        # A decision without a signature is about the work; the question names no files of this machine.
        with open_project(here, actor="looker") as project:

            def look(statement: Statement) -> None:
                assert (statement.phase, statement.tree) == ("work", "")
                raise Refused("it was only a look")

            project.confirm = look
            with pytest.raises(Refused, match="only a look"):
                project.session(SESSION).approve("read it", phase="work")
        detent("files", "bring", "--yes").ok()
        detent(*approve).ok()

        assert run.wait(60) == 0, run.stderr.read()
    with open_project(there, actor="looker") as project:
        [vote] = project.session(SESSION).state.phases["work"].gates["approval"].votes.values()
    assert vote.reason == "read it"
