"""The page in Chromium: from a commit to the words on the screen, and the first paint of a large session.

`make test-ui` installs what it needs; without that the rows are skipped.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from typing import Any

from bench.measure import Setting
from bench.page import against, page_server
from bench.table import Row, Section
from bench.task_plans import fill_tasks
from bench.workload import make_project
from detent.core.workflow.graph import chain
from detent.engine.session import SessionHandle
from detent.store.state_home import digest
from tests.support.ui_tools import chromium

#: The goals of the page.
_P50_S, _P95_S, _PAINT_S = 0.150, 0.400, 1.0
_PHASES, _TASKS = 1_000, 10_000
_PATIENCE_MS = 30_000
#: Resolves with the time at which the words are in the document.
_WAIT_FOR = """words => { window.seen = new Promise(resolve => {
  const look = () => document.body.textContent.includes(words) && resolve(Date.now() / 1000);
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
  look();
}); }"""


def page_in_browser(setting: Setting) -> Section:
    program = chromium()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return _skipped("Playwright is not installed; make test-ui installs it")
    if program is None:
        return _skipped("no Chromium is installed")
    phases, tasks = setting.pick(_PHASES, 100), setting.pick(_TASKS, 1_000)
    root = os.path.join(setting.directory, "project")
    with make_project(root) as project:
        handle = project.start(chain("bench", [(f"Phase {number}", "") for number in range(phases)]), "Watch it")
        fill_tasks(project, handle.tasks, tasks)
        with page_server(root) as server, sync_playwright() as playwright:
            # As root Chromium refuses its sandbox.
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            with _tab(browser, server.origin, server.token) as tab:
                session = f"{server.origin}/#/p/{digest(os.fsencode(os.path.realpath(root)))}/s/{handle.id}"
                paints = [_paint(tab, session) for _ in range(setting.pick(9, 3))]
                tab.goto(f"{session}/log")
                _delay(tab, handle, -1)
                delays = [_delay(tab, handle, number) for number in range(setting.pick(50, 10))]
            browser.close()
    rows = (
        against("commit to the words on the page, p50", "s", median(delays), _P50_S),
        against("commit to the words on the page, p95", "s", quantiles(delays, n=20)[-1], _P95_S),
        against(f"first paint, {phases:,} phases and {tasks:,} tasks", "s", median(paints), _PAINT_S),
    )
    return Section(name="page-in-browser", rows=rows)


def _skipped(why: str) -> Section:
    return Section(name="page-in-browser", rows=(Row(what="the page in Chromium", skipped=why),))


@contextmanager
def _tab(browser: Any, origin: str, token: str) -> Iterator[Any]:
    context = browser.new_context()
    context.set_default_timeout(_PATIENCE_MS)
    context.add_init_script(f"sessionStorage.setItem('detent-token', '{token}')")
    tab = context.new_page()
    tab.goto(f"{origin}/#/needs")
    yield tab
    context.close()


def _delay(tab: Any, handle: SessionHandle, number: int) -> float:
    words = f"Task of round {number}."
    tab.evaluate(_WAIT_FOR, words)
    handle.tasks.add(words)
    committed = time.time()
    return float(tab.evaluate("window.seen")) - committed


def _paint(tab: Any, address: str) -> float:
    """From the start of the navigation until the session is drawn: its title and its graph."""
    tab.goto("about:blank")
    began = time.time()
    tab.goto(address, wait_until="commit")
    tab.locator("h1", has_text="Watch it").wait_for()
    tab.locator("main svg").first.wait_for()
    return time.time() - began
