"""`history`: lists the sessions that have ended."""

from detent.cli.request import Request, last
from detent.cli.verb import count_option, verb


@verb("history", example="detent history -n 5")
@count_option
def history_verb(request: Request, count: int) -> None:
    """List the sessions that have ended."""
    from detent.render.terminal.history import history_text

    with request.reading() as project:
        entries = project.history()
        if project.is_history_damaged():
            request.notices.append("history.jsonl has lines that cannot be read; detent doctor --fix rebuilds them")
    shown, left_out = last(entries, count)
    request.answer(
        lambda canvas: history_text(entries, left_out=left_out, canvas=canvas),
        {"history": shown, "left_out": left_out},
    )
