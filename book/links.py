"""Checks the links of Markdown pages: every relative link leads to a file, every anchor to a heading."""

import re
from pathlib import Path

_LINK = re.compile(
    r"(?<!`)\[(?:[^\]]|\[[^\]]*\])*\]\((?P<target>[^)\s]+)\)|<(?:img|source|a)\b[^>]*?(?:src|srcset|href)=\"(?P<raw>[^\"]+)\""
)
_HEADING = re.compile(r"^#{1,6} +(.*?)\s*$", re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?^\1$|^(?: {4}|\t).*$|`[^`\n]+`", re.MULTILINE | re.DOTALL)


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub and MkDocs make them."""
    without_code = re.sub(r"^(```|~~~).*?^\1$", "", page, flags=re.MULTILINE | re.DOTALL)
    return {slug(heading) for heading in _HEADING.findall(without_code)} | set(re.findall(r'id="([^"]+)"', page))


def slug(heading: str) -> str:
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text.lower()).strip())


def broken_links(pages: list[Path], root: Path) -> list[str]:
    """One line a link that leads nowhere. Links to other hosts are not followed."""
    problems = []
    for path in pages:
        text = _CODE.sub("", path.read_text("utf-8"))
        for match in _LINK.finditer(text):
            target = match["target"] or match["raw"]
            if re.match(r"\w+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name).resolve() if name else path.resolve()
            if not there.exists():
                problems.append(f"{path.relative_to(root)}: {target} does not exist")
            elif anchor and there.suffix == ".md" and anchor not in anchors(there.read_text("utf-8")):
                problems.append(f"{path.relative_to(root)}: {target} names no heading")
    return problems
