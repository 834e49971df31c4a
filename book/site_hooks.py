"""Hooks of MkDocs for the site: pages for users come before reference and design records in the search."""

from typing import Any

#: The start of a page's path, and the weight of its words in the search; 1 for any other page.
_WEIGHTS = {"howto/": 2.0, "troubleshooting": 2.0, "faq": 2.0, "reference/": 0.5, "adr/": 0.2}
_WEIGHTS |= {"clients-testing": 0.3, "conformance": 0.3, "internals": 0.3, "performance": 0.5}


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    for start, weight in _WEIGHTS.items():
        if page.file.src_uri.startswith(start):
            page.meta["search"] = {"boost": weight}
    return markdown
