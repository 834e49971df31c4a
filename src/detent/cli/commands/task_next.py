"""`detent task next`. It does without click, so that it can be answered before click would be loaded."""

from typing import TYPE_CHECKING

from detent.cli.request import Request, is_active

if TYPE_CHECKING:
    from detent.core.task.row import Row


def show_next(request: Request) -> bool:
    """Tell the next task of the active session; False if there is more to be said than that."""
    with request.reading() as project:
        if project.active() is None:
            return False
        handle = project.session()
        row = handle.tasks.next()
        active = is_active(project, handle)
    if row is None:
        return False
    answer_next(request, handle.id, row, active=active)
    return True


def answer_next(request: Request, session: str, row: "Row", *, active: bool) -> None:
    from detent.cli.request import canvas, write_text

    named = "" if active else f" --session {session}"
    sheet = canvas()
    request.say_notices()
    lines = [sheet.cut(f"{row.id} {row.title}", sheet.width), "", *sheet.command(f"detent task start {row.id}{named}")]
    write_text("\n".join(lines))
