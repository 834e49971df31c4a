"""`task import` and `task export`: tasks of other tools, and for them."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.request import Request, session_of, write_text
from detent.cli.task_argument import STDIN, answer_moved, parse_json, read_json, read_text
from detent.cli.verb import session_option, verb
from detent.clients.registry import CLIENTS
from detent.errors import Invalid, NotFound

if TYPE_CHECKING:
    from detent.core.session.session import Session
    from detent.core.task.exchange.documents import Imported
    from detent.core.task.exchange.draft import Draft

#: The clients whose own task lists can be read, by the name of their program.
_CLIENTS = {client.program: client for client in CLIENTS.values() if client.task_list}
_FORMATS = ("markdown", *_CLIENTS, "task-master", "backlog")
#: Files of a directory that are read.
_MOST_FILES = 10_000


@verb("import", example="detent task import --from markdown PLAN.md --dry-run")
@click.argument("path", metavar="PATH")
@click.option("--from", "source", type=click.Choice(_FORMATS), required=True, help="What wrote them.")
@click.option("--dry-run", is_flag=True, help="Show what would be added, and add nothing.")
@click.option(
    "--drop-unknown", is_flag=True, help="Leave out dependencies on tasks that are not there, with a warning."
)
@click.option("--headings", is_flag=True, help="With markdown: each heading that has items contains them.")
@click.option("--tag", help="With task-master: which tag, if there are several.")
@session_option
@click.pass_obj
def import_tasks(
    request: Request,
    path: str,
    *,
    source: str,
    dry_run: bool,
    drop_unknown: bool,
    headings: bool,
    tag: str | None,
    session: str | None,
) -> None:
    """Add the tasks of another tool, all or none.

    PATH is a Markdown checklist, the JSON of a client's own tasks or todos or the directory that has one file per task,
    tasks.json of task-master, or the tasks directory of Backlog.md; - reads standard input. They get new numbers behind
    those that there are.
    """
    drafts = _drafts(request, path, source, headings=headings, tag=tag)
    if not drafts:
        raise Invalid(f"{path} has no tasks that could be taken over", way_out="detent task import --help")
    with request.reading() if dry_run else request.changing() as project:
        handle = session_of(project, session) if dry_run else project.session(session)
        found = _numbered(handle.state, drafts, drop_unknown=drop_unknown)
        if not dry_run:
            outcome = handle.tasks.write(found.documents, new=True, reason=f"imported from {os.path.basename(path)}")
            answer_moved(request, project, handle, outcome, warnings=found.warnings, ids=found.ids)
            return
    _answer_dry(request, handle.state, found)


@verb("export", example="detent task export --to markdown PLAN.md")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--to", "form", type=click.Choice(["markdown"]), required=True, help="In which form.")
@click.option("--overwrite", is_flag=True, help="Even if FILE is there already.")
@session_option
@click.pass_obj
def export_tasks(request: Request, file: str | None, *, form: str, overwrite: bool, session: str | None) -> None:
    """Write the tasks as a checklist that import reads back."""
    from detent.core.task.exchange.markdown import to_markdown
    from detent.render.size import counted
    from detent.store import disk

    with request.reading() as project:
        rows = session_of(project, session).tasks.rows()
    text = to_markdown(rows)
    if file in (None, STDIN):
        if request.json:
            request.answer(lambda _: text, {"format": form, "tasks": len(rows), "text": text})
            return
        request.say_notices()
        write_text(text.removesuffix("\n"))
        return
    path = os.path.normpath(os.path.join(request.directory, file or ""))
    if os.path.exists(path) and not overwrite:
        raise Invalid(f"{file} is there already", way_out="add --overwrite, or name another file")
    data = text.encode()
    with disk.failing_as("write", path):
        disk.replace(path, data)
    request.answer(
        lambda canvas: "\n".join(canvas.wrap(f"wrote {counted(len(rows), 'task')} to {path}")),
        {"written": path, "bytes": len(data), "tasks": len(rows)},
    )


def _drafts(request: Request, path: str, source: str, *, headings: bool, tag: str | None) -> "tuple[Draft, ...]":
    from detent.core.task.exchange.markdown import read_markdown
    from detent.core.task.exchange.taskmaster import read_taskmaster

    if headings and source != "markdown":
        raise click.UsageError("--headings goes with --from markdown")
    if tag is not None and source != "task-master":
        raise click.UsageError("--tag goes with --from task-master")
    if source in _CLIENTS:
        drafts: tuple[Draft, ...] = _CLIENTS[source].load("task_list").read_tasks(_decoded(request, path))
        return drafts
    match source:
        case "markdown":
            return read_markdown(read_text(request, path), headings=headings)
        case "task-master":
            return read_taskmaster(read_json(request, path), tag=tag)
        case _:
            from detent.core.task.exchange.backlog import read_backlog

            return read_backlog(_texts(request, path, ".md"))


def _decoded(request: Request, path: str) -> object:
    """The JSON in a file, or of all files of a directory in the order of their numbers."""
    if path == STDIN or not os.path.isdir(os.path.join(request.directory, path)):
        return read_json(request, path)
    files = _texts(request, path, ".json")
    return [parse_json(files[name], name) for name in sorted(files, key=lambda name: (len(name), name))]


def _texts(request: Request, path: str, ending: str) -> dict[str, str]:
    """The files of a directory, or the one file that was named."""
    where = os.path.join(request.directory, path)
    if not os.path.isdir(where):
        return {os.path.basename(path): read_text(request, path)}
    names = sorted(name for name in os.listdir(where) if name.endswith(ending) and not name.startswith("."))
    if not names:
        raise NotFound(f"{path} has no {ending} files")
    if len(names) > _MOST_FILES:
        raise Invalid(f"{path} has {len(names)} files, and {_MOST_FILES} are read at once")
    return {name: read_text(request, os.path.join(path, name)) for name in names}


def _numbered(state: "Session", drafts: "tuple[Draft, ...]", *, drop_unknown: bool) -> "Imported":
    from detent.core.task.exchange.documents import to_documents

    return to_documents(drafts, (*state.tasks.ids[-1:], *state.retired), drop_unknown=drop_unknown)


def _answer_dry(request: Request, state: "Session", found: "Imported") -> None:
    from detent.core.task.row import row_of
    from detent.render.terminal.tasks import would_add_text

    rows = [row_of(document) for document in found.documents]
    request.answer(
        lambda canvas: would_add_text(rows, found.warnings, canvas=canvas),
        {"session": state.id, "documents": found.documents, "ids": found.ids, "warnings": found.warnings},
    )
