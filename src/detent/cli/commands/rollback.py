"""`rollback`, `undo`, `diff`: going back to a checkpoint, and seeing what that would mean."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from detent.cli.person import agrees, check_can_be_asked
from detent.cli.request import Request, canvas, is_active, local_now, session_of, write_text
from detent.cli.verb import checkpoint_argument, checkpoint_or_now, session_option, verb
from detent.engine.policy import Decision
from detent.errors import Invalid

if TYPE_CHECKING:
    from datetime import datetime

    from detent.cli.progress import Progress
    from detent.engine.checkpoints.comparison import Comparison
    from detent.engine.checkpoints.rollback import RolledBackTo
    from detent.engine.checkpoints.rollback_plan import RollbackPlan
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.render.terminal.diff import FileDiff
    from detent.render.terminal.rollback import Planned

_REFUSED = 1
#: Lines of file differences that are shown if nobody asks for more.
_LINES = 2_000

_dry_run_option = click.option("--dry-run", is_flag=True, help="Show what it would do and change nothing.")
_yes_option = click.option("--yes", is_flag=True, help="Do not ask; needed where there is no terminal.")


class _Wanted:
    """What is to be gone back to, and how much of it."""

    def __init__(self, to: str | None, *, paths: tuple[str, ...] = (), phase_only: bool = False) -> None:
        self.verb = "undo" if to is None else "rollback"
        self._to = to
        self._paths = paths
        self.phase_only = phase_only

    def plan(self, project: "Project", handle: "SessionHandle", here: str) -> "RollbackPlan":
        paths = [_inside(project.place.base, here, path) for path in self._paths]
        return handle.checkpoints.plan_rollback(self._to, paths=paths, phase_only=self.phase_only)

    def carry_out(self, handle: "SessionHandle", plan: "RollbackPlan") -> "RolledBackTo":
        """Exactly what the plan says that was shown, or a Conflict."""
        if self._to is None:
            return handle.checkpoints.undo(expected=plan)
        return handle.checkpoints.rollback(self._to, paths=plan.paths, phase_only=self.phase_only, expected=plan)


@verb("rollback", example="detent rollback PRE_06-implementation_v1 --dry-run")
@checkpoint_argument
@_dry_run_option
@click.option("--phase-only", is_flag=True, help="Only the phases; no file is touched.")
@click.option(
    "--paths", "paths", metavar="PATH", multiple=True, help="Only this file or directory, and no phase; repeat it."
)
@_yes_option
@session_option
@click.pass_obj
def rollback_verb(
    request: Request,
    checkpoint: str,
    *,
    dry_run: bool,
    phase_only: bool,
    paths: tuple[str, ...],
    yes: bool,
    session: str | None,
) -> int:
    """Restore files and phases from a checkpoint.

    CHECKPOINT is a name of detent checkpoint list, an id, or the first six digits or more of an id. The files stand as
    they did, the phase it is of and what that builds on too, and what follows is to be done again; files that no
    checkpoint has stay. A checkpoint of the present is taken first, and detent undo brings it back. A person's
    decision: refused in an agent's shell, but for --dry-run.
    """
    if phase_only and paths:
        raise click.UsageError("--phase-only touches no file and --paths touches only files; leave one of them out")
    wanted = _Wanted(checkpoint, paths=paths, phase_only=phase_only)
    return _go_back(request, wanted, session, dry_run=dry_run, yes=yes)


@verb("undo", example="detent undo")
@_dry_run_option
@_yes_option
@session_option
@click.pass_obj
def undo_verb(request: Request, *, dry_run: bool, yes: bool, session: str | None) -> int:
    """Undo the last rollback.

    Files and phases stand as they did before it, work in progress too. Undoing twice is the rollback again. A person's
    decision: refused in an agent's shell, but for --dry-run.
    """
    return _go_back(request, _Wanted(None), session, dry_run=dry_run, yes=yes)


@verb("diff", example="detent diff POST_01-requirements_v1 now --stat")
@click.argument("a", shell_complete=checkpoint_or_now)
@click.argument("b", default="now", shell_complete=checkpoint_or_now)
@click.option("--stat", is_flag=True, help="Only how many lines of each file were added and removed.")
@click.option(
    "-n", "limit", metavar="N", type=click.IntRange(min=0), default=_LINES, help="At most N lines of files; 0 is all."
)
@click.option("--exit-code", is_flag=True, help="Exit with 1 if something differs.")
@session_option
@click.pass_obj
def diff_verb(request: Request, a: str, b: str, *, stat: bool, limit: int, exit_code: bool, session: str | None) -> int:
    """Compare two checkpoints, or a checkpoint with the present.

    A and B are names of detent checkpoint list, ids, or now, which B is if it is not given. First phases, gates, agents
    and tokens, then each file as a unified diff.
    """
    from detent.render.terminal.diff import diff_text, stat_text

    with request.reading() as project:
        request.watch(project)
        comparison = session_of(project, session).checkpoints.compare(a, b)
        diff = comparison.diff
        files, left_out = _file_diffs(comparison, 0 if stat else limit, request.progress("comparing files"))
    record: dict[str, Any] = diff.as_record()
    if stat:
        record["stat"] = {_text(one.path): _counts(one) for one in files}
        request.answer(lambda canvas: stat_text(diff, files, canvas=canvas), record)
    else:
        record |= {"diffs": {_text(one.path): "\n".join(one.lines) for one in files}, "files_left_out": left_out}
        request.answer(lambda canvas: diff_text(diff, files, left_out=left_out, canvas=canvas, limit=limit), record)
    return int(exit_code and not diff.is_empty)


def _go_back(request: Request, wanted: _Wanted, session: str | None, *, dry_run: bool, yes: bool) -> int:
    here = os.path.realpath(request.directory)
    if dry_run:
        with request.reading() as project:
            request.watch(project)
            plan, now = wanted.plan(project, session_of(project, session), here), local_now(project)
        _answer(request, plan, None, now=now, active=True)
        return 0
    request.authorize(Decision.ROLLBACK)
    if not yes:
        if request.json:
            raise click.UsageError(f"{wanted.verb} --json cannot ask; add --yes, or --dry-run to see what it would do")
        check_can_be_asked(wanted.verb)
    with request.changing() as project:
        handle, now = session_of(project, session), local_now(project)
        if not wanted.phase_only:
            project.rollbacks.check_no_run(handle.id)
        plan = wanted.plan(project, handle, here)
        if not yes and not _agreed(request, plan, now):
            write_text("nothing was changed")
            return _REFUSED
        done = wanted.carry_out(handle, plan)
        active = is_active(project, handle)
    _answer(request, plan if yes else None, done, now=now, active=active)
    return 0


def _agreed(request: Request, plan: "RollbackPlan", now: "datetime") -> bool:
    from detent.render.terminal.rollback import plan_text

    request.clear_progress()
    request.say_notices()
    write_text(plan_text(_planned(plan), now=now, canvas=canvas()))
    write_text("")
    if not agrees("undo the rollback?" if plan.undoes else "roll back?"):
        return False
    write_text("")
    return True


def _answer(
    request: Request, plan: "RollbackPlan | None", done: "RolledBackTo | None", *, now: "datetime", active: bool
) -> None:
    """The plan where nobody has seen it yet, and what was done if it was."""
    from detent.render.terminal.rollback import plan_text

    if not request.json:
        request.say_notices()
        texts = [plan_text(_planned(plan), now=now, canvas=canvas())] if plan else []
        texts += [_done_text(done, active=active)] if done else []
        write_text("\n\n".join(texts))
        return
    worked_out = done.plan if done else plan
    assert worked_out is not None
    request.answer(
        lambda _: "",
        {
            "dry_run": done is None,
            "plan": _plan_record(worked_out),
            "result": _result_record(done, active=active) if done else None,
        },
    )


def _planned(plan: "RollbackPlan") -> "Planned":
    from detent.render.terminal.rollback import Planned

    return Planned(
        session=plan.session,
        name=plan.to.event.name,
        taken=plan.to.event.taken.value,
        at=plan.to.at,
        files=_changes(plan),
        statuses=plan.statuses,
        paths=plan.paths,
        phase_only=plan.phase_only,
        is_undo=plan.undoes is not None,
        kept=plan.kept,
        warnings=plan.warnings,
    )


def _changes(plan: "RollbackPlan") -> dict[str, tuple[str, ...]]:
    return {
        "restored": tuple(step.path for step in plan.steps if step.before and step.after),
        "removed": tuple(step.path for step in plan.steps if step.after is None),
        "added": tuple(step.path for step in plan.steps if step.before is None),
    }


def _done_text(done: "RolledBackTo", *, active: bool) -> str:
    from detent.render.terminal.rollback import RolledBack, rolled_back_text

    shown = RolledBack(
        planned=_planned(done.plan), session=done.session, safety=_safety(done)["name"], is_active=active
    )
    return rolled_back_text(shown, canvas=canvas())


def _plan_record(plan: "RollbackPlan") -> dict[str, Any]:
    from detent.documents.checkpoint import summary

    return {
        "session": plan.session,
        "version": plan.version,
        "to": summary(plan.session, plan.to),
        "undoes": plan.undoes,
        "phase_only": plan.phase_only,
        "paths": [_text(path) for path in plan.paths],
        "phases": {key: {"before": before, "after": after} for key, (before, after) in plan.statuses.items()},
        "files": {what: [_text(path) for path in paths] for what, paths in _changes(plan).items()},
        "kept": [_text(path) for path in plan.kept],
        "warnings": plan.warnings,
    }


def _result_record(done: "RolledBackTo", *, active: bool) -> dict[str, Any]:
    from detent.core.checkpoint.checkpoint import Taken
    from detent.core.session.events import CheckpointTaken, RolledBack
    from detent.render.json.record import session_record

    rolled = next(event for event in done.events if isinstance(event, RolledBack))
    taken = [event for event in done.events if isinstance(event, CheckpointTaken) and event.taken is Taken.ROLLBACK]
    return {
        "id": rolled.id,
        "safety": _safety(done),
        "checkpoint": {"id": taken[0].id, "name": taken[0].name} if taken else None,
        "files": rolled.files,
        "session": session_record(done.session, active=active),
    }


def _safety(done: "RolledBackTo") -> dict[str, str]:
    """The checkpoint of what stood before."""
    from detent.core.checkpoint.checkpoint import Taken
    from detent.core.session.events import CheckpointTaken

    taken = (event for event in done.events if isinstance(event, CheckpointTaken))
    return next({"id": event.id, "name": event.name} for event in taken if event.taken is Taken.SAFETY)


def _inside(base: str, here: str, typed: str) -> str:
    """A path that was typed, relative to the directory one is in, as the file system has it."""
    directory, name = os.path.split(os.path.normpath(os.path.join(here, _as_named(typed))))
    full = os.path.join(os.path.realpath(directory), name)
    if os.path.commonpath([base, full]) != base:
        raise Invalid(f"{typed} is outside the project", way_out=f"name something in {base}")
    return full


def _as_named(typed: str) -> str:
    r"""The path as the file system has it: answers write a byte that is not UTF-8 as \xNN, and a backslash twice."""
    from detent.core.path_text import from_text

    try:
        return from_text(typed)
    except Invalid:
        return typed


def _file_diffs(comparison: "Comparison", limit: int, progress: "Progress | None") -> "tuple[list[FileDiff], int]":
    """The files one by one until `limit` lines are together, 0 being no limit; and how many are not there in full."""
    from detent.render.terminal.diff import FileDiff

    found: list[FileDiff] = []
    room, in_full = limit, 0
    changed = list(_changed(comparison))
    for number, (path, change) in enumerate(changed):
        if limit and not room:
            break
        if progress is not None:
            progress(number, len(changed))
        lines = "\n".join(comparison.text_diff(path) or [_without_lines(path, change)]).split("\n")
        kept = lines[:room] if limit else lines
        room -= len(kept)
        in_full += len(kept) == len(lines)
        found.append(FileDiff(path=path, change=change, lines=kept))
    return found, len(changed) - in_full


def _changed(comparison: "Comparison") -> Iterator[tuple[str, str]]:
    diff = comparison.diff
    changes = {"added": diff.added, "removed": diff.removed, "modified": diff.modified}
    yield from sorted((path, change) for change, paths in changes.items() for path in paths)


def _without_lines(path: str, change: str) -> str:
    return f"{_text(path)}: " + ("differs only in how its lines end" if change == "modified" else f"{change}, empty")


def _counts(one: "FileDiff") -> dict[str, Any]:
    counts = one.counts
    return {
        "change": one.change,
        "lines_added": counts[0] if counts else None,
        "lines_removed": counts[1] if counts else None,
    }


def _text(path: str) -> str:
    from detent.core.path_text import to_text

    return to_text(path)
