"""Runs that the page starts: processes of their own, shown while they work, and stopped as Ctrl-C stops them."""

import os

import pytest

from detent.engine.project import open_project
from detent.store.state_home import digest
from tests.support.run_process import Scene
from tests.support.waiting import is_running, until, wait_until

PHASES = '{ key = "work" }'
WORKS = "cat >/dev/null\ntouch did-it\necho done\n"
WAITS = "cat >/dev/null\ntouch working\nwhile [ ! -e go ]; do sleep 0.05; done\ntouch did-it\necho done\n"


def address(scene):
    return f"/api/p/{digest(os.fsencode(scene.directory))}"


@pytest.fixture
def scene(tmp_path):
    return lambda script: Scene(tmp_path, PHASES, script)


def test_a_run_is_started_from_the_form_and_does_its_work(page, scene):
    place = scene(WORKS)
    with open_project(place.directory) as project:
        # The index has the projects that have a session.
        project.start("trial", "the first one").cancel("enough")
    started = page.post(f"{address(place)}/start", workflow="trial", task="try it", run=True, yes=True).ok()

    assert started["run"]["started"] is True
    wait_until(lambda: page.get(f"{address(place)}/s/{started['session']}").ok()["status"] == "completed")
    with open_project(place.directory) as project:
        worked = [commit.actor for commit in project.session(started["session"]).log()][-1]
    assert (worked.kind, worked.mark) == ("runner", "")


def test_a_run_outlives_the_server_is_shown_and_is_stopped(page, scene):
    place = scene(WAITS)
    with open_project(place.directory) as project:
        session = f"{address(place)}/s/{project.start('trial', 'try it').id}"

    with page.stream(f"{session}/events") as messages:
        started = page.post(f"{session}/run", yes=True).ok()
        assert page.post(f"{session}/run").error[:2] == (409, "conflict")
        shown = next(m for m in messages if m.event == "run" and m.data["run"] and m.data["run"]["jobs"])

    assert (shown.data["runner"]["pid"], shown.data["run"]["jobs"][0]["phase"]) == (started["pid"], "work")
    assert page.get(session).ok()["run"]["jobs"][0]["agent"] == "script"
    # Below no process of the server: the run is not a part of it.
    with open(f"/proc/{started['pid']}/stat", encoding="utf-8", errors="replace") as stat:
        assert int(stat.read().rpartition(")")[2].split()[1]) != page.process.pid
    page.post(f"{session}/stop").ok()
    assert until(lambda: not is_running(started["pid"]))
    assert page.post(f"{session}/stop").error[0] == 404


def test_a_run_that_cannot_begin_says_why(page, scene):
    place = scene(WORKS)
    (place.directory / "detent.toml").write_text(
        (place.directory / "detent.toml").read_text().replace('adapter = "command"', 'adapter = "nowhere"')
    )
    with open_project(place.directory) as project:
        session = f"{address(place)}/s/{project.start('trial', 'try it').id}"

    refused = page.post(f"{session}/run")

    assert refused.status == 409
    assert "there is no adapter 'nowhere'" in refused.error[2]
