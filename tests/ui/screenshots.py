"""Makes the pictures of docs/images: every screen, at a desk and on a phone, in light and dark.

    python -m tests.ui.screenshots [DIRECTORY]

It decides as a person, so start it at a terminal, or by `python -m tests.support.attended`. Pillow makes the pictures
small; it has to be installed.
"""

import io
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from detent.engine.actor import account
from tests.support.page_project import NEEDS_A_PERSON, SESSION, TASK, PageProject
from tests.support.ui_tools import chromium

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
SCHEMES = ("light", "dark")
EARLIER = ("Read amounts from a file", "Refuse negative amounts", "Print a receipt")
TASKS = ("Round amounts down", "Say what an overdraft is", "Name the currency", "Write the release note")
#: Name of the picture to address below the project; None is the first screen.
SCREENS: dict[str, str | None] = {
    "needs": None,
    "project": "",
    "session": f"s/{SESSION}",
    "log": f"s/{SESSION}/log",
    "gate": f"s/{SESSION}/gate/build/tests",
    "review": f"s/{SESSION}/review/build",
    "checkpoints": f"s/{SESSION}/checkpoints",
    "tasks": f"s/{SESSION}/tasks",
    "history": "history",
    "start": "start",
}
SETTLED_MS = 900
COLOURS = 128
#: Puts other words in the place of the machine's own: its account, its name, the directory of the pictures.
RENAME = """(words) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walker.nextNode()); )
        for (const [own, shown] of Object.entries(words))
            node.data = node.data.replace(new RegExp(`(?<![\\\\w-])${own}(?![\\\\w-])`, "g"), shown);
}"""


def main(directory: Path) -> None:
    from playwright.sync_api import sync_playwright

    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="detent-pictures-") as place, sync_playwright() as playwright:
        project = PageProject(Path(place))
        try:
            prepare(project)
            project.serve()
            browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
            for size in SIZES:
                for scheme in SCHEMES:
                    shoot(browser, project, directory, size, scheme)
            browser.close()
        finally:
            project.stop()


def prepare(project: PageProject) -> None:
    """Sessions that ended, one that waits for an approval, tasks in every column, and a session at work."""
    original = {path: (project.root / path).read_text() for path in ("wallet.py", "test_wallet.py")}
    for task in EARLIER:
        project.detent("run", task, expect=NEEDS_A_PERSON)
        project.detent("approve", "accept", "--gate", "approval", "-m", "read it")
        project.detent("run")
        for path, text in original.items():
            (project.root / path).write_text(text)
    project.detent("run", TASK, expect=NEEDS_A_PERSON)
    for number, title in enumerate(TASKS):
        project.detent("task", "add", title, *(("--after", "IMPL-1") if number == 1 else ()))
    project.detent("task", "start", "IMPL-1")
    project.detent("task", "block", "IMPL-3", "-m", "dollars or euros?")


def shoot(browser: Any, project: PageProject, directory: Path, size: str, scheme: str) -> None:
    width, height = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(project.link())
    tab.get_by_role("article").first.wait_for()
    home = tab.locator(".menu-project a").first.get_attribute("href")
    for name, path in SCREENS.items():
        if path is not None:
            tab.evaluate("address => { location.hash = address }", f"{home}/{path}")
        tab.wait_for_timeout(SETTLED_MS)
        tab.evaluate(RENAME, {account(): "ada", os.uname().nodename: "laptop", str(project.root.parent): "~"})
        save(tab.screenshot(), directory / f"page-{name}-{size}-{scheme}.png")
    context.close()


def save(picture: bytes, path: Path) -> None:
    from PIL import Image

    with Image.open(io.BytesIO(picture)) as opened:
        opened.convert("RGB").quantize(COLOURS).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
