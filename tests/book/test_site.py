"""The site builds without a warning, and a visit asks no other host for anything."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Attributes and CSS rules by which a browser loads something.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\ssrc=\"(https?:)?//|<link\b[^>]*href=\"https?://|url\(\"?https?://|@import"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="MkDocs is not installed: make docs installs it")
    built = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return built


def test_a_visit_makes_no_request_to_another_host(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 40
    assert [page.name for page in pages if _LOADED.search(page.read_text("utf-8"))] == []


def test_the_search_knows_every_page(site):
    index = (site / "search" / "search_index.json").read_text("utf-8")
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html") if page.name != "404.html"]
    assert [page for page in pages if f'"{page}' not in index] == []
