"""Bringing the work of a worktree back: committed there, then merged into what the project has checked out.

A merge happens or it does not: what cannot be merged is taken back at once, and what a kill interrupted is ended first
by whoever comes next (`merge_recovery`).
"""

import os
import shlex
from typing import NamedTuple

from detent.core.limits import cut
from detent.engine.project import Project
from detent.engine.redact_command import redact_text
from detent.errors import DetentError, GateClosed, NotFound
from detent.process import Captured
from detent.run.git import Git, said
from detent.run.merge_recovery import Merging, forget, note, recover
from detent.run.worktree_record import Worktree, is_complete, known, left_out, one_at_a_time

_MAX_TITLE = 60
_MAX_LISTED = 20
#: The person's settings may ask for another kind of merge, or for putting uncommitted changes aside.
_MERGE = ("merge", "--no-ff", "--commit", "--no-squash", "--no-autostash", "--no-edit", "--no-progress")


class Merged(NamedTuple):
    said: str
    #: The merge; none if there was nothing to merge.
    commit: str | None


def merge(project: Project, session: str, phase: str | None = None) -> Merged:
    """Merge the worktree of the session, or of one of its phases; `GateClosed` with the reason if that cannot be."""
    tree = Worktree(session=session, phase=phase, project=project.place.project)
    root = project.place.root
    title = _title(tree, project.session(session).state.task)
    with one_at_a_time(root):
        top = Git(root)
        recover(top, root)
        tip = _committed(Git(tree.path(root)), title, root) if is_complete(tree, root) else _branch(top, tree, root)
        if top.contains(tip):
            return Merged(f"{tree.branch} has nothing that is not merged", None)
        under_way = top.unfinished()
        if under_way is not None:
            raise GateClosed(f"{root} is in the middle of a {under_way}", way_out=f"end it in {root}, then try again")
        return _merged(top, tree, tip, title, root)


def current(root: str, directory: str) -> Worktree | None:
    """The worktree that the directory is in."""
    inside = os.path.join(os.path.realpath(directory), "")
    return next((tree for tree in known(root) if inside.startswith(os.path.join(tree.path(root), ""))), None)


def _title(tree: Worktree, task: str) -> str:
    first = redact_text(task).strip().split("\n")[0]
    return f"{tree.session}{f' {tree.phase}' if tree.phase else ''}: {cut(first, _MAX_TITLE)}"


def _branch(top: Git, tree: Worktree, root: str) -> str:
    """The commit of the branch, of a worktree that is gone."""
    if os.path.lexists(tree.path(root)):
        raise GateClosed(f"{tree.path(root)} is no whole worktree, so its files would be left behind")
    tip = top.commit_of(f"refs/heads/{tree.branch}")
    if tip is not None:
        return tip
    others = [f"{one.phase or ''} --session {one.session}".strip() for one in known(root)]
    raise NotFound(
        f"{tree.session} has no worktree{f' for {tree.phase}' if tree.phase else ''}, and no branch {tree.branch}",
        way_out=f"detent merge {others[0]}" if others else 'isolation = "phase" below [run] in detent.toml makes them',
    )


def _committed(here: Git, title: str, root: str) -> str:
    """The commit that has everything that is in the worktree."""
    here.drop_stale_lock()
    open_files = here.paths("diff", "--name-only", "--diff-filter=U", "-z")
    if open_files:
        raise GateClosed(
            f"{_listed(open_files)} in {here.directory} still has conflicts",
            way_out="resolve them there, git add, git commit",
        )
    under_way = here.unfinished()
    if under_way not in (None, "merge"):
        raise GateClosed(
            f"{here.directory} is in the middle of a {under_way}", way_out=f"end it there: git {under_way} --continue"
        )
    if under_way or here.changes(*left_out(root)):
        here.ask("add", "--all", "--", ".", *left_out(root))
        if under_way or not here.holds("diff", "--cached", "--quiet"):
            done = here.run(*here.identity(), "commit", "--quiet", "-m", title)
            if done.exit_code != 0:
                raise GateClosed(f"git did not commit what is in {here.directory}:\n{said(done)}")
    return here.ask("rev-parse", "HEAD")


def _merged(top: Git, tree: Worktree, tip: str, title: str, root: str) -> Merged:
    merging = Merging(head=top.ask("rev-parse", "HEAD"), tip=tip)
    note(root, merging)
    arguments = (*top.identity(), *_MERGE, "-m", f"Merge {title}", tip)
    ran = top.run(*arguments, started=lambda leader: note(root, merging.by(leader)))
    if ran.exit_code != 0:
        refusal = _refusal(top, tree, ran, root)
        if os.path.exists(os.path.join(top.own_directory(), "MERGE_HEAD")):
            top.ask("merge", "--abort")
        forget(root)
        raise refusal
    forget(root)
    commit = top.ask("rev-parse", "HEAD")
    return Merged(f"merged {tree.branch} into {_checked_out(top)} as {commit[:12]}", commit)


def _refusal(top: Git, tree: Worktree, ran: Captured, root: str) -> DetentError:
    path, target = tree.path(root), _checked_out(top)
    conflicts = top.paths("diff", "--name-only", "--diff-filter=U", "-z")
    if conflicts:
        return GateClosed(
            f"{tree.branch} and {target} both changed {_listed(conflicts)}",
            way_out=f"cd {shlex.quote(path)} && git merge {target}; resolve the conflicts there and git commit",
        )
    errors = ran.errors.decode("utf-8", "replace")
    in_the_way = [line.strip() for line in errors.split("\n") if line.startswith("\t")]
    if in_the_way and "would be overwritten by merge" in errors:
        return GateClosed(
            f"{_listed(in_the_way)} in {root} has changes that are not committed, and {tree.branch} changes it too",
            way_out=f"a person should commit them in {root} or put them aside, then try again",
        )
    return GateClosed(f"git did not merge {tree.branch} into {target}; nothing was changed:\n{said(ran)}")


def _checked_out(top: Git) -> str:
    """The name of what is merged into: a branch, or a commit where none is checked out."""
    ran = top.run("symbolic-ref", "--quiet", "--short", "HEAD")
    return os.fsdecode(ran.output).strip() if ran.exit_code == 0 else top.ask("rev-parse", "HEAD")


def _listed(paths: list[str]) -> str:
    more = len(paths) - _MAX_LISTED
    return ", ".join([*paths[:_MAX_LISTED], *([f"and {more} more"] if more > 0 else [])])
