"""Taking a checkpoint against `git add -A && git commit`: of a tree never seen before, and after one file changed."""

import os
import shutil
from collections.abc import Callable

from bench.measure import Pair, Setting, interleave, say, seconds_each
from bench.table import Goal, Row, Section
from bench.tree import Repository, Tree, beside
from bench.workload import ACTOR, make_project
from detent.core.workflow.graph import chain
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle

_SIZES = (200, 2_000, 10_000)
_ONE_CHANGE_GOALS = {200: Goal(0.5), 2_000: Goal(0.5), 10_000: Goal(1.0)}


def first_checkpoint(setting: Setting) -> Section:
    return Section(
        name="first-checkpoint",
        rows=tuple(_first_row(setting, count) for count in _SIZES),
        remarks=(
            "ours: SessionCheckpoints.take() in a project just opened, all of it synced when it returns;",
            "theirs: git add -A and git commit in a new repository, which leave loose objects unsynced;",
            "20 MB in 100 directories, half of it random; what earlier rounds left to be written is synced before each",
        ),
    )


def checkpoint(setting: Setting) -> Section:
    return Section(
        name="checkpoint",
        rows=tuple(row for count in _SIZES for row in _one_change_rows(setting, count)),
        remarks=(
            "ours: SessionCheckpoints.take() in a process that has the project open, as a runner has it;",
            "theirs: git add -A and git commit, two processes; the same 20 MB, one file changed since the last time",
        ),
    )


def start(project: Project) -> SessionHandle:
    return project.start(chain("bench", [("work", "developer")]), "Measure checkpoints")


def _first_row(setting: Setting, count: int) -> Row:
    say(f"{count:,} files")
    with beside(setting.directory) as (ours, theirs):
        with make_project(ours) as project:
            start(project)
        state, new = project.place.state, os.path.join(setting.directory, f"new-{count}")
        shutil.rmtree(os.path.join(state, "checkpoints"))
        os.rename(state, new)
        for directory in (ours, theirs):
            Tree(directory, count)

        def take() -> float:
            shutil.rmtree(state, ignore_errors=True)
            shutil.copytree(new, state)
            # The record is an older one on purpose.
            shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)
            os.sync()
            with open_project(ours, actor=ACTOR) as project:
                return seconds_each(project.session().checkpoints.take, 1)

        def commit() -> float:
            shutil.rmtree(os.path.join(theirs, ".git"), ignore_errors=True)
            repository = Repository(theirs)
            os.sync()
            return seconds_each(repository.commit, 1)

        pair = interleave(take, commit, rounds=setting.pick(3 if count > 2_000 else 5, 2))
    what = f"first checkpoint : git commit, {count:,} files"
    return Row(what=what, unit="s", **pair._asdict(), goal=Goal(1.0))


def _one_change_rows(setting: Setting, count: int) -> tuple[Row, Row]:
    say(f"{count:,} files, one changed")
    times = setting.pick(5, 2)
    with beside(setting.directory) as (ours, theirs), make_project(ours) as project:
        our_tree, their_tree = Tree(ours, count), Tree(theirs, count)
        session, repository = start(project), Repository(theirs)
        repository.commit()

        def with_documents() -> None:
            session.checkpoints.take()
            project.flush()

        def compared(take: Callable[[], object], rounds: int) -> Pair:
            return interleave(
                lambda: sum(_changed(our_tree, take) for _ in range(times)) / times,
                lambda: sum(_changed(their_tree, repository.commit) for _ in range(times)) / times,
                rounds=rounds,
            )

        alone = compared(session.checkpoints.take, setting.pick(9, 3))
        whole = compared(with_documents, 3)
    what = f"checkpoint : git commit, 1 of {count:,} files"
    return (
        Row(what=what, unit="s", **alone._asdict(), goal=_ONE_CHANGE_GOALS[count]),
        Row(what="  with the documents written, as one command", unit="s", **whole._asdict()),
    )


def _changed(tree: Tree, work: Callable[[], object]) -> float:
    tree.change(1)
    return seconds_each(work, 1)
