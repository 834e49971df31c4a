"""`rollback`: restores files and phases from a checkpoint. `undo` shares its plan, its question and its answer."""

import os
import re
from typing import TYPE_CHECKING, Any

import click

from detent.cli.person import agrees, ask_line, check_can_be_asked, is_at_terminal
from detent.cli.request import Request, canvas, local_now, session_of, write_text
from detent.cli.verb import Verb, checkpoint_or_none, session_option, verb
from detent.core.counted import counted
from detent.core.path_text import from_text
from detent.core.session.decide_phase import known_phase
from detent.engine.policy import Decision
from detent.errors import Invalid, NotFound

if TYPE_CHECKING:
    from datetime import datetime

    from detent.core.session.open_decision import View
    from detent.core.session.session import Session
    from detent.engine.checkpoints.rollback import RolledBackTo
    from detent.engine.checkpoints.rollback_plan import RollbackPlan
    from detent.engine.project import Project
    from detent.engine.session import SessionHandle
    from detent.render.terminal.rollback import Planned

_REFUSED = 1
_COUNT = re.compile(r"-[1-9][0-9]{0,5}")
_LIST = "detent checkpoint list"
#: Checkpoints that are listed to choose from.
_SHOWN = 20

dry_run_option = click.option("--dry-run", is_flag=True, help="Show what it would do and change nothing.")
yes_option = click.option("--yes", is_flag=True, help="Do not show the plan first; your terminal still asks once.")


class Target:
    """The checkpoint to restore, or None to undo the last rollback; and how much of it."""

    def __init__(
        self,
        to: str | None,
        *,
        paths: tuple[str, ...] = (),
        phase_only: bool = False,
        remove_unknown: bool = False,
    ) -> None:
        self.verb = "undo" if to is None else "rollback"
        self._to = to
        self._paths = paths
        self.phase_only = phase_only
        self._remove_unknown = remove_unknown

    def plan(self, project: "Project", handle: "SessionHandle", here: str) -> "RollbackPlan":
        if self._to is not None:
            self._to = _named(handle, self._to)
        paths = [_inside(project.place.base, here, path) for path in self._paths]
        return handle.checkpoints.plan_rollback(
            self._to, paths=paths, phase_only=self.phase_only, remove_unknown=self._remove_unknown
        )

    def restore(self, handle: "SessionHandle", plan: "RollbackPlan") -> "RolledBackTo":
        """Carry out exactly the plan that was shown, or raise a Conflict."""
        if self._to is None:
            return handle.checkpoints.undo(expected=plan)
        return handle.checkpoints.rollback(
            self._to,
            paths=plan.paths,
            phase_only=self.phase_only,
            remove_unknown=self._remove_unknown,
            expected=plan,
        )


class _RollbackVerb(Verb):
    """Takes -2 for an argument, which click would take for an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        counts = [word for word in args if _COUNT.fullmatch(word)]
        rest = [word for word in args if word not in counts]
        return super().parse_args(ctx, [*rest, "--", *counts] if counts else rest)


@verb("rollback", example="detent rollback PRE_06-implementation_v1 --dry-run", decides=True, cls=_RollbackVerb)
@checkpoint_or_none
@dry_run_option
@click.option("--phase-only", is_flag=True, help="Only the phases; no file is touched.")
@click.option(
    "--paths", "paths", metavar="PATH", multiple=True, help="Only this file or directory, and no phase; repeat it."
)
@click.option(
    "--remove-unknown", is_flag=True, help="Also remove new files that the session is not known to have made."
)
@yes_option
@session_option
def rollback_verb(
    request: Request,
    checkpoint: str | None,
    *,
    dry_run: bool,
    phase_only: bool,
    paths: tuple[str, ...],
    remove_unknown: bool,
    yes: bool,
    session: str | None,
) -> int:
    """Restore files and phases from a checkpoint.

    CHECKPOINT is a name or an id of detent checkpoint list; the first six digits of an id are enough. A phase means
    the point before its last attempt. -1 is the last checkpoint, -2 the one before it. Without CHECKPOINT you choose
    from a list.

    Files and phases go back together, and later phases become pending. Detent takes a checkpoint of the present first;
    detent undo restores it.

    Files in no checkpoint stay. New files that no agent of the session is known to have made, and no phase declared,
    stay too; --remove-unknown removes those.

    Only a person may roll back. In an agent's shell only --dry-run is allowed.
    """
    if phase_only and paths:
        raise click.UsageError("--phase-only touches no file and --paths touches only files; leave one of them out")
    if checkpoint is None:
        checkpoint = _chosen(request, session)
        if checkpoint is None:
            write_text("nothing was changed")
            return _REFUSED
    target = Target(checkpoint, paths=paths, phase_only=phase_only, remove_unknown=remove_unknown)
    return roll_back(request, target, session, dry_run=dry_run, yes=yes)


def _named(handle: "SessionHandle", text: str) -> str:
    """The checkpoint that `text` means: a phase stands for the one before its last attempt, -N for the last but N-1."""
    if _COUNT.fullmatch(text):
        positions, back = handle.checkpoints.all(), int(text[1:])
        if not 1 <= back <= len(positions):
            raise NotFound(
                f"{handle.id} has {counted(len(positions), 'checkpoint')}, so there is no {text}", way_out=_LIST
            )
        return positions[-back].event.id
    try:
        phase = known_phase(handle.state, text)
    except NotFound:
        return text
    attempt = handle.state.phases[phase].pre
    if not attempt:
        raise NotFound(f"no checkpoint was taken before {phase}", way_out=_LIST)
    return f"PRE_{phase}_v{attempt}"


def _chosen(request: Request, session: str | None) -> str | None:
    """The checkpoint that the person chooses from the list; None for none."""
    from detent.render.terminal.checkpoints import Taken, list_text

    if request.json or not is_at_terminal():
        raise click.UsageError(f"name a checkpoint, a phase, or -N for the last but N-1; {_LIST} lists them")
    request.authorize_early(Decision.ROLLBACK)
    with request.reading() as project:
        positions, now = session_of(project, session).checkpoints.all(), local_now(project)
    if not positions:
        raise NotFound("the session has no checkpoint", way_out="detent checkpoint create")
    request.print_notices()
    shown = positions[-_SHOWN:]
    rows = [Taken(position.event, position.at, position.actor.shown) for position in shown]
    write_text(list_text(rows, left_out=len(positions) - len(shown), reached=None, now=now, canvas=canvas(), undo=""))
    answer = ask_line("a name, a phase or -N; Enter for none > ")
    return answer or None


def roll_back(request: Request, target: Target, session: str | None, *, dry_run: bool, yes: bool) -> int:
    from detent.engine.confirm import is_confirmed
    from detent.engine.decisions import view_now

    here = os.path.realpath(request.directory)
    if dry_run:
        with request.reading() as project:
            request.watch(project)
            handle, now = session_of(project, session), local_now(project)
            plan = target.plan(project, handle, here)
        _answer(request, plan, None, before=handle.state, now=now)
        return 0
    request.authorize_early(Decision.ROLLBACK)
    if not yes:
        if request.json:
            raise click.UsageError(f"{target.verb} --json cannot ask; add --yes, or --dry-run to see what it would do")
        check_can_be_asked(target.verb)
    with request.changing() as project:
        handle, now = session_of(project, session), local_now(project)
        if not target.phase_only:
            project.rollbacks.check_no_run(handle.id)
        plan = target.plan(project, handle, here)
        if not yes:
            if not _agreed(request, plan, handle.state, now):
                write_text("nothing was changed")
                return _REFUSED
            project.confirm = is_confirmed
        before = handle.state
        had_ended = before.has_ended
        done = target.restore(handle, plan)
        reopened = had_ended and not done.session.has_ended
        view = view_now(project, done.session)
    _answer(request, plan if yes else None, done, before=before, now=now, view=view, reopened=reopened)
    return 0


def _agreed(request: Request, plan: "RollbackPlan", before: "Session", now: "datetime") -> bool:
    from detent.render.terminal.rollback import plan_text

    request.clear_progress()
    request.print_notices()
    write_text(plan_text(_planned(plan, before), now=now, canvas=canvas()))
    write_text("")
    if not agrees("undo the rollback?" if plan.undoes else "roll back?"):
        return False
    write_text("")
    return True


def _answer(
    request: Request,
    plan: "RollbackPlan | None",
    done: "RolledBackTo | None",
    *,
    before: "Session",
    now: "datetime",
    view: "View | None" = None,
    reopened: bool = False,
) -> None:
    """Print the plan if it was not shown yet, and the result if the plan was carried out."""
    from detent.render.terminal.rollback import plan_text

    if not request.json:
        request.print_notices()
        texts = [plan_text(_planned(plan, before), now=now, canvas=canvas())] if plan else []
        texts += [_done_text(done, before, view, reopened=reopened)] if done and view else []
        write_text("\n\n".join(texts))
        return
    final = done.plan if done else plan
    assert final is not None
    request.answer(
        lambda _: "",
        {
            "dry_run": done is None,
            "plan": final.as_record(),
            "result": {**_result_record(done, view), "reopened": reopened} if done and view else None,
        },
    )


def _planned(plan: "RollbackPlan", before: "Session") -> "Planned":
    from detent.render.terminal.rollback import Planned

    return Planned(
        session=before,
        name=plan.to.event.name,
        taken=plan.to.event.taken.value,
        at=plan.to.at,
        files=plan.changes,
        statuses=plan.statuses,
        paths=plan.paths,
        phase_only=plan.phase_only,
        is_undo=plan.undoes is not None,
        kept=plan.kept,
        unknown=plan.unknown,
        warnings=plan.warnings,
    )


def _done_text(done: "RolledBackTo", before: "Session", view: "View", *, reopened: bool) -> str:
    from detent.render.terminal.rollback import RolledBack, rolled_back_text

    shown = RolledBack(
        planned=_planned(done.plan, before),
        session=done.session,
        safety=done.safety["name"],
        view=view,
        reopened=reopened,
    )
    return rolled_back_text(shown, canvas=canvas())


def _result_record(done: "RolledBackTo", view: "View") -> dict[str, Any]:
    from detent.core.checkpoint.checkpoint import Taken
    from detent.core.session.events import CheckpointTaken, RolledBack
    from detent.render.json.record import session_record

    rolled = next(event for event in done.events if isinstance(event, RolledBack))
    taken = [event for event in done.events if isinstance(event, CheckpointTaken) and event.taken is Taken.ROLLBACK]
    return {
        "id": rolled.id,
        "safety": done.safety,
        "checkpoint": {"id": taken[0].id, "name": taken[0].name} if taken else None,
        "files": rolled.files,
        "session": session_record(done.session, view),
    }


def _inside(base: str, here: str, typed: str) -> str:
    """A typed path, which is relative to the current directory, as the file system has it."""
    try:
        # Answers write a byte that is not UTF-8 as \xNN, and a backslash twice.
        path = from_text(typed)
    except Invalid:
        path = typed
    directory, name = os.path.split(os.path.normpath(os.path.join(here, path)))
    full = os.path.join(os.path.realpath(directory), name)
    if os.path.commonpath([base, full]) != base:
        raise Invalid(f"{typed} is outside the project", way_out=f"name a path in {base}")
    return full
