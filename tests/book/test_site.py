"""The site builds without a warning, and a visit asks no other host for anything."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

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


class Links(HTMLParser):
    """The local links of a page, and the places that a link can lead to."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.places = {""}
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places.update(str(given[name]) for name in ("id", "name") if given.get(name))
        target = given.get("href") or given.get("src")
        if target and not urlsplit(target).scheme and not target.startswith("//"):
            self.targets.append(target)


def test_every_link_and_anchor_of_the_site_leads_somewhere(site):
    known = {page.resolve(): Links(page) for page in site.rglob("*.html") if page.name != "404.html"}
    broken = []
    for page, links in known.items():
        for target in links.targets:
            there = (page.parent / unquote(urlsplit(target).path)).resolve() if urlsplit(target).path else page
            there = there / "index.html" if there.is_dir() else there
            anchor = unquote(urlsplit(target).fragment)
            is_there = anchor in known[there].places if there in known else there.exists()
            broken += [] if is_there else [f"{page.name}: {target}"]

    assert sum(len(links.targets) for links in known.values()) > 2_000
    assert broken == []
