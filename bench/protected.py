"""Making the copy of a project that the protected tests run in, against a bound in seconds."""

import os
from statistics import median

from bench.measure import Setting, seconds_each
from bench.table import Goal, Row, Section
from bench.tree import Tree
from bench.workload import ACTOR, make_project
from detent.engine.gates.copy import project_copy
from detent.engine.gates.protected import ProtectedFiles
from detent.engine.project import open_project

_FILES = 10_000
_IGNORED_BYTES = 1_000_000_000
_BOUND_S = 2.0


def protected(setting: Setting) -> Section:
    directory = os.path.join(setting.directory, "project")
    with make_project(directory):
        pass
    Tree(directory, _FILES)
    _write(directory, ".gitignore", "build/\n")
    _write(directory, "build/out.o", "")
    os.truncate(os.path.join(directory, "build/out.o"), _IGNORED_BYTES)
    _write(directory, "tests/test_one.py", "def test_one():\n    assert True\n")
    with open_project(directory, actor=ACTOR) as project:
        kept = ProtectedFiles.take(project.checkpoints.moment(), ())
        _write(directory, "tests/test_one.py", "")

        def copy() -> None:
            moment = project.checkpoints.moment()
            with project_copy(kept.copied(project.place, moment, kept.changes(moment))):
                pass

        took = median(seconds_each(copy, 1) for _ in range(setting.pick(5, 2)))
    what = f"copy for protected tests : {_BOUND_S:g} s, {_FILES:,} files"
    return Section(
        name="protected",
        rows=(Row(what=what, unit="s", ours=took, theirs=_BOUND_S, ratio=took / _BOUND_S, goal=Goal(1.0)),),
        remarks=(
            "ours: look at the files, find the changed test, make the copy with the old one, remove the copy;",
            "20 MB in 100 directories, and 1 GB in a directory that git ignores, which is a link in the copy",
        ),
    )


def _write(directory: str, path: str, text: str) -> None:
    os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
    with open(os.path.join(directory, path), "w") as file:
        file.write(text)
