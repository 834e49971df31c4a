"""When checkpoints are taken, what they are called, what they hold, and what becomes of their documents."""

import json
import os
import shutil
import subprocess
import sys
import threading

import pytest

from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.workflow.graph import Phase, Workflow
from detent.doctor.invariants import check, fix
from detent.engine.project import open_project
from detent.errors import Conflict, Invalid, NotFound, Refused
from tests.support.faults import Counter, watching
from tests.support.people import ME
from tests.support.project import build_project
from tests.support.values import TickingClock, diamond, row

MIB = 1 << 20


def shown(handle):
    return [(one.event.name, one.event.taken.value, one.event.attempt) for one in handle.checkpoints.all()]


def files_of(project, handle, name):
    return project.checkpoints.files(project.checkpoints.find(handle.id, name).event.tree.manifest)


def content_of(project, handle, name, path):
    return project.checkpoints.objects.read(files_of(project, handle, name)[path].digest)


def configured(directory, text, *, clock=None, **settings):
    build_project(directory, f'gates = "off"\n{text}')
    return open_project(directory, actor="tester", clock=clock or TickingClock(), **settings)


# Triggers


def test_every_transition_takes_its_checkpoint(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    handle.fail("broke")
    handle.redo("a")
    handle.finish("a is done")
    handle.begin()
    handle.checkpoints.take("before lunch")
    handle.checkpoints.rollback("POST_a_v2", remove_unknown=True)

    assert shown(handle) == [
        ("PRE_a_v1", "started", 1),
        ("POST_a_v1", "failed", 1),
        ("PRE_a_v2", "started", 2),
        ("POST_a_v2", "success", 2),
        ("PRE_b_v1", "started", 1),
        ("PRE_b_v1_at6", "note", 1),
        ("PRE_b_v1_at7_safety", "safety", 1),
        ("PRE_a_v3", "rollback", 3),
    ]


def test_a_phase_that_approvers_agreed_to_is_marked_so(tmp_path):
    build_project(tmp_path, 'gates = "strict"\n')
    gate = ConsensusGate(approvers=(ME,), quorum=1)
    graph = Workflow(name="trial", phases=(Phase(key="a", title="A", gates=(gate,)), Phase(key="b", title="B")))
    with open_project(tmp_path, actor="ann", clock=TickingClock()) as project:
        handle = project.start(graph, "try it")
        handle.approve("good")
        handle.finish("a is done")
        project.flush()

        assert shown(handle)[-1] == ("POST_a_v1", "approved", 1)
        document = json.loads((tmp_path / f".workflow/checkpoints/run-{handle.id}/POST_a_v1.json").read_text())
        assert ME in json.dumps(document["metadata"]["approvals"])
        assert check(project) == []


def test_each_checkpoint_has_the_one_before_as_its_parent(project):
    handle = project.start(row("a", "b"), "try it")
    handle.finish("a is done")
    handle.begin()
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    handle.begin()

    positions = handle.checkpoints.all()
    by_name = {one.event.id: one.event.name for one in positions}
    assert [(one.event.name, by_name.get(one.event.parent)) for one in positions] == [
        ("PRE_a_v1", None),
        ("POST_a_v1", "PRE_a_v1"),
        ("PRE_b_v1", "POST_a_v1"),
        ("PRE_b_v1_at4_safety", "PRE_b_v1"),
        ("PRE_a_v2", "PRE_a_v1"),
        ("PRE_a_v2_at5", "PRE_a_v2"),
    ]
    assert [one.version for one in positions] == [1, 2, 3, 4, 4, 5]


def test_no_name_is_used_twice_however_often_one_goes_back(project):
    handle = project.start(row("a", "b"), "try it")
    for _ in range(3):
        handle.finish("done")
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        handle.checkpoints.undo()
        handle.checkpoints.take()
        handle.checkpoints.take()
        handle.begin("a")
        handle.redo("a")

    names = [name for name, *_ in shown(handle)]
    assert len(set(names)) == len(names)
    project.flush()
    directory = project.place.state + f"/checkpoints/run-{handle.id}"
    assert sorted(os.listdir(directory)) == sorted(f"{name}.json" for name in names)


def test_a_checkpoint_is_found_by_id_name_and_the_start_of_its_id(project):
    handle = project.start(row("a"), "try it")
    event = handle.checkpoints.all()[0].event
    find = project.checkpoints.find

    for name in (event.id, event.name, event.id[:8], event.name.lower(), f" {event.name} "):
        assert find(handle.id, name).event == event
    with pytest.raises(NotFound, match="did you mean PRE_a_v1"):
        find(handle.id, "PRE_a_v2")
    with pytest.raises(NotFound):
        find(handle.id, event.id[:5])


# What is taken


@pytest.fixture
def tree(project, tmp_path):
    (tmp_path / "src").mkdir()
    (tmp_path / "src/main.py").write_text("print()\n")
    (tmp_path / ".gitignore").write_text("*.log\n/out/\n")
    (tmp_path / "debug.log").write_text("noise")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/built").write_text("built")
    return tmp_path


def test_the_whole_tree_is_taken_but_for_what_is_ignored_excluded_or_detents_own(project, tree):
    for name in ("node_modules/x.js", ".git/config", "src/__pycache__/y"):
        (tree / name).parent.mkdir(parents=True)
        (tree / name).write_text("x")

    handle = project.start(row("a"), "try it")

    assert set(files_of(project, handle, "PRE_a_v1")) == {".gitignore", "src/main.py"}


def test_declared_artifacts_are_taken_whatever_the_rules_say_and_kept_as_files(project, tree):
    handle = project.start(row("a"), "try it")
    handle.finish("done", artifacts=["debug.log", "out"])

    files = files_of(project, handle, "POST_a_v1")
    assert {"debug.log", "out/built"} <= set(files)
    taken = handle.checkpoints.all()[-1].event
    stored = os.path.join(project.checkpoints.objects.root, taken.id, files["debug.log"].digest, "debug.log")
    with open(stored) as file:
        assert file.read() == "noise"


def test_what_is_detents_is_never_taken_even_if_declared(project, tree):
    handle = project.start(row("a", "b"), "try it")
    project.flush()
    handle.finish("done", artifacts=[".workflow/state.json", f".workflow/{handle.id}/journal.jsonl", "src/main.py"])

    assert not [path for path in files_of(project, handle, "POST_a_v1") if path.startswith(".workflow")]


def test_capture_of_declared_files_alone(tmp_path):
    (tmp_path / "made.md").write_text("one")
    (tmp_path / "other").write_text("one")
    with configured(tmp_path, '[checkpoint]\ncapture = "declared"\n') as project:
        handle = project.start(row("a", "b"), "try it")
        assert files_of(project, handle, "PRE_a_v1") == {}
        handle.finish("done", artifacts=["made.md"])
        assert set(files_of(project, handle, "POST_a_v1")) == {"made.md"}

        for name in ("made.md", "other"):
            (tmp_path / name).write_text("two")
        handle.begin()
        handle.checkpoints.rollback("POST_a_v1", remove_unknown=True)

        assert [(tmp_path / name).read_text() for name in ("made.md", "other")] == ["one", "two"]
        handle.checkpoints.undo()
        assert (tmp_path / "made.md").read_text() == "two"
        project.flush()
        assert check(project) == []


def test_capture_switched_off_takes_none_and_says_so(tmp_path):
    with configured(tmp_path, '[checkpoint]\ncapture = "off"\n') as project:
        handle = project.start(row("a", "b"), "try it")
        handle.finish("done")

        assert handle.checkpoints.all() == []
        with pytest.raises(Refused, match="switched off"):
            handle.checkpoints.take()
        with pytest.raises(NotFound):
            handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        assert not (tmp_path / ".workflow/checkpoints").exists()
        project.flush()
        assert check(project) == []


def test_checkpoints_from_before_capture_was_switched_off_can_be_returned_to(tmp_path):
    (tmp_path / "x").write_text("one")
    with configured(tmp_path, "") as project:
        project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("two")
    with configured(tmp_path, '[checkpoint]\ncapture = "off"\n', clock=TickingClock()) as project:
        handle = project.session()
        handle.finish("done")
        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
        assert (tmp_path / "x").read_text() == "one"
        handle.checkpoints.undo()
        assert (tmp_path / "x").read_text() == "two"


def test_excluded_patterns_are_the_projects_own(tmp_path):
    for name in ("keep.bin", "data/big.bin", "node_modules/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    with configured(tmp_path, '[checkpoint]\nexclude = ["data/"]\n') as project:
        handle = project.start(row("a"), "try it")

        assert set(files_of(project, handle, "PRE_a_v1")) == {"keep.bin", "node_modules/x"}


def test_a_file_above_the_limit_is_left_out_reported_and_never_touched(tmp_path):
    (tmp_path / "big").write_bytes(b"0" * (MIB + 1))
    (tmp_path / "fits").write_bytes(b"0" * MIB)
    with configured(tmp_path, "[checkpoint]\nmax_file_mb = 1\n") as project:
        handle = project.start(row("a", "b"), "try it")
        first = handle.checkpoints.all()[0].event
        assert (first.tree.files, first.tree.left_out) == (1, 1)
        assert project.checkpoints.contents(first.tree.manifest).left_out == {"big": f"larger than {MIB} bytes"}

        (tmp_path / "big").write_bytes(b"small enough now")
        handle.finish("done")
        assert "big" in files_of(project, handle, "POST_a_v1")
        plan = handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True).plan

        assert any("not in the checkpoint" in warning for warning in plan.warnings)
        assert (tmp_path / "big").read_bytes() == b"small enough now"
        project.flush()
        index = json.loads((tmp_path / ".workflow/checkpoints/index.json").read_text())
        assert index["runs"][handle.id]["checkpoints"][0]["left_out"] == 1
        assert check(project) == []


def test_large_files_are_stored_as_files_and_come_back(project, tmp_path):
    contents = [bytes([number]) * (MIB + 1 + number) for number in range(5)]
    for number, content in enumerate(contents):
        (tmp_path / f"large {number}").write_bytes(content)
    (tmp_path / "large 0").chmod(0o755)
    handle = project.start(row("a", "b"), "try it")
    for number in range(5):
        (tmp_path / f"large {number}").unlink()
    handle.finish("done")

    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

    assert [(tmp_path / f"large {number}").read_bytes() for number in range(5)] == contents
    assert [os.access(tmp_path / f"large {number}", os.X_OK) for number in range(5)] == [True] + [False] * 4


def test_what_is_neither_a_file_nor_a_link_is_left_out(project, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(os.fsencode(tmp_path) + b"/\xff")

    handle = project.start(row("a"), "try it")

    event = handle.checkpoints.all()[0].event
    assert set(project.checkpoints.contents(event.tree.manifest).left_out) == {"pipe", "\udcff"}


# What it costs


def test_a_change_within_the_same_tick_of_the_clock_is_noticed(project, tmp_path):
    path = tmp_path / "x"
    path.write_text("one")
    handle = project.start(row("a", "b"), "try it")
    for text in ("two", "six", "ten"):
        path.write_text(text)
        stamp = path.stat()
        handle.checkpoints.take()
        with path.open("r+") as file:
            file.write("end")
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        name = handle.checkpoints.take().name

        assert content_of(project, handle, name, "x") == b"end"


def test_an_unchanged_tree_stores_nothing_and_syncs_nothing(project, tmp_path):
    (tmp_path / "x").write_text("x")
    handle = project.start(row("a", "b"), "try it")
    handle.checkpoints.take()
    project.flush()
    size = project.checkpoints.stored_bytes()
    counter = Counter()

    with watching(counter):
        event = handle.checkpoints.take()

    assert counter.calls.count("fdatasync") == 1, "the commit alone"
    assert counter.calls.count("fsync") == 0
    assert project.checkpoints.stored_bytes() == size
    assert event.tree == handle.checkpoints.all()[0].event.tree


def test_a_changed_file_costs_one_more_sync(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("x")
    handle.checkpoints.take()
    (tmp_path / "x").write_text("y")
    counter = Counter()

    with watching(counter):
        handle.checkpoints.take()

    assert counter.calls.count("fdatasync") == 2
    journal = len(counter.calls) - counter.calls[::-1].index("fdatasync")
    assert "fdatasync" in counter.calls[: journal - 1], "the objects are durable before the commit names them"


def test_a_refused_command_stores_nothing(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("never in a checkpoint")
    size = project.checkpoints.stored_bytes()

    with pytest.raises(Refused):
        handle.begin("b")

    assert project.checkpoints.stored_bytes() == size


# Garbage


def test_collecting_keeps_all_that_a_checkpoint_names(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    contents = [b"%d " % number * 200 for number in range(20)]
    for content in contents:
        (tmp_path / "x").write_bytes(content)
        handle.checkpoints.take()
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    archive = next(event.archive for commit in handle.log() for event in commit.events if hasattr(event, "archive"))
    with project.checkpoints.objects.batch("nobody") as batch:
        unwanted = batch.add(b"nobody wants this")
    named = project.checkpoints.named()

    planned = project.checkpoints.collect(dry_run=True)
    assert unwanted in project.checkpoints.objects
    collected = project.checkpoints.collect(dry_run=False)

    assert planned == collected
    assert collected.objects == 1
    assert unwanted not in project.checkpoints.objects
    assert named == project.checkpoints.named()
    assert archive in named
    for digest in named:
        project.checkpoints.objects.check(digest)
    project.flush()
    assert check(project) == []
    handle.checkpoints.undo()
    assert (tmp_path / "x").read_bytes() == contents[-1]


def test_collecting_between_a_capture_and_its_commit_makes_the_command_repeat(project, tmp_path, monkeypatch):
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("captured, collected, not committed")
    tree = project.checkpoints.tree

    def collected_meanwhile(*arguments, **options):
        captured = tree(*arguments, **options)
        with open_project(tmp_path, actor="other") as other:
            other.checkpoints.collect(dry_run=False)
        return captured

    with monkeypatch.context() as patch:
        patch.setattr(project.checkpoints, "tree", collected_meanwhile)
        with pytest.raises(Conflict, match="unused objects were removed meanwhile"):
            handle.finish("done")
    assert handle.state.version == 1

    handle.finish("done")
    assert content_of(project, handle, "POST_a_v1", "x") == b"captured, collected, not committed"


def test_a_checkpoint_that_begins_while_garbage_is_collected_loses_nothing(project, tmp_path, monkeypatch):
    handle = project.start(row("a", "b"), "try it")
    (tmp_path / "x").write_text("stored while others collect")
    refused = []

    def take():
        try:
            handle.checkpoints.take()
        except Conflict as conflict:
            refused.append(conflict)

    with open_project(tmp_path, actor="collector") as collector:
        meanwhile = threading.Thread(target=take)
        named = collector.checkpoints.named

        def named_before_others_commit():
            found = named()
            meanwhile.start()
            meanwhile.join(0.3)
            return found

        monkeypatch.setattr(collector.checkpoints, "named", named_before_others_commit)
        collector.checkpoints.collect(dry_run=False)
    meanwhile.join(60)

    assert len(handle.checkpoints.all()) == 2 - len(refused)
    with open_project(tmp_path, actor="somebody who sees only what is there") as fresh:
        for digest in fresh.checkpoints.named():
            fresh.checkpoints.objects.check(digest)
    assert content_of(project, handle, handle.checkpoints.take().name, "x") == b"stored while others collect"


COLLECTING = """
import sys
from detent.engine.project import open_project
for _ in range(30):
    with open_project(sys.argv[1], actor="collector") as project:
        project.checkpoints.collect(dry_run=False)
"""


def test_collecting_in_another_process_hurts_no_command(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    other = subprocess.Popen([sys.executable, "-c", COLLECTING, tmp_path])
    made = {}
    for number in range(60):
        (tmp_path / "x").write_text(f"content {number}")
        try:
            made[handle.checkpoints.take().name] = f"content {number}".encode()
        except Conflict:
            continue
        if other.poll() is not None and number > 20:
            break
    assert other.wait(30) == 0

    assert len(made) > 5
    for name, content in made.items():
        assert content_of(project, handle, name, "x") == content


# Documents


def test_documents_that_were_deleted_are_rebuilt_as_they_were(project, tmp_path):
    (tmp_path / "x").write_text("x")
    handle = project.start(row("a", "b"), "try it")
    handle.finish("done", artifacts=["x"])
    handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)
    second = project.start(row("y"), "another thing")
    second.finish("done")
    project.flush()
    directory = tmp_path / ".workflow/checkpoints"
    written = {path: path.read_bytes() for path in directory.rglob("*.json")}

    (directory / "index.json").unlink()
    shutil.rmtree(directory / f"run-{handle.id}")
    (directory / f"run-{second.id}/PRE_y_v1.json").write_text("{}")
    assert {finding.invariant for finding in check(project)} == {"I2"}

    assert fix(project) == []
    rebuilt = {path: path.read_bytes() for path in directory.rglob("*.json")}
    assert {path: json.loads(data) for path, data in rebuilt.items()} == {
        path: json.loads(data) for path, data in written.items()
    }


def test_documents_have_what_was_known_at_the_checkpoint(project, tmp_path):
    (tmp_path / "made.md").write_text("made")
    handle = project.start(row("a", "b"), "try it")
    handle.finish("done", artifacts=["made.md"])
    project.flush()

    directory = tmp_path / f".workflow/checkpoints/run-{handle.id}"
    pre, post = (json.loads((directory / f"{name}.json").read_text()) for name in ("PRE_a_v1", "POST_a_v1"))
    assert pre["orchestrator_state"]["phase_status"] == {"a": "in_progress", "b": "pending"}
    assert post["orchestrator_state"]["phase_status"] == {"a": "completed", "b": "pending"}
    assert post["parent_checkpoint_id"] == pre["id"]
    assert post["artifacts"]["made.md"]["hash"] == files_of(project, handle, "POST_a_v1")["made.md"].digest
    assert (pre["version"], pre["type"], post["type"], post["metadata"]["outcome"]) == (1, "PRE", "POST", "success")


# Packages


@pytest.mark.parametrize("path", ["web", "web/", "./web"])
def test_a_package_has_its_own_tree_rules_and_checkpoints(tmp_path, path, monkeypatch):
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*.log\n/web/built\n")
    for name in ("web/.claude/settings.json", "api/y"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text("as it was")
    for name in ("web/x.log", "web/built"):
        (tmp_path / name).write_text("ignored")
    text = f'[projects.web]\npath = "{path}"\n[projects.api]\npath = "api"\n'
    with configured(tmp_path, text, project="web") as project:
        handle = project.start(row("a", "b"), "try it")
        assert set(files_of(project, handle, "PRE_a_v1")) == {".claude/settings.json"}
        shutil.rmtree(tmp_path / "web/.claude")
        (tmp_path / "web/new").write_text("new")
        (tmp_path / "api/y").write_text("not of this package")
        handle.finish("done")

        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

        assert not (tmp_path / "web/new").exists()
        assert (tmp_path / "web/.claude/settings.json").read_text() == "as it was"
        assert (tmp_path / "web/x.log").read_text() == "ignored"
        assert (tmp_path / "api/y").read_text() == "not of this package"
        project.flush()
        assert check(project) == []


def test_a_package_keeps_its_directory_when_its_last_file_goes(tmp_path, monkeypatch):
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    (tmp_path / "web").mkdir()
    with configured(tmp_path, '[projects.web]\npath = "web/"\n', project="web") as project:
        handle = project.start(row("a", "b"), "try it")
        (tmp_path / "web/x").write_text("x")
        handle.finish("done")

        handle.checkpoints.rollback("PRE_a_v1", remove_unknown=True)

        assert list((tmp_path / "web").iterdir()) == []


def test_comparing_tells_what_changed_since(project, tmp_path):
    (tmp_path / "changed").write_text("one")
    (tmp_path / "gone").write_text("one")
    handle = project.start(diamond(), "try it")
    (tmp_path / "changed").write_text("two")
    (tmp_path / "gone").unlink()
    (tmp_path / "new").write_text("one")

    with pytest.raises((NotFound, Invalid)):
        handle.checkpoints.compare("PRE_b_v1")
    assert handle.checkpoints.compare("PRE_a_v1") is not None
