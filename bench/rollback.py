"""Going back to a checkpoint against `git checkout -f`, with what changed since kept before or to be kept first."""

import time

from bench.checkpoint import start
from bench.measure import Pair, Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from bench.tree import SETTLED_S, Repository, Tree, beside
from bench.workload import make_project
from detent.engine.confirm import is_confirmed

_FILES = 2_000
_GOAL = Goal(1.0)


def rollback(setting: Setting) -> Section:
    rows = []
    with beside(setting.directory) as (ours, theirs), make_project(ours) as project:
        our_tree, their_tree = Tree(ours, _FILES), Tree(theirs, _FILES)
        session, repository = start(project), Repository(theirs)
        repository.commit()
        # The time that a person takes to agree is not measured.
        project.confirm = is_confirmed
        target, commit = session.checkpoints.take().id, repository.head()

        def roll_back(count: int, *, kept: bool) -> float:
            our_tree.change(count)
            time.sleep(SETTLED_S)
            if kept:
                session.checkpoints.take()
            return seconds_each(lambda: session.checkpoints.rollback(target), 1)

        def check_out(count: int, *, kept: bool) -> float:
            their_tree.change(count)
            time.sleep(SETTLED_S)
            if kept:
                repository.commit()
            return seconds_each(lambda: _keep_and_check_out(repository, commit, kept=kept), 1)

        def compared(count: int, *, kept: bool) -> Pair:
            say(f"{count:,} files back" + ", which have to be kept first" * (not kept))
            return interleave(
                lambda: roll_back(count, kept=kept), lambda: check_out(count, kept=kept), rounds=setting.pick(7, 3)
            )

        for count in (1, 1_000):
            what = f"rollback of {count:,} : checkout -f, {_FILES:,} files"
            rows.append(Row(what=what, unit="s", **compared(count, kept=True)._asdict(), goal=_GOAL))
            what = "  not kept before : git commit, checkout -f"
            rows.append(Row(what=what, unit="s", **compared(count, kept=False)._asdict(), goal=_GOAL))
    return Section(
        name="rollback",
        rows=tuple(rows),
        remarks=(
            "ours: SessionCheckpoints.rollback() in a process that has the project open; all or nothing, undoable;",
            "theirs: git checkout -f; where the changes were not committed, git add -A and git commit before it,",
            "since a rollback keeps what it replaces and git would lose it",
        ),
    )


def _keep_and_check_out(repository: Repository, commit: str, *, kept: bool) -> None:
    if not kept:
        repository.commit()
    repository.checkout(commit)
