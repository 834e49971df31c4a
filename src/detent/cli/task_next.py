"""The answer of `task next`, without click, so that the usual case need not load it."""

from typing import TYPE_CHECKING

from detent.cli.request import Request, is_active

if TYPE_CHECKING:
    from detent.render.terminal.canvas import Canvas


def show_next(request: Request) -> bool:
    """Print the next task of the active session; False if there is none, or no session."""
    with request.reading() as project:
        if project.active() is None:
            return False
        handle = project.session()
        row = handle.tasks.next()
        active = is_active(project, handle)
    if row is None:
        return False
    request.answer(lambda canvas: next_text(handle.id, row.id, row.title, canvas=canvas, active=active), {})
    return True


def next_text(session: str, task: str, title: str, *, canvas: "Canvas", active: bool) -> str:
    named = "" if active else f" --session {session}"
    lines = [canvas.cut(f"{task} {title}", canvas.width), "", *canvas.command(f"detent task start {task}{named}")]
    return "\n".join(lines)
