"""A whole session on the store in memory, in a project whose state directory cannot be used at all."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detent.config.place import at_root, read_settings
from detent.core.run.agent_event import AgentEvent
from detent.core.run.run_event import End, RunEvent
from detent.core.session.status import Status
from detent.core.task.row import TaskStatus
from detent.doctor.invariants import check
from detent.documents import STATE_DOCUMENT
from detent.engine.project import Project
from detent.engine.session import SessionHandle
from detent.errors import GateClosed
from detent.run.context import RunOptions
from detent.run.feed import Feed, follow
from detent.run.report import write_report
from detent.run.scheduler import Runner
from detent.store.memory import MemoryStore
from detent.store.port import PROJECT
from tests.support.scripted_run import Cast, done
from tests.support.values import actor

SETTINGS = """
[workflows.w]
phases = [
    { key = "a", gates = [
        { kind = "tests", command = "sh check.sh", inputs = ["check.sh", "src"], protected = ["check.sh"] }
    ] },
    "b",
    "c",
]
"""
#: Files of the checkout, which no store keeps: installed clients, failures of hooks.
OF_THE_CHECKOUT = ("install/manifest.json", "hook-failures.log")
_watched: list[tuple[str, set[str]]] = []


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    """Notes every path below a watched directory that is opened, listed, made, moved or removed."""
    if _watched and event.startswith(("open", "os.", "shutil.")):
        for directory, used in _watched:
            used.update(path for path in map(str, arguments) if path.startswith(directory))


sys.addaudithook(_watch)


@pytest.fixture(params=["a plain file", "unreadable"])
def root(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A project whose `.workflow` is a plain file or may not be read; nothing may try to look into it."""
    monkeypatch.delenv("DETENT_PROJECT", raising=False)
    if request.param == "unreadable":
        (tmp_path / ".workflow").mkdir(mode=0)
    else:
        (tmp_path / ".workflow").write_text("no directory")
    (tmp_path / "detent.toml").write_text(SETTINGS)
    (tmp_path / "check.sh").write_text(
        "test -e src/ok && echo 1 passed in 0.1s || { echo 1 failed in 0.1s; exit 1; }\n"
    )
    (tmp_path / "src").mkdir()
    state = os.path.join(os.path.realpath(tmp_path), ".workflow")
    used: set[str] = set()
    _watched.append((f"{state}/", used))
    yield tmp_path
    _watched.clear()
    assert used <= {f"{state}/{name}" for name in OF_THE_CHECKOUT}
    if request.param == "unreadable":
        (tmp_path / ".workflow").chmod(0o700)
        assert os.listdir(tmp_path / ".workflow") == []
    else:
        assert (tmp_path / ".workflow").read_text() == "no directory"


def opened(root: Path, store: MemoryStore) -> Project:
    place = at_root(os.path.realpath(root))
    return Project(store, place, read_settings(place.root), actor=actor())


@pytest.fixture
def project(root: Path) -> Iterator[Project]:
    with opened(root, MemoryStore()) as project:
        yield project
        project.flush()
        assert check(project) == []


def edit(project: Project, name: str, **changes: Any) -> None:
    """Change a document as a person does, behind Detent's back."""
    project.flush()
    document = json.loads(project.store.get(name) or b"{}")
    with project.store.lock(PROJECT):
        project.store.put(name, json.dumps(document | changes, indent=3).encode())


def statuses(handle: SessionHandle) -> list[Status]:
    return [handle.state.phases[key].status for key in handle.state.workflow.order]


def test_gates_are_judged_on_evidence_that_expires(project: Project, root: Path) -> None:
    handle = project.start("w", "try it")
    handle.gates.run("tests")
    with pytest.raises(GateClosed):
        handle.finish("done")

    (root / "src/ok").write_text("1")
    handle.gates.run("tests")
    (root / "src/ok").write_text("2")
    [judged] = handle.gates.judgements()["a"]
    assert (judged.verdict, "src/ok" in judged.reason) == ("STALE", True)

    handle.finish("done", artifacts=["src/ok"])
    assert statuses(handle) == [Status.COMPLETED, Status.PENDING, Status.PENDING]


def test_a_rollback_brings_files_and_phases_back_and_can_be_undone(project: Project, root: Path) -> None:
    handle = project.start("w", "try it")
    (root / "src/ok").write_text("1")
    handle.gates.run("tests")
    handle.finish("done", artifacts=["src/ok"])
    handle.begin("b")
    mine = handle.checkpoints.take("before b")
    (root / "src/ok").write_text("spoiled")
    (root / "src/large").write_bytes(b"x" * (1 << 21))
    handle.finish("b is done")

    handle.checkpoints.rollback(mine.name, remove_unknown=True)

    assert (root / "src/ok").read_text() == "1"
    assert not (root / "src/large").exists()
    assert statuses(handle)[1] is not Status.COMPLETED
    handle.checkpoints.undo()
    assert (root / "src/ok").read_text() == "spoiled"
    assert (root / "src/large").stat().st_size == 1 << 21
    assert statuses(handle)[1] is Status.COMPLETED
    assert project.checkpoints.collect(dry_run=False) is not None
    assert list(project.checkpoints.objects.verify()) == []


def test_edits_of_tasks_and_of_the_state_document_are_adopted(project: Project, root: Path) -> None:
    handle = project.start("w", "try it")
    (root / "src/ok").write_text("1")
    handle.gates.run("tests")
    handle.finish("done")
    handle.begin("b")
    handle.tasks.add("One")
    handle.tasks.add("Two", depends_on=["IMPL-1"])
    project.flush()

    edit(project, f"{handle.id}/.task/IMPL-1.json", title="Another")
    assert [adoption.adopted for adoption in project.reconcile()] == [True]
    assert handle.tasks.row("IMPL-1").title == "Another"

    edit(project, f"{handle.id}/.task/IMPL-2.json", status="no such status")
    [refused] = project.reconcile()
    assert (refused.adopted, project.store.get(refused.kept or "") is not None) == (False, True)

    document = json.loads(project.store.get(STATE_DOCUMENT) or b"")
    document["phases"]["b"] |= {"status": "completed", "summary": "by hand"}
    edit(project, STATE_DOCUMENT, phases=document["phases"])
    assert [adoption.adopted for adoption in project.reconcile()] == [True]
    assert handle.state.phases["b"].summary == "by hand"
    assert project.reconcile() == []


def test_steps_of_a_task_hand_their_outputs_on_as_files(project: Project) -> None:
    from detent.engine.flow.flow import Flow

    handle = project.start("plan-implement-review", "try it")
    steps = [
        {"step": "make", "action": "make", "command": "bash(echo made)", "output_to": "made"},
        {"step": "use", "action": "use", "command": "bash(cat [made.file])", "output_to": "used"},
    ]
    handle.tasks.add("Stepped")
    document = handle.tasks.document("IMPL-1")
    document["flow_control"] = {"pre_analysis": steps, "implementation_approach": "work"}
    handle.tasks.write([document], new=False)

    result = Flow(project, handle).run("IMPL-1")

    assert result.context is not None
    assert result.context["flow"]["outputs"] == {"made": "made", "used": "made"}
    assert result.context_file is not None
    assert Path(result.context_file).is_file()


def test_a_run_with_agents_brings_a_session_with_tasks_to_its_end(project: Project, root: Path) -> None:
    handle = project.start("plan-implement-review", "try it")
    handle.tasks.add("One")
    handle.tasks.add("Two")
    handle.tasks.add("Three", depends_on=["IMPL-1", "IMPL-2"])

    def act(turn: Any, _stopping: Any) -> Iterator[AgentEvent]:
        (root / f"{turn.task or turn.phase}.txt").write_text("made")
        yield done(f"did {turn.task or turn.phase}")

    told: list[RunEvent] = []
    feed = Feed(project.store.feed_writer(handle.id))

    def tell(event: RunEvent) -> None:
        told.append(event)
        feed.tell(event)

    cast = Cast(act)
    end = Runner(project, handle.id, cast, options=RunOptions(parallel=2), tell=tell).run()
    feed.close()

    assert end is End.COMPLETED
    assert sorted(cast.worked_on) == ["IMPL-1", "IMPL-2", "IMPL-3", "PLAN", "REVIEW"]
    assert {row.status for row in handle.tasks.rows()} == {TaskStatus.COMPLETED}
    assert handle.tasks.summary("IMPL-3") == "did IMPL-3\n"
    assert list(follow(project.store.feed_reader(handle.id), stopping=lambda: True)) == told
    assert write_report(project, handle).endswith(f"{handle.id}/REPORT.md")
    project.flush()
    assert [entry["session_id"] for entry in project.history()] == [handle.id]


def test_a_second_project_on_the_same_store_goes_on_where_the_first_was(root: Path) -> None:
    store = MemoryStore()
    with opened(root, store) as project:
        handle = project.start("w", "try it")
        (root / "src/ok").write_text("1")
        handle.gates.run("tests")
        before = handle.state

    with opened(root, store) as again:
        handle = again.session()
        assert handle.state == before
        handle.finish("done")
        handle.begin("b")
        (root / "src/ok").unlink()
        handle.checkpoints.rollback("PRE_b_v1", remove_unknown=True)
        assert (root / "src/ok").read_text() == "1"
        again.flush()
        assert check(again) == []
