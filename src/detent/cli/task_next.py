"""The answer of `task next`, without click, so that the usual case need not load it."""

from typing import TYPE_CHECKING

from detent.cli.request import Request, is_active

if TYPE_CHECKING:
    from detent.core.task.row import Row
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
    request.answer(lambda canvas: next_text(handle.id, row, canvas=canvas, active=active), {})
    return True


def next_text(session: str, row: "Row", *, canvas: "Canvas", active: bool) -> str:
    named = "" if active else f" --session {session}"
    # A task in progress is the next one only if its holder is gone.
    taken = ["it is in progress, but its holder is gone"] if row.status == "active" else []
    lines = [f"{row.id} {row.title}", *taken]
    shown = [canvas.cut(line, canvas.width) for line in lines]
    return "\n".join([*shown, "", *canvas.command(f"detent task start {row.id}{named}")])
