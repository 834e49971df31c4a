"""What is written for a session of many phases, and in a project of many sessions, does not grow with all of them."""

import asyncio
import json
import time

import pytest

from detent.compat.checkpoint_service import CheckpointService
from detent.compat.checkpoint_values import CheckpointType, GovernanceResults
from detent.doctor import invariants
from detent.documents.checkpoint import MAX_AGENT_STATES, MAX_STATUSES
from detent.engine import journal
from detent.engine.project import open_project
from detent.engine.projections import checkpoint_files, history, write_behind
from tests.support.values import row, workflow

KEYS = [f"p{number:03d}" for number in range(260)]


def checkpoint(directory, name, session="WFS-try-it"):
    return json.loads((directory / f".workflow/checkpoints/run-{session}/{name}.json").read_text())


def index(directory):
    return json.loads((directory / ".workflow/checkpoints/index.json").read_text())["runs"]


def state(directory):
    return json.loads((directory / ".workflow/state.json").read_text())


def work_through(handle, keys):
    for key in keys:
        if handle.state.phases[key].attempt == 0:
            handle.begin(key)
        handle.finish(f"{key} is done", artifacts=(f"{key}.md",))


@pytest.fixture
def long(project, tmp_path):
    for key in KEYS:
        (tmp_path / f"{key}.md").write_text(key)
    handle = project.start(row(*KEYS), "try it")
    work_through(handle, KEYS[:150])
    project.flush()
    return handle


def test_a_checkpoint_tells_of_the_phases_around_the_work_and_counts_the_others(long, tmp_path):
    told = checkpoint(tmp_path, "POST_p149_v1")

    where = told["orchestrator_state"]
    first = 149 - MAX_STATUSES // 2
    assert list(where["phase_status"]) == KEYS[first : first + MAX_STATUSES]
    assert where["completed_phases"] == KEYS[first:150]
    assert (where["all_phases"], where["all_completed"]) == (len(KEYS), 150)
    assert list(told["artifacts"]) == [f"{key}.md" for key in KEYS[first:150]]
    assert len(told["agent_states"]) == MAX_AGENT_STATES
    assert list(told["agent_states"])[-1] == "p149-agent@p149"


def test_a_checkpoint_tells_of_its_own_phase_wherever_others_work(project, tmp_path):
    (tmp_path / "made.md").write_text("made")
    handle = project.start(workflow(dict.fromkeys(KEYS, ())), "try it")
    handle.begin(KEYS[-1])
    handle.finish("done", phase=KEYS[-1], artifacts=("made.md",))
    project.flush()

    told = checkpoint(tmp_path, f"POST_{KEYS[-1]}_v1")

    assert told["orchestrator_state"]["completed_phases"] == [KEYS[-1]]
    assert list(told["artifacts"]) == ["made.md"]


def test_the_service_loads_what_is_told_and_takes_it_back(long, project, tmp_path):
    service = CheckpointService(project)
    loaded = asyncio.run(service.load(long.checkpoints.all()[-1].event.id)).orchestrator_state
    assert (loaded.all_phases, loaded.all_completed) == (len(KEYS), 150)

    again = service.create("p149", CheckpointType.POST, loaded, {}, {}, GovernanceResults(passed=True))

    assert asyncio.run(again).orchestrator_state.completed_phases == tuple(KEYS[149 - MAX_STATUSES // 2 : 150])


def test_the_ends_of_a_long_session_are_told_as_the_middle_is(long, project, tmp_path):
    assert list(checkpoint(tmp_path, "PRE_p000_v1")["orchestrator_state"]["phase_status"]) == KEYS[:MAX_STATUSES]

    work_through(long, KEYS[150:])
    project.flush()

    last = checkpoint(tmp_path, f"POST_{KEYS[-1]}_v1")["orchestrator_state"]
    assert list(last["phase_status"]) == KEYS[-MAX_STATUSES:]
    assert last["all_completed"] == len(KEYS)


def test_the_state_document_has_all_of_them(long, tmp_path):
    assert list(state(tmp_path)["active_workflow"]["phase_status"]) == KEYS


def test_a_short_session_is_told_whole_and_counts_nothing(project, tmp_path):
    handle = project.start(row("a", "b"), "try it")
    handle.finish("done")
    project.flush()

    where = checkpoint(tmp_path, "POST_a_v1")["orchestrator_state"]
    assert where["phase_status"] == {"a": "completed", "b": "pending"}
    assert "all_phases" not in where


def test_a_rollback_into_a_long_session_restores_what_its_document_does_not_tell(long, tmp_path):
    (tmp_path / "p000.md").write_text("changed")

    long.checkpoints.rollback("POST_p010_v1", remove_unknown=True)

    assert (tmp_path / "p000.md").read_text() == "p000"
    assert [long.state.phases[key].status for key in ("p000", "p010", "p011")] == ["completed", "completed", "pending"]


def test_many_checkpoints_are_written_before_it_is_their_time(project, tmp_path, monkeypatch):
    monkeypatch.setattr(write_behind, "DELAY_S", 3600.0)
    monkeypatch.setattr(journal, "_CROWDED", 4)
    handle = project.start(row(*KEYS[:20]), "try it")

    work_through(handle, KEYS[:6])

    until = time.monotonic() + 20
    while not (tmp_path / ".workflow/checkpoints/run-WFS-try-it/POST_p002_v1.json").exists():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_of_a_long_run_the_index_keeps_less_when_another_one_writes(project, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint_files, "MAX_OTHER_BYTES", 1_000)
    monkeypatch.setattr(checkpoint_files, "MAX_OTHER_INDEXED", 3)
    first = project.start(row(*KEYS[:20]), "first")
    work_through(first, KEYS[:5])
    project.flush()
    whole = index(tmp_path)["WFS-first"]

    work_through(project.start(row("a", "b"), "second"), ["a"])
    project.flush()

    left = index(tmp_path)["WFS-first"]
    assert (left["count"], left["version"]) == (whole["count"], whole["version"]) == (10, 10)
    assert left["checkpoints"] == whole["checkpoints"][-3:]
    assert invariants.check(project) == []

    project.sessions.switch("WFS-first")
    work_through(first, KEYS[5:7])
    project.flush()
    assert index(tmp_path)["WFS-first"]["count"] == 14
    assert len(first.checkpoints.all()) == 14


def test_the_state_document_repeats_the_last_sessions_as_far_as_they_are_short(project, tmp_path, monkeypatch):
    for name in ("first", "second", "third"):
        project.start(row("a"), name).finish("done")
        project.flush()
    of_all = (tmp_path / ".workflow/history.jsonl").read_bytes().splitlines()
    assert [one["description"] for one in state(tmp_path)["workflow_history"]] == ["first", "second", "third"]

    monkeypatch.setattr(history, "MAX_REPEATED_BYTES", len(of_all[-1]) + len(of_all[-2]))
    project.start(row("a", "b"), "fourth")
    project.flush()
    assert [one["description"] for one in state(tmp_path)["workflow_history"]] == ["second", "third"]

    monkeypatch.setattr(history, "MAX_REPEATED_BYTES", 1)
    project.session().finish("done")
    project.flush()
    assert [one["description"] for one in state(tmp_path)["workflow_history"]] == ["third"]
    assert len(project.history()) == 3


def test_a_session_of_many_phases_is_the_same_in_the_next_process(long, project, tmp_path):
    with open_project(tmp_path, actor="tester") as other:
        again = other.session().state

    assert again == long.state
    assert again.ready == (KEYS[150],)


def test_what_another_process_has_written_waits_no_longer(project, tmp_path, monkeypatch):
    monkeypatch.setattr(write_behind, "DELAY_S", 3600.0)
    handle = project.start(row(*KEYS[:20]), "try it")
    handle.checkpoints.take("now this process remembers what it takes")
    project.flush()
    with open_project(tmp_path, actor="other") as other:
        work_through(other.session(), KEYS[:5])
    monkeypatch.setattr(journal, "_CROWDED", 4)
    assert handle.state.version > 5
    assert project.journal(handle.id).is_crowded

    project.touched(handle.id)
    project.flush()

    assert not project.journal(handle.id).is_crowded
