"""`task import` and `task export`: exchange tasks with other tools."""

import os
from typing import TYPE_CHECKING

import click

from detent.cli.input import STDIN, parse_json, read_json, read_text
from detent.cli.request import Request, session_of, write_file, write_text
from detent.cli.task import answer_moved
from detent.cli.verb import session_option, verb
from detent.clients.registry import CLIENTS
from detent.errors import Invalid, NotFound

if TYPE_CHECKING:
    from detent.core.task.exchange.draft import Draft

#: The clients whose own task lists can be read, by the name of their program.
_CLIENTS = {client.program: client for client in CLIENTS.values() if client.task_list}
_FORMATS = ("markdown", *_CLIENTS, "task-master", "backlog", "spec-kit")
#: The largest directory that is read.
_MOST_FILES = 10_000


@verb("import", example="detent task import --from markdown PLAN.md --dry-run")
@click.argument("path", metavar="PATH")
@click.option("--from", "source", type=click.Choice(_FORMATS), required=True, help="The format.")
@click.option("--dry-run", is_flag=True, help="Show the tasks and add none.")
@click.option("--drop-unknown", is_flag=True, help="Drop dependencies on missing tasks, with a warning.")
@click.option("--headings", is_flag=True, help="With markdown: headings become containers of their items.")
@click.option("--tag", help="With task-master: which tag, if there are several.")
@session_option
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

    PATH is a Markdown checklist, the JSON or the directory of a client's own tasks, tasks.json of task-master,
    the tasks directory of Backlog.md, or tasks.md of spec-kit; - reads standard input.
    The tasks get new numbers after the existing ones.
    """
    from detent.core.task.exchange.documents import to_documents
    from detent.core.task.row import row_of
    from detent.render.terminal.tasks import would_add_text

    drafts = _drafts(request, path, source, headings=headings, tag=tag)
    if not drafts:
        raise Invalid(f"{path} has no tasks to import", way_out="detent task import --help")
    with request.reading() if dry_run else request.changing() as project:
        handle = session_of(project, session) if dry_run else project.session(session)
        state = handle.state
        new = to_documents(drafts, (*state.tasks.ids[-1:], *state.retired), drop_unknown=drop_unknown)
        if not dry_run:
            outcome = handle.tasks.write(new.documents, new=True, reason=f"imported from {os.path.basename(path)}")
            answer_moved(request, project, outcome, warnings=new.warnings, ids=new.ids)
            return
    rows = [row_of(document) for document in new.documents]
    request.answer(
        lambda canvas: would_add_text(rows, new.warnings, canvas=canvas),
        {"session": state.id, "documents": new.documents, "ids": new.ids, "warnings": new.warnings},
    )


@verb("export", example="detent task export --to markdown PLAN.md")
@click.argument("file", metavar="[FILE]", required=False)
@click.option("--to", "form", type=click.Choice(["markdown"]), required=True, help="The format.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it exists.")
@session_option
def export_tasks(request: Request, file: str | None, *, form: str, overwrite: bool, session: str | None) -> None:
    """Write the tasks as a checklist that import can read."""
    from detent.core.counted import counted
    from detent.core.task.exchange.markdown import to_markdown

    with request.reading() as project:
        rows = session_of(project, session).tasks.rows()
    text = to_markdown(rows)
    if file in (None, STDIN):
        if request.json:
            request.answer(lambda _: text, {"format": form, "tasks": len(rows), "text": text})
            return
        request.print_notices()
        write_text(text.removesuffix("\n"))
        return
    if os.path.exists(os.path.join(request.directory, file or "")) and not overwrite:
        raise Invalid(f"{file} exists already", way_out="add --overwrite, or name another file")
    data = text.encode()
    path = write_file(request, file or "", data)
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
        case "spec-kit":
            from detent.core.task.exchange.spec_kit import read_spec_kit

            return read_spec_kit(read_text(request, path))
        case _:
            from detent.core.task.exchange.backlog import read_backlog

            return read_backlog(_texts(request, path, ".md"))


def _decoded(request: Request, path: str) -> object:
    """The JSON of a file, or of all files of a directory in the order of their numbers."""
    if path == STDIN or not os.path.isdir(os.path.join(request.directory, path)):
        return read_json(request, path)
    files = _texts(request, path, ".json")
    return [parse_json(files[name], name) for name in sorted(files, key=lambda name: (len(name), name))]


def _texts(request: Request, path: str, ending: str) -> dict[str, str]:
    """The files of a directory, or the named file."""
    where = os.path.join(request.directory, path)
    if not os.path.isdir(where):
        return {os.path.basename(path): read_text(request, path)}
    names = sorted(name for name in os.listdir(where) if name.endswith(ending) and not name.startswith("."))
    if not names:
        raise NotFound(f"{path} has no {ending} files")
    if len(names) > _MOST_FILES:
        raise Invalid(f"{path} has {len(names)} files; the limit is {_MOST_FILES}")
    return {name: read_text(request, os.path.join(path, name)) for name in names}
