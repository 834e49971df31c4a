"""Tasks: the board, one task, and ten thousand of them."""

from tests.support.page_project import SESSION, TASK

MANY = 10_000


def test_a_task_is_added_blocked_released_and_split(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/tasks")
    tab.get_by_text("No task yet.").wait_for()
    tab.get_by_role("button", name="Add a task").click()
    tab.get_by_label("Title").fill("Round amounts")
    tab.get_by_role("dialog").get_by_role("button", name="Add").click()
    card = tab.get_by_role("region", name="Ready").get_by_text("Round amounts")
    card.click()
    tab.get_by_role("heading", name="Round amounts").wait_for()

    tab.get_by_role("button", name="Block").click()
    tab.get_by_label("Why").fill("which currency?")
    tab.get_by_role("dialog").get_by_role("button", name="Block").click()
    tab.get_by_role("button", name="Unblock").click()
    tab.get_by_role("dialog").get_by_role("button", name="Unblock").click()
    tab.get_by_role("button", name="Split").click()
    tab.get_by_label("The parts").fill("Round down\nRound up")
    tab.get_by_role("dialog").get_by_role("button", name="Split").click()
    tab.get_by_role("link", name="Board").click()
    tab.get_by_role("region", name="Ready").get_by_text("Round up").wait_for()
    told = fresh.detent("log", "--json")
    assert "which currency?" in told


def test_a_task_is_edited_and_a_wrong_document_is_refused(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    fresh.detent("task", "add", "Round amounts")
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/tasks/IMPL-1")
    tab.get_by_role("button", name="Edit").click()
    field = tab.get_by_label("The document of the task")
    text = field.input_value()
    field.fill("{")
    tab.get_by_role("button", name="Save").click()
    tab.get_by_role("alert").wait_for()
    field.fill(text.replace("Round amounts", "Round all amounts"))
    tab.get_by_role("button", name="Save").click()
    tab.get_by_role("heading", name="Round all amounts").wait_for()


def test_who_holds_a_task_and_what_waits_for_it(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    fresh.detent("task", "add", "Round amounts")
    fresh.detent("task", "add", "Print amounts", "--after", "IMPL-1")
    fresh.detent("task", "start", "IMPL-1")
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/tasks")
    active = tab.get_by_role("region", name="Active")
    active.get_by_text("Round amounts").wait_for()
    waiting = tab.get_by_role("region", name="Waiting").locator(".card")
    waiting.wait_for()
    assert "waits for IMPL-1" in waiting.inner_text()


def test_a_task_is_done_with_a_line_for_each_of_its_conditions(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    fresh.detent("task", "add", "Round amounts", "--accept", "halves go up", "--accept", "zero stays zero")
    fresh.detent("task", "start", "IMPL-1")
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/tasks/IMPL-1")
    tab.get_by_role("button", name="Done").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("How each condition is met").fill("test_halves")
    dialog.get_by_role("button", name="Done").click()
    dialog.get_by_role("alert").wait_for()
    dialog.get_by_label("How each condition is met").fill("test_halves\ntest_zero")
    dialog.get_by_role("button", name="Done").click()
    dialog.wait_for(state="detached")
    tab.get_by_text("test_zero").first.wait_for()


def test_ten_thousand_tasks_stay_usable(fresh, tabs, at):
    fresh.detent("start", "trial", TASK)
    (fresh.root / "many.md").write_text("".join(f"- [ ] Work number {number}\n" for number in range(MANY)))
    fresh.detent("task", "import", "--from", "markdown", "many.md")
    tab = tabs().open(fresh.serve())
    at(tab, f"s/{SESSION}/tasks")
    ready = tab.get_by_role("region", name="Ready")
    ready.get_by_text("Work number 0", exact=True).wait_for()
    assert "10,000" in ready.inner_text()
    assert tab.locator(".card").count() < 200
    ready.locator(".virtual").evaluate("box => { box.scrollTop = box.scrollHeight }")
    ready.get_by_text(f"Work number {MANY - 1}").wait_for()
    assert tab.locator(".card").count() < 200
    tab.get_by_label("Search the tasks").fill("number 4711")
    ready.get_by_text("Work number 4711").wait_for()
