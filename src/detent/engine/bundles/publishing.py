"""Brings the bundle of a session where CI finds it: a file to commit, or a ref of the remote.

A ref is pushed from objects of its own, so nothing is added to the user's repository. A person has to name the remote.
"""

import os
import tempfile
from typing import TYPE_CHECKING, NamedTuple

from detent.config.place import repository
from detent.engine.bundles.bundle_file import Progress
from detent.engine.bundles.exporting import Bundle, export_session
from detent.engine.bundles.git_tree import PUBLISHED, scratch
from detent.errors import Refused
from detent.store import disk

if TYPE_CHECKING:
    from detent.engine.project import Project

#: Refs of published bundles.
REFS = "refs/detent"
EXTENSION = ".bundle"
_AUTHOR = {
    "GIT_AUTHOR_NAME": "Detent",
    "GIT_AUTHOR_EMAIL": "detent@localhost",
    "GIT_COMMITTER_NAME": "Detent",
    "GIT_COMMITTER_EMAIL": "detent@localhost",
}
#: Only the ref is pushed, and no hook of the repository runs: it may expect a branch.
_PUSH = ("-c", "push.followTags=false", "-c", "push.recurseSubmodules=no", "push", "--quiet", "--no-verify", "--")


class Pushed(NamedTuple):
    bundle: Bundle
    remote: str
    ref: str
    #: The commit that the ref points at, with the bundle in it.
    commit: str


def publish_file(project: "Project", session: str, *, progress: Progress | None = None) -> tuple[str, Bundle]:
    """Write the bundle into the directory of published ones; its path. It is not committed."""
    directory = os.path.join(project.place.root, PUBLISHED, project.place.project or "")
    with disk.failing_as("write", directory, way_out="nothing was published; fix the problem and retry"):
        os.makedirs(directory, exist_ok=True)
    path = os.path.join(directory, session + EXTENSION)
    return path, export_session(project, session, path, progress=progress)


def publish_ref(project: "Project", session: str, *, progress: Progress | None = None) -> Pushed:
    """Push the bundle to a ref of the remote that the settings name. The one that is there is replaced."""
    remote = project.settings.publish.remote
    if remote is None:
        raise Refused(
            "no remote is set for published bundles",
            way_out='a person sets it in detent.toml, such as [publish] remote = "origin"',
        )
    top = repository(project.place.base)
    if top is None:
        raise Refused(f"{project.place.base} is in no git repository", way_out="detent publish --to artifact -o FILE")
    ref = "/".join(filter(None, (REFS, project.place.project, session)))
    with tempfile.TemporaryDirectory(prefix="detent-bundle-") as directory:
        path = os.path.join(directory, session + EXTENSION)
        bundle = export_session(project, session, path, progress=progress)
        # The same bundle makes the same commit.
        at = project.session(session).state.updated_at.isoformat(timespec="seconds")
        with scratch(top, {**_AUTHOR, "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}) as git:
            content = git.ask("hash-object", "-w", "--no-filters", "--", path)
            git.ask("read-tree", "--empty")
            git.ask("update-index", "--add", "--cacheinfo", f"100644,{content},{session}{EXTENSION}")
            message = f"The record of {session}, {bundle.commits} commits"
            commit = git.ask("commit-tree", "--no-gpg-sign", git.ask("write-tree"), "-m", message)
            git.ask(*_PUSH, remote, f"+{commit}:{ref}")
    return Pushed(bundle, remote, ref, commit)
