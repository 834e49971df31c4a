"""Merges the work of a worktree: commits it there, then merges it into the branch of the session.

That branch is `detent/SESSION` unless a person chose another one. It has a worktree of its own, in which it is merged.
The project's own files change only if a person chose the branch that the project has checked out.

A merge happens as a whole or not at all. A merge that fails is aborted at once. Before git starts, a note records what
is merged into what. If the note is still there the next time, either git still runs and is waited for, or it was
killed: before it began, while it wrote files, or before the commit. The interrupted merge is then undone. A file whose
content is neither the old one nor a beginning of git's belongs to a person, and stays.
"""

import os
import shlex
import time
from contextlib import suppress
from typing import NamedTuple

import msgspec

from detent.config import place as places
from detent.core.limits import cut
from detent.engine.project import Project
from detent.engine.redact_command import redact_text
from detent.errors import DetentError, GateClosed, LockTimeout, NotFound
from detent.process import Captured, born
from detent.process.git import Git, last_lines
from detent.run.worktree_record import Worktree, is_complete, known, left_out, one_at_a_time
from detent.store import disk

_MAX_TITLE = 60
_MAX_LISTED = 20
#: Options against the person's settings, which may ask for another kind of merge or for a stash.
_MERGE = ("merge", "--no-ff", "--commit", "--no-squash", "--no-autostash", "--no-edit", "--no-progress")
_NOTE = ".merging.json"
_WAIT_S = 600.0
_PAUSE_S = 0.05


class Merged(NamedTuple):
    message: str
    #: The merge commit; None if there was nothing to merge.
    commit: str | None


class Destination(NamedTuple):
    """The branch that the work of a session is merged into."""

    #: The checkout in which it is merged.
    directory: str
    #: Its worktree; None if that is the project itself.
    tree: Worktree | None

    @property
    def branch(self) -> str:
        return self.tree.branch if self.tree is not None else "HEAD"


def destination_of(project: Project, session: str, into: str | None = None) -> Destination:
    """The branch that a person chose, by the option or in the settings; else one of the session's own."""
    root = project.place.root
    chosen = into or project.session(session).state.options.run.into or project.settings.run.into
    if chosen == "HEAD" or (chosen is not None and chosen == _checked_out(Git(root))):
        return Destination(root, None)
    tree = Worktree(session=session, project=project.place.project, target=chosen or "")
    return Destination(tree.path(root), tree)


def merge(project: Project, session: str, phase: str | None = None, *, into: str | None = None) -> Merged:
    """Merge the worktree of the session, or of one of its phases. Raises `GateClosed` with the reason if it cannot."""
    root, own = project.place.root, destination_of(project, session)
    tree = Worktree(session=session, phase=phase, project=project.place.project)
    if phase is None and own.tree is not None:
        tree = own.tree
    title = _title(tree, project.session(session).state.task)
    target = destination_of(project, session, into) if into is not None else own
    with one_at_a_time(root):
        recover(root)
        if target.tree is not None and phase is None and into is None:
            return _kept(target, title, root)
        if target.tree is not None:
            from detent.run.worktree import make  # noqa: PLC0415 - it imports this module

            make(project, target.tree)
        top = Git(target.directory)
        tip = _committed(Git(tree.path(root)), title, root) if is_complete(tree, root) else _branch(top, tree, root)
        if top.contains(tip):
            return Merged(f"{tree.branch} has nothing to merge", None)
        under_way = top.unfinished()
        if under_way is not None:
            here = target.directory
            raise GateClosed(f"{here} is in the middle of a {under_way}", way_out=f"finish it in {here}, then retry")
        return _merged(top, tree, tip, title, root)


def _kept(target: Destination, title: str, root: str) -> Merged:
    """Commit the work of a session that was done on its branch itself."""
    assert target.tree is not None
    if not is_complete(target.tree, root):
        return Merged(f"{target.branch} has nothing to merge", None)
    here = Git(target.directory)
    before = here.ask("rev-parse", "HEAD")
    commit = _committed(here, title, root)
    if commit == before:
        return Merged(f"{target.branch} has nothing to commit", None)
    return Merged(f"committed on {target.branch} as {commit[:12]}", commit)


def current(root: str, directory: str) -> Worktree | None:
    """The worktree that contains the directory."""
    inside = os.path.join(os.path.realpath(directory), "")
    return next((tree for tree in known(root) if inside.startswith(os.path.join(tree.path(root), ""))), None)


def _title(tree: Worktree, task: str) -> str:
    first = redact_text(task).strip().split("\n")[0]
    return f"{tree.session}{f' {tree.phase}' if tree.phase else ''}: {cut(first, _MAX_TITLE)}"


def _branch(top: Git, tree: Worktree, root: str) -> str:
    """The commit of the branch of a worktree that no longer exists."""
    if os.path.lexists(tree.path(root)):
        raise GateClosed(f"{tree.path(root)} is not a complete worktree, so its files would not be merged")
    tip = top.commit_of(f"refs/heads/{tree.branch}")
    if tip is not None:
        return tip
    others = [f"{other.phase or ''} --session {other.session}".strip() for other in known(root)]
    raise NotFound(
        f"{tree.session} has no worktree{f' for {tree.phase}' if tree.phase else ''}, and no branch {tree.branch}",
        way_out=f"detent merge {others[0]}" if others else 'isolation = "phase" below [run] in detent.toml makes them',
    )


def _committed(here: Git, title: str, root: str) -> str:
    """Commit everything in the worktree. Returns the commit."""
    here.drop_stale_lock()
    conflicts = here.paths("diff", "--name-only", "--diff-filter=U", "-z")
    if conflicts:
        raise GateClosed(
            f"{_listed(conflicts)} in {here.directory} still has conflicts",
            way_out="resolve them there, git add, git commit",
        )
    under_way = here.unfinished()
    if under_way not in (None, "merge"):
        raise GateClosed(
            f"{here.directory} is in the middle of a {under_way}",
            way_out=f"finish it there: git {under_way} --continue",
        )
    if under_way or here.changes(*left_out(root)):
        here.ask("add", "--all", "--", ".", *left_out(root))
        if under_way or not here.holds("diff", "--cached", "--quiet"):
            done = here.run(*here.identity(), "commit", "--quiet", "-m", title)
            if done.exit_code != 0:
                raise GateClosed(f"git could not commit the changes in {here.directory}:\n{last_lines(done)}")
    return here.ask("rev-parse", "HEAD")


def _merged(top: Git, tree: Worktree, tip: str, title: str, root: str) -> Merged:
    merging = Merging(directory=top.directory, head=top.ask("rev-parse", "HEAD"), tip=tip)
    _write_note(root, merging)
    arguments = (*top.identity(), *_MERGE, "-m", f"Merge {title}", tip)
    ran = top.run(*arguments, started=lambda leader: _write_note(root, merging.by(leader)))
    if ran.exit_code != 0:
        refusal = _refusal(top, tree, ran, root)
        if os.path.exists(os.path.join(top.own_directory(), "MERGE_HEAD")):
            top.ask("merge", "--abort")
        _remove_note(root)
        raise refusal
    _remove_note(root)
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
            f"{_listed(in_the_way)} in {top.directory} has changes that are not committed, "
            f"and {tree.branch} changes it too",
            way_out=f"a person should commit or stash them in {top.directory}, then retry",
        )
    return GateClosed(f"git could not merge {tree.branch} into {target}; nothing was changed:\n{last_lines(ran)}")


def _checked_out(top: Git) -> str:
    """The branch that the project has checked out, or its commit if HEAD is detached."""
    ran = top.run("symbolic-ref", "--quiet", "--short", "HEAD")
    return os.fsdecode(ran.output).strip() if ran.exit_code == 0 else top.ask("rev-parse", "HEAD")


def _listed(paths: list[str]) -> str:
    more = len(paths) - _MAX_LISTED
    return ", ".join([*paths[:_MAX_LISTED], *([f"and {more} more"] if more > 0 else [])])


# An interrupted merge


class Merging(msgspec.Struct, frozen=True, kw_only=True):
    """The note about a merge."""

    directory: str
    head: str
    tip: str
    #: The process of git, and its start time, which tells it from a later process with the same id.
    leader: int = 0
    born: str | None = None

    def by(self, leader: int) -> "Merging":
        return msgspec.structs.replace(self, leader=leader, born=born(leader))


def _write_note(root: str, merging: Merging) -> None:
    path = _path(root)
    with disk.failing_as("write", path):
        disk.replace(path, msgspec.json.encode(merging), durable=True)


def _remove_note(root: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(_path(root))


def recover(root: str) -> None:
    """Wait for or undo an interrupted merge. The caller holds the lock of the worktrees."""
    try:
        with open(_path(root), "rb") as file:
            merging = msgspec.json.decode(file.read(), type=Merging)
        noted_at = os.stat(_path(root)).st_mtime
    except (FileNotFoundError, msgspec.DecodeError):
        return
    _wait_for(merging)
    if not os.path.isdir(merging.directory):
        # The checkout is gone, and the half of the merge with it.
        _remove_note(root)
        return
    top = Git(merging.directory)
    if not top.contains(merging.tip) and top.ask("rev-parse", "HEAD") == merging.head:
        # One second earlier: file systems store times in steps.
        top.drop_stale_lock(since=noted_at - 1)
        if top.commit_of("MERGE_HEAD") == merging.tip:
            top.ask("merge", "--abort")
        elif top.unfinished() is None:
            _restore(top, merging)
    _remove_note(root)


def _wait_for(merging: Merging) -> None:
    until = time.monotonic() + _WAIT_S
    while merging.born is not None and born(merging.leader) == merging.born:
        if time.monotonic() > until:
            raise LockTimeout(
                f"git has been merging {merging.tip[:12]} too long, in process {merging.leader}",
                way_out="retry, or end that process if it hangs",
            )
        time.sleep(_PAUSE_S)


def _restore(top: Git, merging: Merging) -> None:
    """Restore the files that git had written before it was killed."""
    repository = Git(top.ask("rev-parse", "--show-toplevel"))
    made = repository.run("merge-tree", "--write-tree", merging.head, merging.tip)
    result = made.output.decode().strip() if made.exit_code == 0 else merging.tip
    touched = repository.paths("diff", "--name-only", "--no-renames", "-z", merging.head, result)
    for path in [path for path in touched if _is_from_git(repository, path, merging.head, result)]:
        if repository.holds("cat-file", "-e", f"{merging.head}:{path}"):
            repository.ask("checkout", "--quiet", merging.head, "--", f":(literal){path}")
        else:
            repository.ask("rm", "--cached", "--quiet", "--ignore-unmatch", "--", f":(literal){path}")
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(repository.directory, path))


def _is_from_git(repository: Git, path: str, head: str, result: str) -> bool:
    """Whether the content of the file is that of the merge, or a beginning of it."""
    full = os.path.join(repository.directory, path)
    after = repository.run("cat-file", "blob", f"{result}:{path}")
    if not os.path.lexists(full):
        # git removed it, to delete or replace it. A committed file can be restored without loss.
        return repository.holds("cat-file", "-e", f"{head}:{path}")
    if after.exit_code != 0:
        return False
    if os.path.islink(full):
        return os.fsencode(os.readlink(full)) == after.output
    if not os.path.isfile(full):
        return False
    with open(full, "rb") as file:
        content = file.read()
    before = repository.run("cat-file", "blob", f"{head}:{path}")
    return after.output.startswith(content) and not (before.exit_code == 0 and before.output == content)


def _path(root: str) -> str:
    return os.path.join(places.worktrees(root), _NOTE)
