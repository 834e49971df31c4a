"""The site builds without a warning, and a visit asks no other host for anything."""

import re

#: Attributes and CSS rules by which a browser loads something.
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)\b[^>]*\ssrc=\"(https?:)?//|<link\b[^>]*href=\"https?://|url\(\"?https?://|@import"
)


def test_a_visit_makes_no_request_to_another_host(site):
    pages = [*site.rglob("*.html"), *site.rglob("*.css")]
    assert len(pages) > 40
    assert [page.name for page in pages if _LOADED.search(page.read_text("utf-8"))] == []


def test_the_search_knows_every_page(site):
    index = (site / "search" / "search_index.json").read_text("utf-8")
    pages = [page.relative_to(site).as_posix() for page in site.rglob("*.html") if page.name != "404.html"]
    assert [page for page in pages if f'"{page}' not in index] == []
