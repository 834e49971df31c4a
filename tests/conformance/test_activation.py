"""IR-002 and the half of IR-001 that begin writes (STEP 3c-prime)."""

import fcntl
import os
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from detent.documents.state import read, running
from detent.engine.project import Project, open_project
from tests.support.disk import Disk
from tests.support.values import Clock

SECOND = "02-impact-analysis"

# The agents of seed 000 section 3.4, under the present keys, and those of the two phases that it does not list.
AGENTS = {
    "00-quick-scan": "quick-scan-agent",
    "01-requirements": "requirements-analyst",
    "02-impact-analysis": "impact-analysis-orchestrator",
    "02-tracing": "tracing-orchestrator",
    "03-architecture": "solution-architect",
    "04-design": "system-designer",
    "05-test-strategy": "test-design-engineer",
    "06-implementation": "software-developer",
    "07-testing": "integration-tester",
    "08-code-review": "qa-engineer",
    "09-validation": "security-compliance-auditor",
    "10-cicd": "cicd-engineer",
    "11-local-testing": "environment-builder",
    "12-remote-build": "environment-builder",
    "12-test-deploy": "deployment-engineer-staging",
    "13-production": "release-manager",
    "14-operations": "site-reliability-engineer",
    "15-upgrade-plan": "upgrade-engineer",
    "15-upgrade-execute": "upgrade-engineer",
    "16-quality-loop": "quality-loop-engineer",
}


@pytest.mark.req("AC-001b")
def test_begin_says_the_same_in_all_four_places(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")

    handle.begin()
    project.flush()

    state = disk.state()
    assert state["phases"][SECOND]["status"] == "in_progress"
    assert state["active_workflow"]["phase_status"][SECOND] == "in_progress"
    assert state["active_workflow"]["current_phase"] == SECOND
    assert state["current_phase"] == SECOND
    assert disk.session(handle.id)["current_phase"] == SECOND


@pytest.mark.req("AC-001d")
@pytest.mark.parametrize("workflow", ["full-lifecycle", "fix", "upgrade"])
def test_the_active_agent_is_the_one_of_the_current_phase(project: Project, disk: Disk, workflow: str) -> None:
    handle = project.start(workflow, "add search")
    phases = disk.workflow()["phases"]

    for number, phase in enumerate(phases):
        delegated_to = handle.begin().handover.agent if number else handle.handover(phase).agent
        project.flush()

        assert disk.state()["current_phase"] == phase
        assert disk.state()["active_agent"] == delegated_to == AGENTS[phase]
        handle.finish("done")


@pytest.mark.req("AC-002a")
def test_begin_has_synced_its_line_before_it_returns(
    project: Project, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    journal = disk.journal_path(handle.id)
    before = journal.stat().st_size
    synced = record_syncs(monkeypatch)

    handle.begin()

    after = journal.stat()
    assert after.st_size > before
    assert [size for inode, size in synced if inode == after.st_ino] == [after.st_size]


@pytest.mark.req("AC-002a")
def test_all_that_begin_says_survives_the_death_of_its_process(
    root: Path, disk: Disk, elsewhere: Callable[[str], "CompletedProcess[str]"]
) -> None:
    died = elsewhere(
        """
import os, signal
handle = open_project(root).start("feature", "add search")
handle.finish("requirements written")
begun = handle.begin()
print(begun.token, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    )

    with open_project(root) as project:
        project.reconcile()
    state = disk.state()
    assert died.returncode == -9
    assert died.stdout.strip() == f"{SECOND}:1:3"
    assert state["phases"][SECOND]["status"] == "in_progress"
    assert state["phases"][SECOND]["started"] is not None
    assert state["active_workflow"]["current_phase"] == SECOND
    assert state["active_workflow"]["phase_status"][SECOND] == "in_progress"
    assert state["current_phase"] == SECOND
    assert state["active_agent"] == AGENTS[SECOND]
    assert state["state_version"] == 3


@pytest.mark.req("AC-002b", "AC-002c")
def test_a_guard_in_another_process_sees_the_phase_at_once(project: Project, root: Path) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")

    begun = handle.begin()

    with open_project(root) as guard:
        document = running(guard.session().state)
    assert document["phases"][begun.token.phase]["status"] == "in_progress"
    assert document["active_workflow"]["current_phase"] == begun.handover.phase == SECOND


@pytest.mark.req("AC-002b", "AC-002c")
def test_the_document_shows_the_phase_when_the_command_ends(
    project: Project, disk: Disk, elsewhere: Callable[[str], "CompletedProcess[str]"]
) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()

    ended = elsewhere("print(open_project(root).session().begin().token)")

    state = disk.state()
    session = read(state)
    assert ended.stdout.strip() == f"{SECOND}:1:3"
    assert state["phases"][SECOND]["status"] == "in_progress"
    assert state["active_workflow"]["current_phase"] == SECOND
    assert [key for key in session.phases if session.phases[key].status == "in_progress"] == [SECOND]


@pytest.mark.req("AC-002d")
@pytest.mark.parametrize("failed_before", [False, True])
def test_a_retry_keeps_the_first_start(project: Project, disk: Disk, clock: Clock, failed_before: bool) -> None:
    handle = project.start("feature", "add search")
    clock.advance(minutes=25)
    if failed_before:
        handle.fail("the analyst lost its connection")
    clock.advance(minutes=5)

    handle.redo("01-requirements")
    project.flush()

    record = disk.state()["phases"]["01-requirements"]
    assert record["status"] == "in_progress"
    assert record["started"] == record["timing"]["started_at"] == "2026-02-20T10:00:00.000Z"


@pytest.mark.req("AC-002e")
def test_timing_opens_with_the_first_attempt_and_counts_retries(project: Project, disk: Disk, clock: Clock) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    assert "timing" not in disk.state()["phases"][SECOND]
    clock.advance(minutes=1)

    handle.begin()
    project.flush()
    seen = [disk.state()["phases"][SECOND]["timing"]]
    for _ in range(2):
        clock.advance(minutes=1)
        handle.redo(SECOND)
        project.flush()
        seen.append(disk.state()["phases"][SECOND]["timing"])

    assert seen == [{"started_at": "2026-02-20T10:01:00.000Z", "retries": retries} for retries in range(3)]


@pytest.mark.req("AC-002f")
def test_begin_is_one_journal_line_and_one_version(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    handle.finish("requirements written")
    project.flush()
    before, version = disk.journal(handle.id), disk.state()["state_version"]

    handle.begin()
    project.flush()

    *unchanged, added = disk.journal(handle.id)
    assert unchanged == before
    assert [event["type"] for event in added["events"]] == ["phase_begun", "checkpoint_taken"]
    assert disk.state()["state_version"] == version + 1


@pytest.mark.req("AC-002f")
def test_a_begin_that_is_refused_writes_nothing(project: Project, disk: Disk) -> None:
    handle = project.start("feature", "add search")
    project.flush()
    journal, state = disk.journal_path(handle.id).read_bytes(), disk.state_path.read_bytes()

    with pytest.raises(Exception, match=f"{SECOND} waits for 01-requirements"):
        handle.begin(SECOND)
    project.flush()

    assert disk.journal_path(handle.id).read_bytes() == journal
    assert disk.state_path.read_bytes() == state


def record_syncs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Inode and size of each file at the time of each sync; the syncs themselves still happen."""
    synced: list[tuple[int, int]] = []
    module, name = (fcntl, "fcntl") if sys.platform == "darwin" else (os, "fdatasync")
    real = getattr(module, name)

    def recording(fd: int, *rest: Any) -> Any:
        result = real(fd, *rest)
        synced.append((os.fstat(fd).st_ino, os.fstat(fd).st_size))
        return result

    monkeypatch.setattr(module, name, recording)
    return synced
