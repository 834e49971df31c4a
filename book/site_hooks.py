"""Hooks of MkDocs for the site: pages for users come first in the search, and words with digits do not break it."""

import logging
import re
from pathlib import Path
from typing import Any

#: The start of a page's path, and the weight of its words in the search; 1 for any other page.
_WEIGHTS = {"howto/": 2.0, "troubleshooting": 2.0, "faq": 2.0, "reference/": 0.5, "adr/": 0.2}
_WEIGHTS |= {"clients-testing": 0.3, "conformance": 0.3, "internals": 0.3, "performance": 0.5}
#: Lunr names a node of its word tree by letters and numbers of nodes, without a separator. A digit in a word can be
#: taken for a part of a number, and the search for another word then fails: github.com/olivernn/lunr.js/issues/503.
_NODE_NAME = re.compile(r"\b(\w+)=\1\+(\w+)\+(\w+)\.id(?=\}return \1\})")
_LOG = logging.getLogger("mkdocs.hooks.site")


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    for start, weight in _WEIGHTS.items():
        if page.file.src_uri.startswith(start):
            page.meta["search"] = {"boost": weight}
    return markdown


def on_post_build(*, config: Any, **_: object) -> None:
    for worker in Path(config.site_dir, "assets", "javascripts", "workers").glob("search.*.js"):
        text, changes = _NODE_NAME.subn(r'\1=\1+\2+\3.id+","', worker.read_text("utf-8"))
        if changes != 1:
            _LOG.warning("The search has no known form, so words with digits may break it: %s", worker.name)
        worker.write_text(text, "utf-8")
