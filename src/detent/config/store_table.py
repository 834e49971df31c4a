"""Writes the table `[store]` into the text of `detent.toml`, and leaves every other line as it is."""

import json
import os

from detent.config.place import CONFIG
from detent.config.settings import parse_settings
from detent.errors import Invalid

_TABLE = "[store]"


def with_store(text: str, url: str, project: str) -> str:
    """The text with that store in place of the one that it named."""
    before = without_store(text).rstrip("\n")
    comment = "# The journals are in Postgres. No password stands here: see docs/scale.md."
    return "\n".join(
        [
            *([before, ""] if before else []),
            comment,
            _TABLE,
            f"url = {json.dumps(url)}",
            f"project = {json.dumps(project)}",
            "",
        ]
    )


def without_store(text: str) -> str:
    """The text without the table; the comment that Detent wrote above it goes too."""
    kept: list[str] = []
    is_inside = False
    for line in text.splitlines():
        is_header = line.strip().startswith("[")
        if line.split("#")[0].strip() == _TABLE:
            is_inside = True
            while kept and (not kept[-1].strip() or kept[-1].startswith("# The journals are in Postgres.")):
                kept.pop()
            continue
        is_inside = is_inside and not is_header
        if not is_inside:
            kept.append(line)
    result = "\n".join(kept) + ("\n" if kept else "")
    if parse_settings(result, CONFIG).store.url is not None:
        raise Invalid(
            f"{CONFIG} names its store in a way that cannot be edited", way_out=f"write it as a table {_TABLE}"
        )
    return result


def write_store(root: str, url: str | None, project: str = "") -> None:
    """Record the store of the project in `detent.toml`; with None its files."""
    path = os.path.join(root, CONFIG)
    text = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    after = without_store(text) if url is None else with_store(text, url, project)
    if after == text:
        return
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.write(after)
    os.replace(path + ".tmp", path)
