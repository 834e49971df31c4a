"""Every command of the tutorial and of the how-to pages prints what the page says."""

from pathlib import Path

import pytest

from book.executed import run_page
from detent.topics.walkthrough import Step, parts

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_says(page):
    assert any(isinstance(part, Step) and part.output is not None for part in parts(page.read_text("utf-8")))

    assert run_page(page) == []
