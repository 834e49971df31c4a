"""`checkpoint create|list|show|verify|gc|export|import`: the positions that can be returned to."""

import os
from typing import TYPE_CHECKING, Any

import click

from detent.cli.request import Request, canvas, is_active, last, local_now, session_of, write_json, write_text
from detent.cli.verb import TEXT, Verb, checkpoint_argument, common_options, session_option

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.render.terminal.canvas import Canvas
    from detent.render.terminal.checkpoints import Reached

_SHOWN = 20
_DAMAGED = 5


@click.pass_context
def _alone(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        write_text(context.get_help())


checkpoint_verb = click.Group(
    "checkpoint",
    callback=_alone,
    invoke_without_command=True,
    params=common_options(),
    short_help="Take, list, verify, clean up, export or import checkpoints.",
    help="""Take, list, verify, clean up, export or import checkpoints.

    A checkpoint is a position of the session with the files as they were: one is taken before and after each attempt of
    a phase, and by create. detent rollback goes back to one.""",
    epilog="\b\nExample:\n  detent checkpoint list",
)


def _example(text: str) -> str:
    return f"\b\nExample:\n  {text}"


@checkpoint_verb.command("create", cls=Verb, epilog=_example('detent checkpoint create "before the big refactoring"'))
@click.argument("note", required=False, default="", type=TEXT)
@session_option
@click.pass_obj
def create_checkpoint(request: Request, note: str, *, session: str | None) -> None:
    """Take a checkpoint of the present, with a note if you like."""
    from detent.documents.checkpoint import summary

    with request.changing() as project:
        handle = session_of(project, session)
        taken = handle.checkpoints.take(note)
        position = next(one for one in handle.checkpoints.all() if one.event.id == taken.id)
        active = is_active(project, handle)
    named = "" if active else f" --session {handle.id}"
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"took {taken.name}: {_amount(position)}", canvas.width),
                f"  id         {taken.id}",
                "",
                *canvas.command(f"detent rollback {taken.name}{named}"),
            ]
        ),
        {"checkpoint": summary(handle.id, position)},
    )


@checkpoint_verb.command("list", cls=Verb, epilog=_example("detent checkpoint list -n 5"))
@click.option(
    "-n",
    "count",
    metavar="N",
    type=click.IntRange(min=0),
    help="The last N, 20 if not given, all with --json; 0 is all.",
)
@session_option
@click.pass_obj
def list_checkpoints(request: Request, *, count: int | None, session: str | None) -> None:
    """List the checkpoints of the session, newest last.

    A * marks the one that was rolled back to last. With --json an array.
    """
    from detent.documents.checkpoint import summary

    with request.reading() as project:
        handle = session_of(project, session)
        positions = handle.checkpoints.all()
        now, is_on, active = local_now(project), project.takes_checkpoints, is_active(project, handle)
    shown, left_out = last(positions, (0 if request.json else _SHOWN) if count is None else count)
    if request.json:
        write_json([summary(handle.id, position) for position in shown])
        return
    request.say_notices()
    if not shown:
        write_text(_none_text(handle.id, canvas(), is_on=is_on))
        return
    from detent.render.terminal.checkpoints import Taken, list_text

    rows = [Taken(position.event, position.at, position.by) for position in shown]
    undo = "detent undo" if active else f"detent undo --session {handle.id}"
    write_text(list_text(rows, left_out=left_out, reached=_reached(positions), now=now, canvas=canvas(), undo=undo))


@checkpoint_verb.command("show", cls=Verb, epilog=_example("detent checkpoint show POST_01-requirements_v1 --files"))
@checkpoint_argument
@click.option("--files", "with_files", is_flag=True, help="Also list every file with kind, size and SHA-256.")
@session_option
@click.pass_obj
def show_checkpoint(request: Request, checkpoint: str, *, with_files: bool, session: str | None) -> None:
    """Show one checkpoint and what stood then.

    CHECKPOINT is a name, an id, or the first six digits or more of an id.
    """
    from detent.core.path_text import to_text
    from detent.documents.checkpoint import document
    from detent.render.terminal.checkpoints import Taken, show_text

    with request.reading() as project:
        handle = session_of(project, session)
        found = project.checkpoints
        position = found.find(handle.id, checkpoint)
        then = found.past(handle.id, position)
        files, left_out = found.contents(position.event.tree.manifest)
        names = {one.event.id: one.event.name for one in handle.checkpoints.all()}
        now = local_now(project)
    parent = names.get(position.event.parent, position.event.parent) if position.event.parent else None
    record: dict[str, Any] = {
        **document(then, position, files),
        "left_out": {to_text(path): reason for path, reason in sorted(left_out.items())},
    }
    if with_files:
        record["files"] = [
            {"path": to_text(path), "kind": entry.kind, "size_bytes": entry.size, "sha256": entry.digest}
            for path, entry in sorted(files.items())
        ]
    taken = Taken(position.event, position.at, position.by)
    listed = files if with_files else None
    request.answer(
        lambda canvas: show_text(taken, then, left_out, parent=parent, files=listed, now=now, canvas=canvas), record
    )


@checkpoint_verb.command("verify", cls=Verb, epilog=_example("detent checkpoint verify"))
@click.pass_obj
def verify_checkpoints(request: Request) -> int:
    """Hash every object that checkpoints are made of, of all sessions.

    The exit code is 5 if one is damaged or missing; the answer says which files of which checkpoints that concerns.
    """
    from detent.cli.damage import find_damage
    from detent.render.terminal.damage import damage_text

    with request.reading() as project:
        count, found = find_damage(project, request.progress("hashing objects"))
    request.answer(
        lambda canvas: damage_text(
            count, [(one.digest, one.where, one.reason, _uses(one.used_by)) for one in found], canvas=canvas
        ),
        {"objects": count, "damaged": found},
    )
    return _DAMAGED if found else 0


@checkpoint_verb.command("gc", cls=Verb, epilog=_example("detent checkpoint gc --yes"))
@click.option("--yes", is_flag=True, help="Remove them; without it only what would go is told.")
@click.pass_obj
def collect_garbage(request: Request, *, yes: bool) -> None:
    """Remove objects that nothing names.

    Such objects are left by commands that were refused, and by sessions that were removed. Everything that a
    checkpoint, an archive of a rollback or a journal names stays.
    """
    from detent.render.size import counted, size_text

    with request.changing() if yes else request.reading() as project:
        found = project.checkpoints.collect(dry_run=not yes)
    what = f"{counted(found.objects, 'object')}, {size_text(found.bytes)}"

    def text(canvas: "Canvas") -> str:
        if not found.objects:
            return "\n".join(canvas.wrap("nothing to remove: a checkpoint or an archive names every object"))
        if yes:
            return f"removed {what}"
        return "\n".join(
            [*canvas.wrap(f"would remove {what} that nothing names"), "", *canvas.command("detent checkpoint gc --yes")]
        )

    request.answer(text, {"removed": yes, "objects": found.objects, "bytes": found.bytes})


@checkpoint_verb.command("export", cls=Verb, epilog=_example("detent checkpoint export login.detent"))
@click.argument("file", metavar="FILE")
@click.option("--overwrite", is_flag=True, help="Even if FILE is there already.")
@session_option
@click.pass_obj
def export_checkpoints(request: Request, file: str, *, overwrite: bool, session: str | None) -> None:
    """Write the session with all its checkpoints to one file.

    detent checkpoint import makes the same session of it in another project.
    """
    import msgspec

    from detent.engine.checkpoints.bundle import export_session
    from detent.render.size import counted, size_text

    path = os.path.normpath(os.path.join(request.directory, file))
    with request.reading() as project:
        handle = session_of(project, session)
        count = len(handle.checkpoints.all())
        progress = request.progress("exporting bytes")
        bundle = export_session(project, handle.id, path, overwrite=overwrite, progress=progress)
    request.notices += [f"{one} is neither a file nor a directory and is not part of it" for one in bundle.left_out]
    what = f"{handle.id} with {counted(count, 'checkpoint')}, {size_text(bundle.bytes)}"
    request.answer(
        lambda canvas: "\n".join(canvas.wrap(f"wrote {path}: {what}")),
        {"written": path, "checkpoints": count, **msgspec.to_builtins(bundle)},
    )


@checkpoint_verb.command("import", cls=Verb, epilog=_example("detent checkpoint import login.detent"))
@click.argument("file", metavar="FILE")
@click.pass_obj
def import_checkpoints(request: Request, file: str) -> None:
    """Make a session of a file that export wrote.

    With all its checkpoints. It does not become the active one, and no file of the project is touched: detent rollback
    with --session brings those of a checkpoint.
    """
    from detent.engine.checkpoints.bundle import import_session
    from detent.render.json.record import session_record
    from detent.render.size import counted

    with request.changing() as project:
        progress = request.progress("importing bytes")
        handle = import_session(project, os.path.join(request.directory, file), progress=progress)
        state, count, active = handle.state, len(handle.checkpoints.all()), is_active(project, handle)
    request.answer(
        lambda canvas: "\n".join(
            [
                canvas.cut(f"imported {state.id} with {counted(count, 'checkpoint')}", canvas.width),
                "",
                *canvas.command(f"detent status --session {state.id}"),
                *canvas.command(f"detent checkpoint list --session {state.id}"),
            ]
        ),
        {"session": session_record(state, active=active), "checkpoints": count},
    )


def _amount(position: "Position") -> str:
    from detent.render.size import counted, size_text

    tree = position.event.tree
    left_out = f", {tree.left_out} left out" if tree.left_out else ""
    return f"{counted(tree.files, 'file')}, {size_text(tree.bytes)}{left_out}"


def _none_text(session: str, canvas: "Canvas", *, is_on: bool) -> str:
    if not is_on:
        told = (
            f'{session} has no checkpoints: they are switched off by capture = "off" under [checkpoint] in detent.toml'
        )
    else:
        told = f"{session} has no checkpoints yet; the next begin or finish takes one, as detent checkpoint create does"
    return "\n".join(canvas.wrap(told))


def _reached(positions: "list[Position]") -> "Reached | None":
    from detent.render.terminal.checkpoints import Reached

    rolled = [position for position in positions if position.rollback is not None]
    if not rolled or rolled[-1].rollback is None:
        return None
    return Reached(rolled[-1].rollback.to, rolled[-1].at)


def _uses(used_by: "list[Any]") -> list[tuple[str, str, str]]:
    return [(one.session, one.checkpoint, one.path) for one in used_by]
