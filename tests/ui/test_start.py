"""Start: a form with the graph of the workflow, and a run that the page started."""

from tests.support.page_project import SESSION, TASK


def test_a_run_is_started_from_the_page(fresh, tabs, at):
    tab = tabs().open(fresh.serve())
    at(tab, "start")
    tab.get_by_role("combobox", name="Workflow").select_option("trial")
    graph = tab.get_by_role("group", name="Phases of the workflow")
    graph.wait_for()
    assert graph.locator(".node").count() == 4
    tab.get_by_role("textbox", name="Task").fill(TASK)
    tab.get_by_role("button", name="Start the run").click()
    tab.get_by_role("heading", name=TASK).wait_for()
    # It works until a person has to approve.
    tab.get_by_text("gate approval is PENDING").wait_for(timeout=40_000)
    assert fresh.commits() > 10


def test_a_session_alone_is_started_and_nothing_runs(fresh, tabs, at):
    tab = tabs().open(fresh.serve())
    at(tab, "start")
    tab.get_by_role("combobox", name="Workflow").select_option("trial")
    tab.get_by_role("textbox", name="Task").fill(TASK)
    tab.get_by_label("Run it").uncheck()
    tab.get_by_role("button", name="Start the session").click()
    tab.get_by_role("heading", name=TASK).wait_for()
    assert fresh.commits(SESSION) == 1


def test_another_workflow_shows_another_graph(fresh, tabs, at):
    tab = tabs().open(fresh.serve())
    at(tab, "start")
    tab.get_by_role("combobox", name="Workflow").select_option("feature")
    nodes = tab.get_by_role("group", name="Phases of the workflow").locator(".node")
    nodes.nth(5).wait_for()
    tab.get_by_role("combobox", name="Size").select_option("light")
    tab.locator('.node[aria-label*="skipped"]').first.wait_for()
