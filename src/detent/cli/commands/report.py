"""`report`: writes the report of the session."""

import click

from detent.cli.request import Request, last_session, write_bytes, write_file
from detent.cli.verb import session_option, verb


@verb("report", example="detent report --out REPORT.md")
@session_option
@click.option("--format", "form", type=click.Choice(["md", "html", "json"]), default="md", help="Markdown by default.")
@click.option("--out", metavar="FILE", help="The file; standard output if not given.")
def report_verb(request: Request, session: str | None, form: str, out: str | None) -> None:
    """Write a report of the session in Markdown, HTML or JSON.

    Changed files, tests before and after, gates with their evidence, failures, who worked, decisions of people, cost,
    and commands to roll back. If no session is active, of the one in which something happened last.
    """
    import msgspec

    from detent.engine.checkpoints.changes import changes_of
    from detent.render.json.report import report_record
    from detent.render.markdown.html import report_html
    from detent.render.markdown.report import report_text

    with request.reading() as project:
        handle = last_session(project, session)
        request.watch(project)
        state, commits, changes = handle.state, list(handle.log()), changes_of(handle)
    text = report_text(state, commits, changes)
    if form == "html":
        text = report_html(text, state.id)
    elif form == "json":
        record = report_record(state, commits, changes)
        text = msgspec.json.format(msgspec.json.encode(record), indent=2).decode() + "\n"
    if out in (None, "-"):
        if request.json:
            request.answer(lambda _: text, {"session": state.id, "report": text})
        else:
            request.print_notices()
            write_bytes(text.encode())
        return
    path = write_file(request, out or "", text.encode())
    request.answer(
        lambda canvas: "\n".join(canvas.whole(f"wrote {path}")), {"session": state.id, "written": path, "format": form}
    )
