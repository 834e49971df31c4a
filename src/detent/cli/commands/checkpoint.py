"""`checkpoint`: takes, lists, verifies and cleans up checkpoints."""

from typing import TYPE_CHECKING, Any

import click

from detent.cli.request import Request, canvas, is_active, last, local_now, session_of, write_json, write_text
from detent.cli.verb import TEXT, VerbGroup, checkpoint_argument, session_option, verb

if TYPE_CHECKING:
    from detent.documents.checkpoint import Position
    from detent.render.terminal.canvas import Canvas
    from detent.render.terminal.checkpoints import Reached

_SHOWN = 20
_DAMAGED = 5


@verb("create", example='detent checkpoint create "before the big refactoring"')
@click.argument("note", required=False, default="", type=TEXT)
@session_option
def create_checkpoint(request: Request, note: str, *, session: str | None) -> None:
    """Take a checkpoint of the present, with an optional note."""
    from detent.documents.checkpoint import summary

    with request.changing() as project:
        handle = session_of(project, session)
        taken = handle.checkpoints.take(note)
        position = next(each for each in handle.checkpoints.all() if each.event.id == taken.id)
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


@verb("list", example="detent checkpoint list -n 5")
@click.option(
    "-n",
    "count",
    metavar="N",
    type=click.IntRange(min=0),
    help="The last N, 20 if not given, all with --json; 0 is all.",
)
@session_option
def list_checkpoints(request: Request, *, count: int | None, session: str | None) -> None:
    """List the checkpoints of the session, newest last.

    A * marks the target of the last rollback. --json prints an array.
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
    request.print_notices()
    if not shown:
        write_text(_none_text(handle.id, canvas(), is_on=is_on))
        return
    from detent.render.terminal.checkpoints import Taken, list_text

    rows = [Taken(position.event, position.at, position.actor.shown) for position in shown]
    undo = "detent undo" if active else f"detent undo --session {handle.id}"
    write_text(list_text(rows, left_out=left_out, reached=_reached(positions), now=now, canvas=canvas(), undo=undo))


@verb("show", example="detent checkpoint show POST_01-requirements_v1 --files")
@checkpoint_argument
@click.option("--files", "with_files", is_flag=True, help="Also list every file with kind, size and SHA-256.")
@session_option
def show_checkpoint(request: Request, checkpoint: str, *, with_files: bool, session: str | None) -> None:
    """Show a checkpoint and the state of the session at that time.

    CHECKPOINT is a name, an id, or at least the first six digits of an id.
    """
    from detent.core.path_text import to_text
    from detent.documents.checkpoint import document
    from detent.render.terminal.checkpoints import Taken, show_text

    with request.reading() as project:
        handle = session_of(project, session)
        checkpoints = project.checkpoints
        position = checkpoints.find(handle.id, checkpoint)
        then = checkpoints.past(handle.id, position)
        checkpoints.bring(handle.id, position.event.tree.manifest)
        files, left_out = checkpoints.contents(position.event.tree.manifest)
        names = {each.event.id: each.event.name for each in handle.checkpoints.all()}
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
    taken = Taken(position.event, position.at, position.actor.shown)
    listed = files if with_files else None
    request.answer(
        lambda canvas: show_text(taken, then, left_out, parent=parent, files=listed, now=now, canvas=canvas), record
    )


@verb("verify", example="detent checkpoint verify")
def verify_checkpoints(request: Request) -> int:
    """Hash every object of the checkpoints of all sessions.

    The exit code is 5 if an object is damaged or missing; the answer names the affected files and checkpoints.
    """
    from detent.cli.damage import find_damage
    from detent.render.terminal.damage import damage_text

    with request.reading() as project:
        count, damaged = find_damage(project, request.progress("hashing objects"))
    request.answer(lambda canvas: damage_text(count, damaged, canvas=canvas), {"objects": count, "damaged": damaged})
    return _DAMAGED if damaged else 0


@verb("gc", example="detent checkpoint gc --yes")
@click.option("--yes", is_flag=True, help="Remove them; without it the verb only lists them.")
def collect_garbage(request: Request, *, yes: bool) -> None:
    """Remove unreferenced objects.

    Refused commands and removed sessions leave such objects. Objects that a checkpoint, an archive of a rollback or a
    journal references stay.
    """
    from detent.core.counted import counted
    from detent.render.size import size_text

    with request.changing() if yes else request.reading() as project:
        garbage = project.collect_garbage(dry_run=not yes)
    amount = f"{counted(garbage.objects, 'object')}, {size_text(garbage.bytes)}"

    def text(canvas: "Canvas") -> str:
        if not garbage.objects:
            return "\n".join(canvas.wrap("nothing to remove: every object is referenced"))
        if yes:
            return f"removed {amount}"
        return "\n".join(
            [
                *canvas.wrap(f"would remove {amount} that nothing references"),
                "",
                *canvas.command("detent checkpoint gc --yes"),
            ]
        )

    request.answer(text, {"removed": yes, "objects": garbage.objects, "bytes": garbage.bytes})


checkpoint_verb = VerbGroup(
    "checkpoint",
    create_checkpoint,
    list_checkpoints,
    show_checkpoint,
    verify_checkpoints,
    collect_garbage,
    help="""Take, list, verify or clean up checkpoints.

    A checkpoint holds the state of the session and the files of the project. One is taken before and after each attempt
    of a phase, and by create. detent rollback restores one.""",
    example="detent checkpoint list",
)


def _amount(position: "Position") -> str:
    from detent.core.counted import counted
    from detent.render.size import size_text

    tree = position.event.tree
    left_out = f", {tree.left_out} left out" if tree.left_out else ""
    return f"{counted(tree.files, 'file')}, {size_text(tree.bytes)}{left_out}"


def _none_text(session: str, canvas: "Canvas", *, is_on: bool) -> str:
    reason = f'{session} has no checkpoints: capture = "off" under [checkpoint] in detent.toml switches them off'
    if is_on:
        reason = (
            f"{session} has no checkpoints yet; the next begin or finish takes one, as detent checkpoint create does"
        )
    return "\n".join(canvas.wrap(reason))


def _reached(positions: "list[Position]") -> "Reached | None":
    from detent.render.terminal.checkpoints import Reached

    rolled = [position for position in positions if position.rollback is not None]
    if not rolled or rolled[-1].rollback is None:
        return None
    return Reached(rolled[-1].rollback.to, rolled[-1].at)
