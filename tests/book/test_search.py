"""Questions of users lead to the page that answers them, by the search of the site, without another host."""

import string
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote

import pytest

from tests.support.ui_tools import chromium

ANSWERS = {
    "how do I require two approvers": "howto/two-approvers.html",
    "why is my gate STALE": "troubleshooting.html",
    "how do I go back two phases": "checkpoints.html",
    "how do I add a linter": "howto/lint-gate.html",
    "how do I limit the cost": "howto/budget.html",
    "run agents in parallel": "howto/parallel-agents.html",
    "my approval is refused": "troubleshooting.html",
    "tests pass in my shell and fail in the gate": "troubleshooting.html",
    "verify in CI": "howto/ci.html",
    "sign with a hardware key": "decisions.html",
    "a worktree for each phase": "howto/worktrees.html",
    "journal is damaged": "recovery.html",
    "packages of a monorepo": "howto/monorepo.html",
    "uninstall": "howto/uninstall.html",
    "how do I install the page": "howto/install.html",
    "how large is an install": "howto/install.html",
    "run on many machines with Postgres": "howto/many-machines.html",
    "upgrade to a new version": "howto/upgrade.html",
    "import tasks from spec-kit": "howto/migrate.html",
    "what does exit code 6 mean": "troubleshooting.html",
    "detent.open in Python": "reference/python.html",
    "how do I set the test command": "troubleshooting.html",
    "environment variables of tests": "troubleshooting.html",
    "what do I commit to git": "faq.html",
    "how do I skip a phase": "faq.html",
    "how do I stop a run": "faq.html",
    "use my own agent script": "faq.html",
    "where is the state stored": "faq.html",
    "share sessions between two machines": "howto/many-machines.html",
    "agent deleted my tests": "troubleshooting.html",
    "continue a run after a crash": "faq.html",
    "which model does claude code use": "faq.html",
    "run the agent in docker": "faq.html",
    "notify slack when approval is needed": "faq.html",
    "where are the logs of the agent": "faq.html",
    "delete a session": "faq.html",
    "use detent with cursor": "faq.html",
    "how do I see what the agent changed": "faq.html",
    "bring back a deleted journal": "troubleshooting.html",
    "the run is too expensive": "faq.html",
    "windows": "howto/install.html",
    "github actions": "ci.html",
    "disable the sandbox": "sandbox.html",
    "what is a corridor": "glossary.html",
    "approve from my phone": "faq.html#can-i-approve-from-my-phone",
    "file was not restored by rollback": "troubleshooting.html#a-rollback-did-not-restore-a-file",
    "change the settings during a run": "faq.html#can-i-change-the-settings-during-a-run",
}
#: The answer is among this many results.
_SHOWN = 4
_PATIENCE_MS = 60_000
_IS_SHOWN = """([answer, shown]) => [...document.querySelectorAll('.md-search-result__item > a')]
    .slice(0, shown).some(link => link.getAttribute('href').replace(/[?][^#]*/, '').includes(answer))"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def page(site):
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make test-docs installs it")
    program = chromium()
    if program is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}/"
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.elsewhere = []
        opened.on("request", lambda asked: _note(opened.elsewhere, asked.url, address))
        opened.on("console", lambda message: opened.console.append(message.text))
        opened.console = []
        opened.address = address
        yield opened
        browser.close()
    server.shutdown()
    server.server_close()


def _note(elsewhere: list[str], url: str, address: str) -> None:
    if not url.startswith((address, "data:", "blob:")):
        elsewhere.append(url)


@pytest.mark.parametrize(("question", "answer"), ANSWERS.items())
def test_a_question_leads_to_its_page(page, question, answer):
    page.goto(f"{page.address}?q={quote(question)}")
    page.wait_for_function(_IS_SHOWN, arg=[answer, _SHOWN], timeout=_PATIENCE_MS)
    assert page.elsewhere == []


def test_every_word_of_the_site_can_be_searched_for(page):
    """Lunr takes a letter for the beginning of every word with it. One word that it stored wrongly fails the search."""
    for letter in string.ascii_lowercase:
        page.goto(f"{page.address}?q={letter}")
        page.wait_for_function(_IS_SHOWN, arg=["html", 1], timeout=_PATIENCE_MS)
    assert [text for text in page.console if "Invalid query" in text] == []
