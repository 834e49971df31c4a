"""`report`: how the session went, as Markdown."""

import os

import click

from detent.cli.request import Request, session_of, write_bytes
from detent.cli.verb import session_option, verb


@verb("report", example="detent report --out REPORT.md")
@session_option
@click.option("--out", metavar="FILE", help="Where to; standard output if not given.")
@click.pass_obj
def report_verb(request: Request, session: str | None, out: str | None) -> None:
    """Write a report of the session in Markdown.

    What was done, what proved it, what failed on the way, who decided what, and how to go back.
    """
    from detent.render.markdown.report import report_text

    with request.reading() as project:
        handle = session_of(project, session)
        state, text = handle.state, report_text(handle.state, handle.log())
    if out in (None, "-"):
        if request.json:
            request.answer(lambda _: text, {"session": state.id, "report": text})
        else:
            request.say_notices()
            write_bytes(text.encode())
        return
    path = os.path.join(request.directory, out or "")
    _write(path, text.encode())
    request.answer(lambda canvas: canvas.cut(f"wrote {path}", canvas.width), {"session": state.id, "written": path})


def _write(path: str, data: bytes) -> None:
    from detent.store import disk

    with disk.failing_as("write", path):
        disk.replace(path, data)
