"""Worktrees: work that is kept apart in a checkout of its own until it is merged.

A worktree is made from the project's `HEAD`, on a branch of its own, and is the same project with another base: the
state, and with it the journal, is the project's. Nothing is removed before it is merged; whatever a kill leaves behind
is used again, or set aside.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import msgspec

from detent.config import place as places
from detent.core.guarded import CLIENT_FILES
from detent.core.isolation import Mode, tree_name
from detent.engine.project import Project
from detent.errors import DetentError, Refused
from detent.run.git import Git, said
from detent.store import disk
from detent.store.files import FileStore
from detent.store.lock import exclusive

BRANCHES = "detent/"
#: A merge may wait for others, each with the hooks of the person.
_WAIT_S = 1_200.0
_NO_ISOLATION = 'or set isolation = "none" below [run] in detent.toml'
#: Detent writes these itself, in every checkout where a client is installed: they are nobody's work.
GENERATED = tuple(name for name in CLIENT_FILES if "workflow" in name)


class Worktree(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is written beside a worktree once it is complete; without that nobody has worked in it."""

    session: str
    phase: str | None = None
    project: str | None = None
    #: The commit that it was made from.
    made_from: str = ""

    @property
    def name(self) -> str:
        return tree_name(self.session, self.phase, self.project)

    @property
    def branch(self) -> str:
        return BRANCHES + self.name

    def path(self, root: str) -> str:
        return os.path.join(places.worktrees(root), self.name)


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Worktree).decode


def open_in(project: Project, worktree: str) -> Project:
    """The same project with the files of the worktree: a second object on the same state."""
    place, _ = places.find(worktree, project=project.place.project)
    return Project(FileStore(place.state), place, project.settings, actor=project.actor, clock=project.clock)


def worktree_of(project: Project, session: str, phase: str | None = None) -> Worktree:
    return Worktree(session=session, phase=phase, project=project.place.project)


def known(root: str) -> list[Worktree]:
    """Every worktree that is complete."""
    directory = places.worktrees(root)
    found = []
    with suppress(FileNotFoundError):
        for name in sorted(os.listdir(directory)):
            if name.endswith(".json"):
                with suppress(FileNotFoundError, msgspec.DecodeError), open(os.path.join(directory, name), "rb") as file:
                    found.append(_decode(file.read()))
    return found


def is_complete(tree: Worktree, root: str) -> bool:
    return os.path.exists(f"{tree.path(root)}.json") and os.path.lexists(os.path.join(tree.path(root), ".git"))


@contextmanager
def one_at_a_time(root: str) -> Iterator[None]:
    """What is done to worktrees. Not the project's lock: git may take long, and its hooks may call Detent."""
    directory = places.worktrees(root)
    with disk.failing_as("lock", directory):
        os.makedirs(directory, exist_ok=True)
        fd = os.open(os.path.join(directory, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        with exclusive(fd, threading.Lock(), wait_s=_WAIT_S, what=f"{directory}"):
            yield
    finally:
        os.close(fd)


def ensure(project: Project, session: str, phase: str | None = None) -> tuple[str, list[str]]:
    """The path of the worktree, made if need be, and what a person should know about it."""
    root = project.place.root
    tree = worktree_of(project, session, phase)
    with one_at_a_time(root):
        top = _checked(root, project)
        if is_complete(tree, root) and _is_registered(top, tree.path(root)):
            return tree.path(root), _brought_up(top, tree, root)
        notices = _cleared(top, tree, root)
        return tree.path(root), notices + _made(top, tree, root)


def remove(project: Project, session: str, phase: str | None = None) -> list[str]:
    """Remove the worktree and its branch if all of it is merged; else say why it is still there."""
    root = project.place.root
    tree = worktree_of(project, session, phase)
    with one_at_a_time(root):
        top, path = Git(root), tree.path(root)
        if os.path.isdir(path):
            here = Git(path)
            left = here.changes(*left_out(root))
            if left or not top.contains(here.ask("rev-parse", "HEAD")):
                what = f"{len(left)} files that are not committed" if left else "commits that are not merged"
                return [f"{path} stays, because it has {what}; detent merge {phase or ''} --session {session}"]
            for name in _untracked_own(here, root):
                os.unlink(name)
            top.ask("worktree", "remove", path)
        with suppress(FileNotFoundError):
            os.unlink(f"{path}.json")
        if top.commit_of(f"refs/heads/{tree.branch}") and not top.holds("branch", "--delete", tree.branch):
            return [f"branch {tree.branch} stays: git does not count it as merged"]
    return []


def left_out(root: str) -> list[str]:
    """What no commit of a worktree takes, as git's pathspecs."""
    return [f":(exclude,top,literal){_below(root, name)}" for name in GENERATED]


class Worktrees:
    """The worktrees of one session, for whoever runs it. May be asked from several threads."""

    def __init__(self, project: Project, session: str, mode: Mode) -> None:
        self._project, self._session, self._mode = project, session, mode
        self._opened: dict[str | None, Project] = {}
        self._opening = threading.Lock()

    def tree(self, phase: str) -> Project:
        """The project as the phase sees it: in its worktree, which is made if need be."""
        if self._mode == "none":
            return self._project
        key = self._key(phase)
        with self._opening:
            if key not in self._opened:
                path, notices = ensure(self._project, self._session, key)
                self._project.notices.extend(notices)
                self._opened[key] = open_in(self._project, path)
            return self._opened[key]

    def done(self, phase: str) -> None:
        """The phase is finished: its worktree goes, if it has one of its own and all of it is merged."""
        if self._mode == "phase":
            self._end(phase)

    def close(self) -> None:
        """Let go of them; that of a session that has ended goes as well."""
        ended = self._mode == "session" and self._project.session(self._session).state.status != "active"
        if ended:
            self._end(None)
        with self._opening:
            while self._opened:
                self._opened.popitem()[1].close()

    def _end(self, key: str | None) -> None:
        with self._opening:
            opened = self._opened.pop(key, None)
        if opened is not None:
            opened.close()
        try:
            if not self._project.session(self._session).state.gates_apply:
                # No gate has brought it back.
                from detent.run.merging import merge  # noqa: PLC0415 - it needs this module

                merge(self._project, self._session, key)
            notices = remove(self._project, self._session, key)
        except DetentError as error:
            notices = [f"{error.message}; {error.way_out}" if error.way_out else error.message]
        self._project.notices.extend(notices)

    def _key(self, phase: str) -> str | None:
        return phase if self._mode == "phase" else None


# Making one


def _checked(root: str, project: Project) -> Git:
    """git at the root, if it has what a worktree can be made of."""
    state = os.path.join(root, places.STATE)
    if os.path.realpath(state) != state:
        raise Refused(f"{state} is a link; worktrees must lie in the project", way_out=_NO_ISOLATION[3:])
    git = Git(root)
    if not git.holds("rev-parse", "--is-inside-work-tree"):
        raise Refused(f"{root} is not in a git repository", way_out=f"git init and a first commit, {_NO_ISOLATION}")
    if git.commit_of("HEAD") is None:
        raise Refused(f"the git repository of {root} has no commit yet", way_out=f"git commit, {_NO_ISOLATION}")
    home = places.find(root, project=project.place.project)[0].base
    below = os.path.relpath(home, git.ask("rev-parse", "--show-toplevel"))
    if below != "." and git.commit_of("HEAD") and not git.holds("cat-file", "-e", f"HEAD:{below}"):
        raise Refused(f"HEAD has nothing in {below}", way_out=f"commit what is in {home}, {_NO_ISOLATION}")
    return git


def _is_registered(top: Git, path: str) -> bool:
    listed = top.ask("worktree", "list", "--porcelain").split("\n")
    return f"worktree {os.path.realpath(path)}" in listed


def _cleared(top: Git, tree: Worktree, root: str) -> list[str]:
    """Room for it: what an interrupted beginning left goes out of the way, and git forgets it."""
    path, notices = tree.path(root), []
    with suppress(FileNotFoundError):
        os.unlink(f"{path}.json")
    if os.path.lexists(path):
        aside = next(name for n in range(1, 1_000) if not os.path.lexists(name := f"{path}.aside-{n}"))
        os.rename(path, aside)
        notices.append(f"{path} was no whole worktree; what it had is in {aside}")
    # git keeps a lock on a worktree that it did not finish.
    top.run("worktree", "unlock", path)
    top.ask("worktree", "prune")
    return notices


def _made(top: Git, tree: Worktree, root: str) -> list[str]:
    path, branch = tree.path(root), tree.branch
    head, tip = top.ask("rev-parse", "HEAD"), top.commit_of(f"refs/heads/{branch}")
    store = FileStore(places.worktrees(root))
    # The project may have its `.workflow` in git; checkouts of itself are never part of it.
    store.put(".gitignore", b"*\n")
    is_new = tip is None or top.contains(tip)
    made = top.run("worktree", "add", *(("-B", branch, path, head) if is_new else (path, branch)))
    if made.exit_code != 0:
        raise Refused(
            f"git could not make the worktree {path} on branch {branch}: {said(made)}", way_out=_way_out(top, branch)
        )
    store.put(f"{tree.name}.json", _encode(msgspec.structs.replace(tree, made_from=head)))
    notices = [] if is_new else [f"{path} goes on with branch {branch}, which has work that is not merged"]
    changed = top.changes(*left_out(root))
    if changed:
        count = f"{len(changed)} files of the project have" if len(changed) > 1 else "1 file of the project has"
        notices.append(f"{count} changes that are not committed; {path} does not have them")
    return notices


def _way_out(top: Git, branch: str) -> str | None:
    if top.commit_of(f"refs/heads/{BRANCHES.rstrip('/')}") is not None:
        return "git branch -m detent OTHER-NAME: git cannot have a branch detent beside branches detent/…"
    if top.run("symbolic-ref", "HEAD").output.decode("utf-8", "replace").strip() == f"refs/heads/{branch}":
        return "check another branch out in the project"
    return None


def _brought_up(top: Git, tree: Worktree, root: str) -> list[str]:
    """A worktree that is used again and has nothing of its own begins where the project is."""
    here, head = Git(tree.path(root)), top.ask("rev-parse", "HEAD")
    own, branch = here.ask("rev-parse", "HEAD"), here.ask("rev-parse", "--abbrev-ref", "HEAD")
    if own != head and top.contains(own) and not here.changes(*left_out(root)):
        here.ask("merge", "--ff-only", "--quiet", head)
    if branch != tree.branch:
        return [f"{here.directory} is on {branch}, not on {tree.branch}; what is checked out there is what is merged"]
    return []


def _untracked_own(here: Git, root: str) -> list[str]:
    names = [_below(root, name) for name in GENERATED]
    found = here.paths("ls-files", "--others", "-z", "--", *(f":(top,literal){name}" for name in names))
    return [os.path.join(here.directory, path) for path in found]


def _below(root: str, name: str) -> str:
    """A path of the project as it is called in the repository."""
    return os.path.normpath(os.path.join(os.path.relpath(root, places.repository(root) or root), name))
