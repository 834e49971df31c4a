"""A session: graph, timeline, who works, cost, and the log that stays live."""

from tests.support.page_project import SESSION, SETTINGS, TASK, PageProject


def test_the_graph_shows_where_it_stands(look):
    tab = look(f"s/{SESSION}")
    graph = tab.get_by_role("group", name="Phases")
    graph.wait_for()
    assert graph.get_by_role("link").count() == 4
    assert "completed" in graph.get_by_role("link", name="build").get_attribute("aria-label")
    assert "needs you" in graph.get_by_role("link", name="accept").get_attribute("aria-label")
    # The two branches stand side by side.
    build, document = (tab.locator(f'[data-phase="{key}"]').bounding_box() for key in ("build", "document"))
    assert build["y"] == document["y"]
    assert build["x"] != document["x"]
    graph.get_by_role("link", name="build").click()
    tab.get_by_role("heading", name="build").wait_for()


def test_the_timeline_has_attempts_turns_and_failures(look):
    tab = look(f"s/{SESSION}")
    attempt = tab.locator(".attempt", has_text="build")
    attempt.wait_for()
    text = attempt.inner_text()
    assert "turn 2" in text
    assert "Wallet.pay refuses an overdraft" in text
    assert "failed, exit code 1" in text
    assert "ValueError not raised" in text


def test_tokens_and_cost_are_counted(look):
    tab = look(f"s/{SESSION}")
    meters = tab.locator(".meters")
    meters.wait_for()
    assert "7.7k" in meters.inner_text()
    assert "$0.10" in meters.inner_text()


def test_times_are_relative_and_absolute(look):
    tab = look(f"s/{SESSION}/log")
    time = tab.locator(".commit time").first
    time.wait_for()
    assert "ago" in time.inner_text() or time.inner_text() == "now"
    tab.keyboard.press("t")
    assert ":" in time.inner_text()
    assert time.get_attribute("datetime").endswith("Z")


#: An agent that speaks as Claude Code does, and uses a tool while it is held.
SPEAKER = """#!/usr/bin/env python
import json, os, sys, time
from pathlib import Path

def say(**line):
    print(json.dumps(line), flush=True)

def message(role, **block):
    say(type=role, message={"id": "m1", "content": [block]})

if "--version" in sys.argv:
    sys.exit(print("1.0"))
sys.stdin.read()
say(type="system", subtype="init", session_id="s1", model="scripted-1")
message("assistant", type="tool_use", id="t1", name="Bash", input={"command": "make slow-checks"})
while Path(os.environ["HOLD_DIRECTORY"], "hold-plan").exists():
    time.sleep(0.05)
message("user", type="tool_result", tool_use_id="t1")
say(type="result", result="Summary: done", usage={})
"""
SPEAKING = SETTINGS.replace(
    'adapter = "command"\ncommand = "exec python agent.py"\nresult = "json"',
    ('adapter = "claude-code"\ncommand = "%s"'),
)


def test_the_tool_in_use_is_shown_with_the_agent_and_its_model(tmp_path, tabs):
    project = PageProject(tmp_path, settings=SPEAKING % (tmp_path / "wallet/speaker"), files={"speaker": SPEAKER})
    (project.root / "speaker").chmod(0o755)
    project.hold("plan")
    try:
        link = project.serve()
        project.begin_run(TASK)
        project.wait_for_commits(1)
        tab = tabs().open(link)
        tab.get_by_role("link", name=TASK).click()
        job = tab.locator(".job", has_text="make slow-checks")
        job.wait_for()
        assert job.locator(".doing code").inner_text() == "Bash"
        assert "scripted-1" in job.inner_text()
        project.release("plan")
        job.wait_for(state="detached")
    finally:
        project.stop()


def test_commits_and_the_work_of_agents_appear_while_the_page_is_open(fresh, tabs):
    fresh.hold("plan")
    fresh.hold("build")
    link = fresh.serve()
    fresh.begin_run(TASK)
    fresh.wait_for_commits(1)
    tab = tabs().open(link)
    tab.get_by_role("link", name=TASK).click()
    tab.locator(".job", has_text="reading what plan is about").wait_for()
    assert "script" in tab.locator(".job").inner_text()
    fresh.release("plan")
    # The agents of both branches, without loading the page again.
    tab.locator(".job", has_text="build").wait_for()
    tab.locator('.node[aria-label^="plan: completed"]').wait_for()
    tab.keyboard.press("g")
    tab.keyboard.press("l")
    tab.locator(".commit").first.wait_for()
    seen = tab.locator(".commit").count()
    fresh.release("build")
    tab.locator(".commit", has_text="finished 2 of 4 build").wait_for()
    assert tab.locator(".commit").count() > seen


def test_the_log_is_filtered(look):
    tab = look(f"s/{SESSION}/log")
    tab.locator(".commit", has_text="finished 1 of 4 plan").wait_for()
    tab.get_by_label("Kind").select_option("gate")
    tab.locator(".commit", has_text="finished 1 of 4 plan").wait_for(state="detached")
    assert tab.locator(".commit").count() > 0
    tab.get_by_label("Kind").select_option("")
    tab.get_by_label("Filter the log by text").fill("says what a wallet does")
    tab.locator(".commit").nth(1).wait_for(state="detached")
    assert "says what a wallet does" in tab.locator(".commit").inner_text()


def test_a_thousand_phases_are_shown_and_only_those_that_are_seen_are_drawn(tmp_path, tabs, at):
    phases = ", ".join(
        f'{{ key = "p{number:04}", needs = [{f"{chr(34)}p{number - 1:04}{chr(34)}" if number else ""}] }}'
        for number in range(1_000)
    )
    project = PageProject(tmp_path, settings=f"[workflows.long]\nphases = [{phases}]\n")
    try:
        project.detent("start", "long", TASK)
        tab = tabs().open(project.serve())
        at(tab, f"s/{SESSION}")
        tab.locator('[data-phase="p0000"]').wait_for()
        assert "of 1000" in tab.locator(".meters").inner_text()
        assert tab.locator(".node").count() < 200
        tab.locator(".graph").evaluate("box => { box.scrollTop = box.scrollHeight }")
        tab.locator('[data-phase="p0999"]').wait_for()
        assert tab.locator(".node").count() < 200
    finally:
        project.stop()
