"""The tests of this folder open the page in Chromium. They run only when the folder is named: `make test-ui`."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.page_project import NEEDS_A_PERSON, TASK, PageProject
from tests.support.ui_tools import chromium

HERE = Path(__file__).parent
PHONE, DESK = 390, 1280
#: A test that waits longer than this for something on the page has failed.
PATIENCE_MS = 60_000


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    named = [Path(argument.split("::")[0]).resolve() for argument in config.args]
    return None if any(path.is_relative_to(HERE) for path in named) else True


@pytest.fixture(scope="session")
def browser():
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-ui installs it")
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with api.sync_playwright() as playwright:
        # As root Chromium refuses its sandbox.
        running = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield running
        running.close()


class Tabs:
    """Tabs of one browser window with a storage of its own. Whatever a test does, no script of the page fails."""

    def __init__(self, browser: Any, **options: Any) -> None:
        self.context = browser.new_context(**options)
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.problems: list[str] = []

    def open(self, address: str) -> Any:
        tab = self.context.new_page()
        tab.on("pageerror", lambda error: self.problems.append(str(error)))
        tab.on("console", lambda message: message.type == "error" and self._say(message.text))
        tab.goto(address)
        return tab

    def _say(self, text: str) -> None:
        # The browser itself reports a refusal of the server, and a server that is gone; the page shows both.
        if not text.startswith("Failed to load resource"):
            self.problems.append(text)


@pytest.fixture
def tabs(browser) -> Iterator[Callable[..., Tabs]]:
    """Makes a window: `tabs(width=390, color_scheme="dark")`."""
    opened: list[Tabs] = []

    def make(width: int = DESK, **options: Any) -> Tabs:
        opened.append(Tabs(browser, viewport={"width": width, "height": 844 if width == PHONE else 800}, **options))
        return opened[-1]

    yield make
    for each in opened:
        each.context.close()
        assert each.problems == []


@pytest.fixture
def fresh(tmp_path) -> Iterator[PageProject]:
    """A project with the server of its page. Nothing was started in it."""
    project = PageProject(tmp_path)
    try:
        yield project
    finally:
        project.stop()


@pytest.fixture
def waiting(fresh) -> PageProject:
    """A run ended because a person has to approve `accept`."""
    fresh.detent("run", TASK, expect=NEEDS_A_PERSON)
    return fresh


@pytest.fixture(scope="session")
def shown(tmp_path_factory) -> Iterator[PageProject]:
    """The same for tests that change nothing: they share it."""
    project = PageProject(tmp_path_factory.mktemp("shown"))
    try:
        project.detent("run", TASK, expect=NEEDS_A_PERSON)
        project.serve()
        yield project
    finally:
        project.stop()


@pytest.fixture
def look(shown, tabs):
    """A tab that shows an address of the shared project: `look("s/…")` is below the project."""

    def open_at(path: str = "", **options: Any) -> Any:
        tab = tabs(**options).open(shown.link())
        tab.get_by_role("heading", name="Needs you", level=1).wait_for()
        if path:
            tab.evaluate("address => { location.hash = address }", f"{project_address(tab)}/{path}")
        return tab

    return open_at


@pytest.fixture
def at():
    """Shows another address in a tab: `at(tab, "s/…")` is below its project."""

    def go(tab: Any, path: str) -> None:
        tab.evaluate("address => { location.hash = address }", f"{project_address(tab)}/{path}")

    return go


def project_address(tab: Any) -> str:
    """The address of the only project, from the menu."""
    return str(tab.locator(".menu-project a").first.get_attribute("href"))
