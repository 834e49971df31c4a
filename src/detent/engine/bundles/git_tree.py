"""Names the files of a project as git does, and makes objects for a remote, without touching the user's repository.

git gets an index and a directory of objects of its own. It reads those of the repository and adds nothing to them.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from detent.config.place import repository
from detent.engine.bundles.bundle_file import GitTree
from detent.errors import DetentError, Refused
from detent.process.git import Git

#: The directory of published bundles, in the root of the project.
PUBLISHED = ".detent"
#: Nothing of git's own may write beside the index: no daemon that watches files, no shared index.
_ALONE = ("-c", "core.fsmonitor=false", "-c", "core.splitIndex=false", "-c", "core.compression=0", "-c", "gc.auto=0")


def git_tree(directory: str, notices: list[str]) -> GitTree | None:
    """The tree of the present files, tracked or not ignored; None outside of a repository or if git fails."""
    top = repository(directory)
    if top is None:
        return None
    try:
        with scratch(top) as git:
            git.ask(*_ALONE, "add", "--all", "--", ".")
            git.ask(*_ALONE, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", f":(glob)**/{PUBLISHED}/**")
            return GitTree(tree=git.ask(*_ALONE, "write-tree"), commit=git.commit_of("HEAD") or "")
    except DetentError as error:
        notices.append(f"the bundle does not name the git tree that it is about: {error.message}")
        return None


def committed_tree(directory: str, commit: str) -> str:
    """The tree of a commit without the published bundles. Raises `Refused` if git does not know the commit."""
    top = repository(directory)
    if top is None:
        raise Refused(f"{directory} is in no git repository")
    with scratch(top) as git:
        git.ask(*_ALONE, "read-tree", f"{commit}^{{tree}}")
        git.ask(*_ALONE, "rm", "-r", "--cached", "--quiet", "--ignore-unmatch", "--", f":(glob)**/{PUBLISHED}/**")
        return git.ask(*_ALONE, "write-tree")


def committed_file(directory: str, commit: str, path: str) -> bytes | None:
    """The content of a file in a commit; None if the commit does not have it."""
    top = repository(directory)
    if top is None:
        raise Refused(f"{directory} is in no git repository")
    git = Git(top)
    if git.commit_of(commit) is None:
        raise Refused(f"git does not know the commit {commit}", way_out="fetch it first")
    ran = git.run(
        "cat-file",
        "blob",
        f"{commit}:{os.path.relpath(os.path.join(os.path.realpath(directory), path), os.path.realpath(top))}",
    )
    return ran.output if ran.exit_code == 0 else None


@contextmanager
def scratch(top: str, env: Mapping[str, str] | None = None) -> Iterator[Git]:
    """git in the repository at `top`, with an index and objects of its own that are removed afterwards."""
    own = Git(top)
    objects, index = (os.path.join(top, own.ask("rev-parse", "--git-path", name)) for name in ("objects", "index"))
    with tempfile.TemporaryDirectory(prefix="detent-git-", ignore_cleanup_errors=True) as directory:
        copy, made = os.path.join(directory, "index"), os.path.join(directory, "objects")
        os.mkdir(made)
        with suppress(FileNotFoundError):
            # What it knows of unchanged files need not be hashed again. With the time of the index, git looks again at
            # files that changed in the same second.
            shutil.copy2(index, copy)
        yield Git(
            top,
            {
                **(env or {}),
                "GIT_INDEX_FILE": copy,
                "GIT_OBJECT_DIRECTORY": made,
                "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(objects),
            },
        )


def _quoted(path: str) -> str:
    """The path in a list that `:` separates."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
