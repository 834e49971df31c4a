"""The report as one HTML page. It reads only the Markdown that the report itself writes."""

import re
from collections.abc import Iterator
from html import escape

from detent.core.task.title import unescaped

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; }}
table {{ border-collapse: collapse; }} td, th {{ border: 1px solid #bbb; padding: .2em .6em; text-align: left; }}
pre {{ background: #f3f3f3; padding: .6em; overflow-x: auto; }}
</style></head><body>
{body}
</body></html>
"""
_FENCE = re.compile(r"\s*(`{3,})")
_SPAN = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*")
_CELL = re.compile(r"(?<!\\)\|")


def report_html(markdown: str, title: str) -> str:
    return _PAGE.format(title=escape(title), body="\n".join(_blocks(markdown.split("\n"))))


def _blocks(lines: list[str]) -> Iterator[str]:
    rest = iter(lines)
    table: list[str] = []
    for line in rest:
        if line.startswith("|"):
            table.append(line)
            continue
        if table:
            yield _table(table)
            table = []
        if (fence := _FENCE.match(line)) is not None:
            yield f"<pre>{escape(chr(10).join(_until(rest, fence[1])))}</pre>"
        elif line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            yield f"<h{level}>{_text(line[level:].strip())}</h{level}>"
        elif line.lstrip().startswith("- "):
            indent = len(line) - len(line.lstrip())
            yield f'<p style="margin: 0 0 0 {indent / 2 + 1}em">• {_text(line.strip()[2:])}</p>'
        elif line.strip() and not line.startswith("<!--"):
            yield f"<p>{_text(line.strip())}</p>"
    if table:
        yield _table(table)


def _until(lines: Iterator[str], fence: str) -> Iterator[str]:
    for line in lines:
        if line.strip() == fence:
            return
        yield line


def _table(lines: list[str]) -> str:
    head, _, *rows = ([cell.strip() for cell in _CELL.split(line.strip().strip("|"))] for line in lines)
    body = [_row(head, "th"), *(_row(row, "td") for row in rows)]
    return f"<table>{''.join(body)}</table>"


def _row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{_text(cell)}</{tag}>' for cell in cells)}</tr>"


def _text(text: str) -> str:
    """One line with its code and bold parts; everything else is text."""
    shown, end = "", 0
    for span in _SPAN.finditer(text):
        shown += escape(unescaped(text[end : span.start()]))
        shown += f"<code>{escape(span[1])}</code>" if span[1] else f"<b>{escape(unescaped(span[2]))}</b>"
        end = span.end()
    return shown + escape(unescaped(text[end:]))
