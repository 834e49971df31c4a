"""Every command of the tutorial and of the how-to pages prints what the page says; UPDATE_GOLDEN=1 writes it there."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from book.executed import run_page
from detent.topics.walkthrough import Prose, Step, parts
from tests.support import postgres_server, temporal_server

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "howto").glob("*.md"))]
#: The page that names servers.
MANY_MACHINES = DOCS / "howto" / "many-machines.md"

#: Languages of blocks that nobody types into a terminal.
NO_COMMANDS = ("```toml", "```json", "```yaml", "```python", "```text")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_print_what_it_says(page, tmp_path):
    assert any(isinstance(part, Step) and part.output is not None for part in parts(page.read_text("utf-8")))

    with servers(tmp_path) if page == MANY_MACHINES else no_servers() as hosts:
        assert run_page(page, hosts=hosts, update=bool(os.environ.get("UPDATE_GOLDEN"))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_with_a_command_is_run(page):
    """A block of commands is a `console` block. Other blocks hold files, settings and output."""
    text = [part.text for part in parts(page.read_text("utf-8")) if isinstance(part, Prose)]

    assert [block for block in text if block.startswith("```") and not block.startswith(NO_COMMANDS)] == []
    assert [block for block in text if re.search(r"^ {4}(?:detent|git|pip|pipx|uv|\$) ", block, re.MULTILINE)] == []


@contextmanager
def no_servers() -> Iterator[dict[str, str]]:
    yield {}


@contextmanager
def servers(directory: Path) -> Iterator[dict[str, str]]:
    """A Postgres and a Temporal, by the addresses that the page uses."""
    if reason := postgres_server.missing() or temporal_server.missing():
        pytest.skip(reason)
    postgres, temporal = postgres_server.PostgresServer(), temporal_server.TemporalServer(directory)
    try:
        postgres.start()
        temporal.start()
        yield {
            "db.example.org": f"127.0.0.1:{postgres.port}",
            "temporal.example.org:7233": f"127.0.0.1:{temporal.port}",
        }
    finally:
        temporal.stop()
        postgres.stop()
