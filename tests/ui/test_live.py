"""A killed server loses and doubles nothing, and eight tabs work at once."""

from tests.support.page_project import SESSION, TASK
from tests.support.waiting import wait_until

VERSIONS = "[...document.querySelectorAll('.commit')].map(row => Number(row.dataset.version))"


def test_a_killed_server_loses_and_doubles_nothing(fresh, tabs, at):
    for phase in ("plan", "build", "document"):
        fresh.hold(phase)
    link = fresh.serve()
    run = fresh.begin_run(TASK)
    fresh.wait_for_commits(1)
    tab = tabs().open(link)
    at(tab, f"s/{SESSION}/log")
    tab.locator(".commit").first.wait_for()
    fresh.kill_server()
    tab.get_by_text("Connection lost").wait_for()
    # The run goes on without the server.
    before = fresh.commits()
    fresh.release("plan")
    fresh.wait_for_commits(before + 3)
    fresh.serve()
    tab.locator(".connection.live").wait_for()
    fresh.release("document")
    fresh.kill_server()
    fresh.serve()
    fresh.release("build")
    run.wait()
    wait_until(lambda: tab.evaluate(VERSIONS) == list(range(fresh.commits(), 0, -1)))


def test_eight_tabs_show_the_same_commits(fresh, tabs, at):
    fresh.hold("build")
    link = fresh.serve()
    run = fresh.begin_run(TASK)
    fresh.wait_for_commits(1)
    window = tabs()
    first = window.open(link)
    first.get_by_role("heading", name="Needs you", level=1).wait_for()
    # The others have no token of their own: they get it from the first.
    opened = [first, *(window.open(fresh.address) for _ in range(7))]
    for tab in opened:
        tab.get_by_role("heading", name="Needs you", level=1).wait_for()
        at(tab, f"s/{SESSION}/log")
        tab.locator(".commit").first.wait_for()
    fresh.release("build")
    run.wait()
    for tab in opened:
        wait_until(lambda tab=tab: tab.evaluate(VERSIONS) == list(range(fresh.commits(), 0, -1)))
    # Another tab reads the stream when the one that did is closed.
    first.close()
    fresh.detent("approve", "accept", "--gate", "approval", "-m", "fine")
    for tab in opened[1:]:
        wait_until(lambda tab=tab: tab.evaluate(VERSIONS) == list(range(fresh.commits(), 0, -1)))


def test_a_tab_without_a_token_says_how_to_get_one(fresh, tabs):
    link = fresh.serve()
    stranger = tabs().open(fresh.address)
    stranger.get_by_text("detent ui --link").wait_for()
    tab = tabs().open(link)
    tab.get_by_role("heading", name="Needs you", level=1).wait_for()
    assert "token" not in tab.url
    # The link was for one use.
    again = tabs().open(link)
    again.get_by_text("detent ui --link").wait_for()
