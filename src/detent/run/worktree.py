"""Worktrees: isolate the work of a session or phase in a checkout of its own until it is merged.

A worktree starts at the project's `HEAD`, on its own branch. It is the same project with another base: the state, and
with it the journal, stays in the project. A worktree is removed only after its merge; one that a killed process left
behind is used again or moved aside.
"""

import os
import threading

from detent.config import place as places
from detent.config.place import Place
from detent.core.run.isolation import Mode
from detent.core.session.session import Session, SessionStatus
from detent.engine.project import Project
from detent.errors import DetentError, Refused
from detent.process.git import Git, last_lines
from detent.run.merging import destination_of, merge
from detent.run.worktree_links import add_links
from detent.run.worktree_record import (
    BRANCHES,
    GENERATED,
    HOOKS,
    Worktree,
    forget,
    in_repository,
    is_complete,
    left_out,
    one_at_a_time,
    save,
)

_NO_ISOLATION = 'set isolation = "none" below [run] in detent.toml'


def ensure(project: Project, session: str, phase: str | None = None) -> tuple[str, list[str]]:
    """Create the worktree if needed. Returns its path, and notices for a person."""
    root = project.place.root
    target = destination_of(project, session)
    is_target = phase is None and target.tree is not None
    tree = target.tree if is_target else Worktree(session=session, phase=phase, project=project.place.project)
    assert tree is not None
    with one_at_a_time(root):
        base = None if is_target else Git(root).commit_of(target.branch)
        return tree.path(root), make(project, tree, base)


def make(project: Project, tree: Worktree, base: str | None = None) -> list[str]:
    """Create the worktree if needed, from the commit `base` or from HEAD. The caller holds the lock."""
    root = project.place.root
    top = _repository(root, project)
    base = base or top.ask("rev-parse", "HEAD")
    if is_complete(tree, root) and _is_registered(top, tree.path(root)):
        return _updated(top, tree, root, base)
    notices = _clear(top, tree, root)
    return notices + _create(top, tree, project, base)


def remove(project: Project, session: str, phase: str | None = None) -> list[str]:
    """Remove the worktree and its branch if all of it is merged. Returns notices about what stays, and why."""
    root = project.place.root
    target = destination_of(project, session)
    if phase is None and target.tree is not None:
        return _remove_target(target.tree, root)
    tree = Worktree(session=session, phase=phase, project=project.place.project)
    with one_at_a_time(root):
        top, path = Git(root), tree.path(root)
        merged = target.branch if top.commit_of(target.branch) is not None else "HEAD"
        if not is_complete(tree, root):
            notices = _clear(top, tree, root)
        else:
            notices = []
            here = Git(path)
            left = here.changes(*left_out(root))
            if left or not top.contains(here.ask("rev-parse", "HEAD"), merged):
                what = (
                    f"{len(left)} uncommitted {'file' if len(left) == 1 else 'files'}" if left else "unmerged commits"
                )
                command = " ".join(["detent merge", *([phase] if phase else []), "--session", session])
                return [f"{path} was not removed, because it has {what}; {command}"]
            for name in _untracked_own(here, root):
                os.unlink(name)
            forget(tree, root)
            top.ask("worktree", "remove", path)
        tip = top.commit_of(f"refs/heads/{tree.branch}")
        if tip is not None and not (
            top.contains(tip, merged) and top.holds("branch", "--delete", "--force", tree.branch)
        ):
            notices.append(f"branch {tree.branch} was not removed, because it has unmerged commits")
        return notices


def _remove_target(tree: Worktree, root: str) -> list[str]:
    """Remove the worktree of the session's branch; the branch stays for the person, if it has work."""
    with one_at_a_time(root):
        top, path = Git(root), tree.path(root)
        if is_complete(tree, root):
            here = Git(path)
            left = here.changes(*left_out(root))
            if left:
                what = f"{len(left)} uncommitted {'file' if len(left) == 1 else 'files'}"
                return [f"{path} was not removed, because it has {what}; detent merge --session {tree.session}"]
            for name in _untracked_own(here, root):
                os.unlink(name)
            forget(tree, root)
            top.ask("worktree", "remove", path)
        tip = top.commit_of(f"refs/heads/{tree.branch}")
        if tip is None:
            return []
        if not top.contains(tip):
            return [f"the work is on branch {tree.branch}; take it over with: git merge {tree.branch}"]
        if not tree.target:
            top.holds("branch", "--delete", "--force", tree.branch)
        return []


class Worktrees:
    """The worktrees of one session, for its runner. Thread-safe."""

    def __init__(self, project: Project, session: str, mode: Mode) -> None:
        self._project, self._session, self._mode = project, session, mode
        self._made: dict[str | None, Place] = {}
        self._making = threading.Lock()

    def place(self, phase: str) -> Place:
        """The project in the worktree of the phase; creates the worktree if needed."""
        key = self._key(phase)
        with self._making:
            if key not in self._made:
                path, notices = ensure(self._project, self._session, key)
                self._project.notices.extend(notices)
                self._made[key] = places.find(path, project=self._project.place.project)[0]
            return self._made[key]

    def done(self, phase: str) -> None:
        """Remove the worktree of a finished phase, if it has its own and all of it is merged."""
        if self._mode == "phase":
            self._end(phase)

    def close(self) -> None:
        """Remove the worktree of a session that has ended; its branch stays."""
        has_one = self._mode == "session" or destination_of(self._project, self._session).tree is not None
        if has_one and self._state.status is not SessionStatus.ACTIVE:
            self._end(None)

    def _end(self, key: str | None) -> None:
        with self._making:
            self._made.pop(key, None)
        try:
            state = self._state
            if not state.gates_apply and state.status is not SessionStatus.CANCELLED:
                # Without gates, no gate has merged it.
                merge(self._project, self._session, key)
            notices = remove(self._project, self._session, key)
        except DetentError as error:
            notices = [f"{error.message}; {error.way_out}" if error.way_out else error.message]
        self._project.notices.extend(notices)

    @property
    def _state(self) -> Session:
        return self._project.session(self._session).state

    def _key(self, phase: str) -> str | None:
        return phase if self._mode == "phase" else None


# Creating a worktree


def _repository(root: str, project: Project) -> Git:
    """git at the root. Refuses a project in which no worktree can be created."""
    state = os.path.dirname(places.worktrees(root))
    if os.path.realpath(state) != state:
        raise Refused(f"{state} is a link; worktrees must be inside the project", way_out=_NO_ISOLATION)
    git = Git(root)
    if not git.holds("rev-parse", "--is-inside-work-tree"):
        raise Refused(f"{root} is not in a git repository", way_out=f"git init and a first commit, or {_NO_ISOLATION}")
    if git.commit_of("HEAD") is None:
        raise Refused(f"the git repository of {root} has no commit yet", way_out=f"git commit, or {_NO_ISOLATION}")
    home = places.find(root, project=project.place.project)[0].base
    below = os.path.relpath(home, git.ask("rev-parse", "--show-toplevel"))
    if below != "." and not git.holds("cat-file", "-e", f"HEAD:{below}"):
        raise Refused(f"HEAD has nothing in {below}", way_out=f"commit the files in {home}, or {_NO_ISOLATION}")
    return git


def _is_registered(top: Git, path: str) -> bool:
    listed = top.ask("worktree", "list", "--porcelain").split("\n")
    return f"worktree {os.path.realpath(path)}" in listed


def _clear(top: Git, tree: Worktree, root: str) -> list[str]:
    """Move an incomplete worktree aside, and unregister it in git."""
    path, notices = tree.path(root), []
    forget(tree, root)
    if os.path.lexists(path):
        aside = next(name for n in range(1, 1_000) if not os.path.lexists(name := f"{path}.aside-{n}"))
        os.rename(path, aside)
        notices.append(f"{path} was not a complete worktree; its files are in {aside}")
    # Not with prune, which would also unregister worktrees of people. Twice --force, because git keeps a lock on a
    # worktree that it did not finish.
    top.run("worktree", "remove", "--force", "--force", path)
    return notices


def _create(top: Git, tree: Worktree, project: Project, base: str) -> list[str]:
    root, branch = project.place.root, tree.branch
    path = tree.path(root)
    tip = top.commit_of(f"refs/heads/{branch}")
    # The branch of a person is never moved.
    is_new = tip is None or (not tree.target and top.contains(tip, base))
    made = top.run("worktree", "add", *(("-B", branch, path, base) if is_new else (path, branch)))
    if made.exit_code != 0:
        raise Refused(
            f"git could not create the worktree {path} on branch {branch}: {last_lines(made)}",
            way_out=_way_out(top, branch),
        )
    notices = add_links(project, path)
    save(tree, root)
    if not is_new and not tree.target:
        notices.append(f"{path} continues branch {branch}, which has unmerged work")
    return notices + _missing(top, path, root)


def _missing(top: Git, path: str, root: str) -> list[str]:
    """Notices about files that the project has and its new worktree does not."""
    notices = []
    changed = top.changes(*left_out(root))
    if changed:
        count = f"{len(changed)} files of the project have" if len(changed) > 1 else "1 file of the project has"
        notices.append(f"{count} uncommitted changes; {path} does not have them")
    hooks = [
        name
        for name in HOOKS
        if os.path.exists(os.path.join(root, name))
        and not os.path.exists(os.path.join(path, in_repository(root, name)))
    ]
    if hooks:
        notices.append(f"{', '.join(hooks)} is not committed: agents in {path} work without its hooks")
    return notices


def _way_out(top: Git, branch: str) -> str | None:
    if top.commit_of(f"refs/heads/{BRANCHES.rstrip('/')}") is not None:
        return "git branch -m detent OTHER-NAME: git cannot have a branch detent beside branches detent/…"
    if top.run("symbolic-ref", "HEAD").output.decode("utf-8", "replace").strip() == f"refs/heads/{branch}":
        return "check out another branch in the project"
    return None


def _updated(top: Git, tree: Worktree, root: str, base: str) -> list[str]:
    """Fast-forward an existing worktree without work of its own to `base`."""
    here = Git(tree.path(root))
    own, branch = here.ask("rev-parse", "HEAD"), here.ask("rev-parse", "--abbrev-ref", "HEAD")
    if not tree.target and own != base and top.contains(own, base) and not here.changes(*left_out(root)):
        here.ask("merge", "--ff-only", "--quiet", base)
    if branch != tree.branch:
        return [f"{here.directory} is on {branch}, not on {tree.branch}; Detent merges what is checked out there"]
    return []


def _untracked_own(here: Git, root: str) -> list[str]:
    names = [in_repository(root, name) for name in GENERATED]
    paths = here.paths("ls-files", "--others", "-z", "--", *(f":(top,literal){name}" for name in names))
    return [os.path.join(here.directory, path) for path in paths]
