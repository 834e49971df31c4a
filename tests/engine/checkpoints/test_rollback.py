"""Going back: which phases and which files stand how afterwards, who is refused, and what can still be undone."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import suppress

import pytest

from detent.core.session.session import SessionStatus
from detent.core.session.status import Status
from detent.doctor.invariants import check
from detent.engine.confirm import is_confirmed
from detent.engine.project import open_project
from detent.errors import Conflict, DetentError, Invalid, NotFound, Refused
from tests.support.project import build_project
from tests.support.values import diamond, row


def statuses(handle):
    return {key: state.status.value for key, state in handle.state.phases.items()}


def texts(directory, *names):
    return [(directory / name).read_text() if (directory / name).exists() else None for name in names]


@pytest.fixture
def built(project, tmp_path):
    """A diamond, done up to its last phase; every phase wrote a file and declared it."""
    handle = project.start(diamond(), "try it")
    for key in "abcd":
        if key != "a":
            handle.begin(key)
        (tmp_path / f"{key}.md").write_text(f"of {key}")
        (tmp_path / f"{key}.undeclared").write_text(f"of {key}")
        handle.finish(f"{key} is done", phase=key, artifacts=[f"{key}.md"]) if key != "d" else None
    return handle


# Phases


def test_descendants_are_to_be_done_again_ancestors_stand_and_siblings_stay(built, tmp_path):
    built.fail("broke", phase="d")

    plan = built.checkpoints.rollback("PRE_b_v1", remove_unknown=True).plan

    assert statuses(built) == {"a": "completed", "b": "pending", "c": "completed", "d": "pending"}
    assert texts(tmp_path, "a.md", "b.md", "c.md", "d.md") == ["of a", None, "of c", None]
    assert texts(tmp_path, "a.undeclared", "c.undeclared") == ["of a", None]
    assert plan.kept == ("c.md",)
    assert any("c was completed since" in warning for warning in plan.warnings)


def test_a_directory_that_a_sibling_declared_stays_with_all_in_it(project, tmp_path):
    handle = project.start(diamond(), "try it")
    handle.finish("a is done")
    handle.begin("b")
    handle.begin("c")
    (tmp_path / "docs/deep").mkdir(parents=True)
    (tmp_path / "docs/deep/x").write_text("of c")
    (tmp_path / "docs.txt").write_text("of nobody")
    handle.finish("c is done", phase="c", artifacts=["docs"])
    handle.fail("broke", phase="b")

    handle.checkpoints.rollback("PRE_b_v1", remove_unknown=True)

    assert texts(tmp_path, "docs/deep/x", "docs.txt") == ["of c", None]


def test_what_a_sibling_had_declared_before_goes_back_with_the_rest(built, tmp_path):
    built.fail("broke", phase="d")
    (tmp_path / "c.md").write_text("changed by d")

    built.checkpoints.rollback("POST_c_v1", remove_unknown=True)

    assert texts(tmp_path, "b.md", "c.md", "d.md") == ["of b", "of c", None]
    assert statuses(built) == {"a": "completed", "b": "completed", "c": "completed", "d": "pending"}


def test_work_in_progress_beside_refuses(project, tmp_path):
    handle = project.start(diamond(), "try it")
    handle.finish("a is done")
    handle.begin("b")
    handle.begin("c")
    (tmp_path / "x").write_text("of c, perhaps")
    handle.checkpoints.take()
    version = handle.state.version

    with pytest.raises(Refused, match="c is in progress beside b") as refused:
        handle.checkpoints.rollback("PRE_b_v1", remove_unknown=True)

    assert "--phase-only or --paths" in refused.value.way_out
    assert (handle.state.version, texts(tmp_path, "x")) == (version, ["of c, perhaps"])
    with pytest.raises(Refused):
        handle.checkpoints.plan_rollback("PRE_b_v1", remove_unknown=True)
    handle.checkpoints.rollback("PRE_b_v1", phase_only=True)
    assert statuses(handle) == {"a": "completed", "b": "pending", "c": "in_progress", "d": "pending"}
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    assert set(statuses(handle).values()) == {"pending"}


def test_what_the_phase_builds_on_may_be_in_progress(project):
    handle = project.start(row("a", "b"), "try it")
    handle.finish("a is done")
    handle.begin("b")
    handle.fail("broke")
    handle.redo("a", cascade=True)

    handle.checkpoints.rollback("POST_b_v1", remove_unknown=True)

    assert statuses(handle) == {"a": "completed", "b": "failed"}


def test_attempts_go_on_counting_and_old_tokens_are_refused(project):
    handle = project.start(row("a", "b"), "try it")
    old = handle.redo("a").token
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    for name in ("finish", "fail"):
        with pytest.raises(Refused):
            getattr(handle, name)("late", token=old)
    begun = handle.begin("a")
    with pytest.raises(Refused, match="attempt 2"):
        handle.finish("late", token=old)
    handle.finish("in time", token=begun.token)
    assert begun.token.attempt == 3
    assert handle.redo("a").token.attempt == 4


def test_undoing_gives_work_in_progress_back_to_whoever_did_it(project):
    handle = project.start(row("a", "b"), "try it")
    handle.finish("a is done")
    token = handle.begin("b").token

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    with pytest.raises(Refused):
        handle.finish("too early", token=token)
    handle.checkpoints.undo()

    assert statuses(handle) == {"a": "completed", "b": "in_progress"}
    handle.finish("b is done", token=token)


def test_a_phase_can_be_begun_finished_and_rolled_back_again(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    for number in range(4):
        (tmp_path / "x").write_text(f"try {number}")
        handle.finish("a is done")
        handle.begin("b")
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        assert texts(tmp_path, "x") == [None]
        assert statuses(handle) == {"a": "pending", "b": "pending"}
        handle.begin("a")

    assert handle.state.phases["a"].attempt == 5


def test_skipped_phases_stay_skipped(project):
    handle = project.start(row("a", "b", "c"), "try it")
    handle.skip("b", reason="not needed")
    handle.finish("a is done")

    handle.checkpoints.rollback("POST_a_v1", remove_unknown=True)

    assert statuses(handle) == {"a": "completed", "b": "skipped", "c": "pending"}


# Sessions that ended


def test_a_completed_session_goes_on_and_is_recorded_once_when_it_ends_again(project, tmp_path):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    handle.finish("a is done")
    handle.begin("b")
    (tmp_path / "x").write_text("two")
    handle.finish("b is done")
    project.flush()
    state = tmp_path / ".workflow/state.json"
    assert (project.active(), len(project.history())) == (None, 1)

    handle.checkpoints.rollback("PRE_b_v1", remove_unknown=True)
    project.flush()

    assert handle.state.status is SessionStatus.ACTIVE
    assert (project.active(), project.history()) == (handle.id, [])
    assert (handle.state.ended_at, texts(tmp_path, "x")) == (None, ["one"])
    assert json.loads(state.read_text())["active_workflow"]["phase_status"] == {"a": "completed", "b": "pending"}
    assert check(project) == []
    handle.begin("b")
    handle.finish("b is done again")
    project.flush()
    assert handle.state.status is SessionStatus.COMPLETED
    assert [entry["session_id"] for entry in project.history()] == [handle.id]
    assert check(project) == []


def test_a_cancelled_session_goes_on(project):
    handle = project.start(row("a", "b"), "try it")
    handle.cancel("no longer wanted")

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert (handle.state.status, handle.state.cancel_reason) == (SessionStatus.ACTIVE, None)
    assert project.active() == handle.id


def test_another_active_session_stays_the_active_one(project):
    first = project.start(row("a"), "try it")
    first.finish("done")
    second = project.start(row("x", "y"), "another thing")

    first.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    project.flush()

    assert first.state.status is SessionStatus.ACTIVE
    assert project.active() == second.id
    assert check(project) == []


def test_files_of_an_ended_session_can_be_got_back_without_waking_it(project, tmp_path):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a"), "try it")
    (tmp_path / "x").write_text("two")
    handle.finish("done")

    handle.checkpoints.rollback("PRE_a_v1", paths=["x"], remove_unknown=True)
    project.flush()

    assert texts(tmp_path, "x") == ["one"]
    assert handle.state.status is SessionStatus.COMPLETED
    assert len(project.history()) == 1


def test_undoing_the_rollback_of_an_ended_session_ends_it_again(project, tmp_path):
    handle = project.start(row("a"), "try it")
    handle.finish("done")
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    handle.checkpoints.undo()
    project.flush()

    assert statuses(handle) == {"a": "completed"}
    assert check(project) == []


# Parts


def test_paths_go_back_alone(project, tmp_path):
    for name in ("x", "dir/y", "dir/deep/z", "directory"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one")
    handle = project.start(row("a", "b"), "try it")
    for name in ("x", "dir/y", "dir/deep/z", "dir/new", "directory"):
        (tmp_path / name).write_text("two")
    handle.finish("done")

    plan = handle.checkpoints.rollback("PRE_a_v1", paths=["dir"], remove_unknown=True).plan

    assert [step.path for step in plan.steps] == ["dir/deep/z", "dir/new", "dir/y"]
    assert texts(tmp_path, "dir/y", "dir/deep/z", "dir/new", "x", "directory") == ["one", "one", None, "two", "two"]
    assert statuses(handle) == {"a": "completed", "b": "pending"}
    handle.checkpoints.rollback("PRE_a_v1", paths=[str(tmp_path / "x"), "./dir/../directory"], remove_unknown=True)
    assert texts(tmp_path, "x", "directory") == ["one", "one"]
    with pytest.raises(NotFound, match="nowhere"):
        handle.checkpoints.rollback("PRE_a_v1", paths=["nowhere"], remove_unknown=True)


@pytest.mark.parametrize("work", ["modified", "removed", "added"])
def test_undoing_paths_gives_back_exactly_what_stood(project, tmp_path, work):
    if work != "added":
        (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    if work == "removed":
        (tmp_path / "x").unlink()
    else:
        (tmp_path / "x").write_text("two")
    handle.finish("done")
    before = texts(tmp_path, "x")

    handle.checkpoints.rollback("PRE_a_v1", paths=["x"] if work != "added" else ["."], remove_unknown=True)
    assert texts(tmp_path, "x") == [None if work == "added" else "one"]
    handle.checkpoints.undo()

    assert texts(tmp_path, "x") == before
    assert statuses(handle) == {"a": "completed", "b": "pending"}


def test_names_of_any_bytes_can_be_named(project, tmp_path):
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9")
    with open(path, "w") as file:
        file.write("one")
    handle = project.start(row("a", "b"), "try it")
    with open(path, "w") as file:
        file.write("two")
    handle.finish("done")

    handle.checkpoints.rollback("PRE_a_v1", paths=["caf\udce9"], remove_unknown=True)

    with open(path) as file:
        assert file.read() == "one"


def test_phases_go_back_alone(built, tmp_path):
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")}

    plan = built.checkpoints.rollback("PRE_a_v1", phase_only=True).plan

    assert plan.steps == ()
    assert set(statuses(built).values()) == {"pending"}
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.*")} == before
    built.checkpoints.undo()
    assert statuses(built) == {"a": "completed", "b": "completed", "c": "completed", "d": "in_progress"}


# Looking and undoing


def test_a_plan_is_what_happens_and_changes_and_stores_nothing(built, project, tmp_path):
    built.fail("broke", phase="d")
    (tmp_path / "new").write_text("not stored yet")
    project.flush()
    state = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    plan = built.checkpoints.plan_rollback("PRE_b_v1", remove_unknown=True)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == state
    made = built.checkpoints.rollback("PRE_b_v1", remove_unknown=True).plan
    assert made == plan
    assert plan.statuses == {"b": (Status.COMPLETED, Status.PENDING), "d": (Status.FAILED, Status.PENDING)}


def test_undo_and_undo_again_go_to_and_fro(project, tmp_path):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("two")
    handle.finish("done")
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    seen = []
    for _ in range(4):
        handle.checkpoints.undo()
        seen.append((*texts(tmp_path, "x"), statuses(handle)["a"]))

    assert seen == [("two", "completed"), ("one", "pending")] * 2


def test_nothing_to_undo_is_said(project):
    handle = project.start(row("a"), "try it")

    with pytest.raises(Refused, match="no rollback to undo"):
        handle.checkpoints.undo()


def test_work_that_was_never_in_a_checkpoint_is_kept_before_it_is_replaced(project, tmp_path):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("nobody saved this")
    (tmp_path / "new").write_text("nor this")

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    assert texts(tmp_path, "x", "new") == ["one", "nor this"]
    handle.checkpoints.undo()

    assert texts(tmp_path, "x", "new") == ["nobody saved this", "nor this"]


def test_ignored_files_are_never_touched(project, tmp_path):
    (tmp_path / ".gitignore").write_text("*.log\n")
    (tmp_path / "x.log").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x.log").write_text("two")
    (tmp_path / ".gitignore").unlink()
    (tmp_path / "y").write_text("y")
    stamp = (tmp_path / "x.log").stat().st_mtime_ns

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert texts(tmp_path, ".gitignore", "x.log") == ["*.log\n", "two"]
    assert (tmp_path / "x.log").stat().st_mtime_ns == stamp


def test_a_file_that_was_ignored_then_does_not_keep_a_directory_from_coming_back(project, tmp_path):
    (tmp_path / ".gitignore").write_text("/fresh\n!/fresh/\n")
    (tmp_path / "fresh").mkdir()
    (tmp_path / "fresh/x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    shutil.rmtree(tmp_path / "fresh")
    (tmp_path / ".gitignore").unlink()
    (tmp_path / "fresh").write_text("now a file")
    handle.finish("done")

    try:
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    except Invalid as refused:
        told = refused.message
    else:
        told = ""

    # Either is right, if it is said: the unrecorded file is in the way, or it makes room.
    assert "fresh is in the place of" in told or texts(tmp_path, "fresh/x") == ["one"]


def test_permissions_stay_but_for_those_to_execute(project, tmp_path):
    for name, mode in (("private", 0o600), ("script", 0o750), ("plain", 0o644)):
        (tmp_path / name).write_text("one")
        (tmp_path / name).chmod(mode)
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "private").write_text("two")
    (tmp_path / "script").chmod(0o640)
    (tmp_path / "plain").chmod(0o755)
    handle.finish("done")

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir() if path.is_file()}
    assert {name: modes[name] for name in ("private", "script", "plain")} == {
        "private": "0o600",
        "script": "0o750",
        "plain": "0o644",
    }


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_removed_file_comes_back_with_its_permissions(project, tmp_path, umask):
    """What only its owner could read is not read by others afterwards, and what all could read still is."""
    modes = {"key": 0o600, "group": 0o640, "tool": 0o700, "plain": 0o644, "script": 0o755, "read-only": 0o400}
    for name, mode in modes.items():
        (tmp_path / name).write_text("one")
        (tmp_path / name).chmod(mode)
    handle = project.start(row("a", "b"), "try it")
    for name in modes:
        (tmp_path / name).unlink()
    handle.finish("done")

    before = os.umask(umask)
    try:
        handle.checkpoints.rollback("PRE_a_v1")
    finally:
        os.umask(before)

    found = {name: (tmp_path / name).stat().st_mode & 0o777 for name in modes}
    private = {name: mode for name, mode in modes.items() if not mode & 0o004}
    assert {name: found[name] for name in private} == private
    assert all(found[name] & 0o444 == 0o444 for name in modes.keys() - private.keys())
    assert handle.checkpoints.plan_rollback("PRE_a_v1").steps == ()


def test_file_that_was_opened_to_others_is_closed_again(project, tmp_path):
    (tmp_path / "key").write_text("one")
    (tmp_path / "key").chmod(0o600)
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "key").chmod(0o644)
    handle.finish("done")

    assert "key: was a file with mode 600, is a file" in handle.checkpoints.compare("PRE_a_v1").text_diff("key")
    handle.checkpoints.rollback("PRE_a_v1")
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o600
    handle.checkpoints.undo()
    assert (tmp_path / "key").stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("inside", [None, "empty", "empty/deeper"])
def test_directories_without_files_give_way(project, tmp_path, inside):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").unlink()
    (tmp_path / "x" / (inside or "")).mkdir(parents=True)

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert texts(tmp_path, "x") == ["one"]


def test_a_link_in_the_place_of_a_directory_is_not_followed(project, tmp_path, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x").write_text("not ours")
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    shutil.rmtree(tmp_path / "d")
    (tmp_path / "d").symlink_to(outside)

    with pytest.raises(Invalid, match="d is in the place of the directory of d/x"):
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    assert (tmp_path / "d").is_symlink()
    handle.checkpoints.take("with the link")
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert not (tmp_path / "d").is_symlink()
    assert texts(tmp_path, "d/x") == ["one"]
    assert texts(outside, "x") == ["not ours"]
    handle.checkpoints.undo()
    assert os.readlink(tmp_path / "d") == str(outside)


# Together


def test_a_rollback_that_somebody_overtakes_changes_nothing(project, tmp_path, monkeypatch):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("two")
    handle.checkpoints.take()
    restore = project.rollbacks._restore.apply
    other = open_project(tmp_path, actor="other")

    def overtaken(*arguments):
        restore(*arguments)
        other.session().skip("b", reason="somebody was faster")

    with monkeypatch.context() as patch, other:
        patch.setattr(project.rollbacks._restore, "apply", overtaken)
        with pytest.raises(Conflict, match="moved on from version 2 to 3"):
            handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert texts(tmp_path, "x") == ["two"]
    assert statuses(handle) == {"a": "in_progress", "b": "skipped"}
    assert project.rollbacks.pending() is None
    project.touched(handle.id)


def test_the_tree_is_walked_once_and_a_commit_while_a_person_is_asked_stops_the_rollback(project, tmp_path):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("two")
    handle.checkpoints.take()
    universe = project.checkpoints.universe
    walks = universe.walks

    with open_project(tmp_path, actor="other") as other:
        project.confirm = lambda _: other.session().skip("b", reason="another decision")
        with pytest.raises(Conflict, match="changed since the plan was shown"):
            handle.checkpoints.rollback("PRE_a_v1")
    assert (universe.walks, texts(tmp_path, "x")) == (walks, ["two"])

    project.confirm = is_confirmed
    handle.checkpoints.rollback("PRE_a_v1")
    assert (universe.walks, texts(tmp_path, "x")) == (walks + 1, ["one"])


ROLLING_BACK = """
import sys
from detent.engine.project import open_project
from detent.errors import DetentError

made = 0
for number in range(6):
    with open_project(sys.argv[1], actor=sys.argv[2]) as project:
        project.reconcile()
        try:
            project.session("WFS-try-it").checkpoints.rollback(sys.argv[2], remove_unknown=True)
            made += 1
        except DetentError as error:
            print(error.message, file=sys.stderr)
print(made)
"""


def test_two_processes_that_roll_back_at_once_take_turns(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    trees = {}
    for number in range(2):
        for name in ("x", "y", f"only {number}"):
            (tmp_path / name).write_text(f"tree {number}")
        if number:
            (tmp_path / "only 0").unlink()
        event = handle.checkpoints.take()
        trees[event.name] = {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()}
    project.flush()

    running = [
        subprocess.Popen([sys.executable, "-c", ROLLING_BACK, tmp_path, name], stdout=subprocess.PIPE, text=True)
        for name in trees
    ]
    made = sum(int(one.communicate(timeout=60)[0]) for one in running)

    assert [one.returncode for one in running] == [0, 0]
    rollbacks = [event for commit in handle.log() for event in commit.events if hasattr(event, "undoes")]
    assert len(rollbacks) == made >= 6
    assert {path.name: path.read_text() for path in tmp_path.iterdir() if path.is_file()} == trees[rollbacks[-1].name]
    project.touched(handle.id)


def test_a_rollback_waits_for_the_one_that_was_interrupted(project, tmp_path, monkeypatch):
    (tmp_path / "x").write_text("one")
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("two")
    handle.finish("done")

    def dies(*_):
        raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(project.rollbacks._restore, "apply", dies)
        patch.setattr(project.rollbacks._restore, "undo", dies)
        patch.setattr(project.rollbacks._restore, "is_whole", False)
        patch.setattr(project.rollbacks, "_forget", lambda: None)
        with pytest.raises(SystemExit):
            handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    assert project.rollbacks.pending() == handle.id

    for refused in (
        lambda: handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True),
        lambda: project.checkpoints.collect(dry_run=False),
    ):
        with pytest.raises(DetentError, match="interrupted and must be finished first"):
            refused()
    assert [finding.invariant for finding in check(project) if "interrupted" in finding.message] == ["I7"]
    project.reconcile()

    assert texts(tmp_path, "x") == ["one"]
    assert any("an interrupted rollback of WFS-try-it was finished" in notice for notice in project.notices)


def test_the_doctor_finds_a_missing_list_of_replaced_files(tmp_path):
    build_project(tmp_path, files={"notes": "one"})
    with open_project(tmp_path, actor="tester") as project:
        handle = project.start(row("a", "b"), "try it")
        (tmp_path / "notes").write_text("two")
        handle.finish("done")
        handle.checkpoints.rollback("PRE_a_v1")
        archive = next(each.rollback.archive for each in handle.checkpoints.all() if each.rollback)
        kept = project.checkpoints.named()
        assert archive in kept
        project.flush()
        assert check(project) == []
        project.checkpoints.objects.collect(kept - {archive}, dry_run=False)

        [finding] = check(project)
    assert (finding.invariant, archive in finding.message) == ("I7", True)


@pytest.mark.parametrize("moment", ["rename", "link", "unlink"])
@pytest.mark.parametrize("is_removed", [False, True])
def test_a_save_at_the_last_moment_is_not_lost(project, tmp_path, monkeypatch, moment, is_removed):
    """Another program saves the file after it was looked at, right before it is replaced or removed."""
    path = tmp_path / "notes"
    if not is_removed:
        path.write_text("one")
    handle = project.start(row("a", "b"), "try it")
    path.write_text("two")
    handle.finish("done")
    real, saved = getattr(os, moment), []

    def saving(source, *arguments, **options):
        targets = [str(path) if isinstance(each, int) else os.fspath(each) for each in (source, *arguments[:1])]
        if str(path) in targets and not saved:
            saved.append(1)
            path.write_text("saved meanwhile")
        return real(source, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, moment, saving)
        with suppress(Conflict):
            handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
            assert not saved
    assert not saved or path.read_text() == "saved meanwhile"
    if saved:
        path.unlink()
