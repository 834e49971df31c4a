"""Looks at a commit before git makes it: whether an agent weakens protected tests, and whether the session holds.

The files of the index are compared with the protected files of the session: tests and the runner's settings as they
were when it began. `git commit --no-verify` leaves it out; the gates and the check of CI do not.
"""

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from detent.config.place import repository
from detent.core.actor import ActorKind
from detent.core.gate import gate_name
from detent.core.session.session import Session
from detent.core.testrun.runner_files import Role, roles
from detent.core.testrun.weakened import Weakening, removed_tests, weakening
from detent.engine.gates.checks import protected_patterns
from detent.engine.gates.inputs import matcher
from detent.engine.gates.protected import ProtectedFiles
from detent.engine.gates.stored import PROTECTED, is_intact
from detent.errors import Corrupt
from detent.process.git import Git

if TYPE_CHECKING:
    from detent.engine.project import Project

#: The largest file of a commit that is read.
MAX_BYTES = 4 * 1024 * 1024
#: git names the index of a commit here, which may be another one than that of the repository.
_INDEX = "GIT_INDEX_FILE"


class Weakened(NamedTuple):
    """A protected file that the commit would weaken."""

    path: str
    how: Weakening
    reason: str
    way_out: str


class CommitCheck(NamedTuple):
    """The result for one session; `session` is empty if none is active."""

    session: str = ""
    weakened: tuple[Weakened, ...] = ()
    #: Why the rule does not apply: a person commits, or the phase may rewrite tests.
    allowed_because: str = ""

    @property
    def is_refused(self) -> bool:
        return bool(self.weakened) and not self.allowed_because


def check_commit(project: "Project", environment: Mapping[str, str]) -> CommitCheck:
    """Compare what is staged in git with the protected files of the active session."""
    name = project.binding.session if project.binding is not None else project.active()
    if name is None:
        return CommitCheck()
    session = project.session(name).state
    if session.has_ended or not session.gates_apply or session.now_protected is None:
        return CommitCheck(session.id)
    top = repository(project.place.base)
    if top is None:
        return CommitCheck(session.id)
    index = {_INDEX: os.path.join(top, environment[_INDEX])} if environment.get(_INDEX) else {}
    staged = _Staged(Git(top, index), os.path.relpath(project.place.base, top))
    weakened = tuple(_weakened(session, _protected(project, session), staged))
    return CommitCheck(session.id, weakened, _allowed(project, session) if weakened else "")


def _allowed(project: "Project", session: Session) -> str:
    bound = project.binding.phase if project.binding is not None else None
    live = (bound,) if bound else session.in_progress
    rewriting = [key for key in live if session.workflow.by_key[key].rewrites_tests]
    if rewriting:
        return f"{', '.join(rewriting)} may rewrite tests"
    if project.actor.kind is ActorKind.PERSON:
        return f"{project.actor.name} commits, and no agent"
    return ""


def _protected(project: "Project", session: Session) -> ProtectedFiles:
    name = f"{session.id}/{PROTECTED}/{session.now_protected}"
    data = project.store.get(name)
    if data is None or not is_intact(str(session.now_protected), data):
        raise Corrupt(
            f"the protected tests of {session.id} are gone or damaged, so the commit cannot be compared with them",
            way_out="detent doctor shows what is damaged",
        )
    return ProtectedFiles.decode(data)


class _Staged:
    """The files of the commit that git is about to make."""

    def __init__(self, git: Git, prefix: str) -> None:
        self._git, self._prefix = git, "" if prefix == "." else f"{prefix}/"

    def read(self, path: str) -> bytes | None:
        ran = self._git.run("cat-file", "blob", f":{self._prefix}{path}")
        return ran.output[:MAX_BYTES] if ran.exit_code == 0 else None

    def digests(self) -> dict[str, str]:
        """Path to the name of its content in git."""
        listed = self._git.paths("ls-files", "--stage", "-z", "--", f":(top){self._prefix}")
        return {
            path.removeprefix(self._prefix): entry.split()[1] for entry, _, path in (e.partition("\t") for e in listed)
        }

    def blob_name(self, content: bytes) -> str:
        import hashlib  # noqa: PLC0415 - only a commit needs it

        # Repositories with longer names compare as different, and are read.
        return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _weakened(session: Session, kept: ProtectedFiles, staged: _Staged) -> Iterator[Weakened]:
    digests = staged.digests()
    known = {*digests, *kept.files}
    by_path = roles(known)
    patterns = protected_patterns(session.workflow)
    is_named = matcher(patterns) if patterns else lambda _: False
    by_path |= {path: Role.TEST for path in known if path not in by_path and is_named(path)}
    accepted = frozenset(session.baseline.accepted)
    gate = next((gate_name(g) for phase in session.workflow.phases for g in phase.gates if g.protects), "tests")
    for path in sorted(by_path):
        file = kept.files.get(path)
        before = None if file is None else file.content
        if file is not None and before is None:
            # An ignored file: git does not commit it.
            continue
        if path in digests and before is not None and digests[path] == staged.blob_name(before):
            continue
        after = staged.read(path) if path in digests else None
        change = weakening(path, by_path[path], before, after)
        if change is None or _is_accepted(path, accepted, before, after):
            continue
        yield Weakened(path, *change, f"as a person, detent gate accept {gate} file:{path} -m WHY")


def _is_accepted(path: str, accepted: frozenset[str], before: bytes | None, after: bytes | None) -> bool:
    """Whether a person accepted the file as it is, or the loss of every test that it lost."""
    if f"file:{path}" in accepted:
        return True
    removed = removed_tests(before, after)
    names = {name.rpartition("::")[2].partition("[")[0] for name in accepted if name.startswith(f"{path}::")}
    return bool(removed) and removed <= names
