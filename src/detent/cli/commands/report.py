"""`report`: writes the report of the session."""

import click

from detent.cli.request import Request, last_session, write_bytes, write_file
from detent.cli.verb import session_option, verb


@verb("report", example="detent report --out REPORT.md")
@session_option
@click.option("--out", metavar="FILE", help="The file; standard output if not given.")
def report_verb(request: Request, session: str | None, out: str | None) -> None:
    """Write a report of the session in Markdown.

    Work, evidence, failures, decisions of people, and commands to roll back.
    """
    from detent.render.markdown.report import report_text

    with request.reading() as project:
        handle = last_session(project, session)
        state, text = handle.state, report_text(handle.state, handle.log())
    if out in (None, "-"):
        if request.json:
            request.answer(lambda _: text, {"session": state.id, "report": text})
        else:
            request.print_notices()
            write_bytes(text.encode())
        return
    path = write_file(request, out or "", text.encode())
    request.answer(lambda canvas: "\n".join(canvas.whole(f"wrote {path}")), {"session": state.id, "written": path})
