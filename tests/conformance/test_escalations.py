"""TS-015: what the work cannot solve itself is put before a person, who says retry, skip or cancel."""

from pathlib import Path

import pytest

from tests.support.hooked_project import FAILS, PASSES, Place

SETTINGS = """
[workflows.row]
phases = [
    { key = "06-implementation", gates = [{ kind = "tests", circuit_breaker = 3 }] },
    { key = "16-quality-loop", gates = [] },
]
[workflows.beside]
phases = [
    { key = "06-implementation", gates = [{ kind = "tests", circuit_breaker = 3 }] },
    { key = "10-cicd", needs = [], gates = [] },
]
"""


def failed(root: Path, times: int = 3, workflow: str = "row") -> Place:
    """The same test failed so often in a row."""
    place = Place(root, settings=SETTINGS)
    place.detent("start", workflow, "Add search")
    for _ in range(times):
        place.tests(FAILS)
    return place


@pytest.mark.req("TS-015")
def test_the_blocker_is_shown_and_nothing_new_begins(tmp_path: Path) -> None:
    place = failed(tmp_path, workflow="beside")
    [entry] = place.disk.state()["pending_escalations"]

    assert (entry["type"], entry["phase"], entry["hook"]) == ("circuit_breaker", "06-implementation", "tests")
    assert "the same failure 3 times" in entry["detail"]
    for action in ("retry", "skip", "cancel"):
        assert f"detent resolve {action} 06-implementation" in place.detent("escalations")
    assert "the same failure 3 times" in place.detent("why")
    assert "the same failure 3 times" in place.hook("SessionStart", source="resume").told
    # Phase 10 depends on nothing and could begin otherwise.
    assert "a person must decide first" in place.refused("begin", "10-cicd")
    assert place.status("10-cicd") == "pending"


@pytest.mark.req("TS-015")
def test_before_the_third_failure_nobody_is_asked(tmp_path: Path) -> None:
    place = failed(tmp_path, times=2, workflow="beside")

    assert place.disk.state()["pending_escalations"] == []
    place.detent("begin", "10-cicd")


@pytest.mark.req("TS-015")
def test_the_agent_cannot_resolve_it(tmp_path: Path) -> None:
    place = failed(tmp_path)

    for command in ("detent resolve skip", "detent release --reason x", "cd src && python -m detent resolve retry"):
        assert place.before("Bash", command=command).denied is not None
    for agent_shell in ("CLAUDECODE", "CODEX_THREAD_ID", "GEMINI_CLI"):
        assert "agent's shell" in place.refused("resolve", "retry", **{agent_shell: "1"})
    assert len(place.disk.state()["pending_escalations"]) == 1


@pytest.mark.req("TS-015")
def test_retry_clears_it_and_counts_anew(tmp_path: Path) -> None:
    place = failed(tmp_path)

    place.detent("resolve", "retry", "--reason", "the server is back")

    assert place.disk.state()["pending_escalations"] == []
    assert place.status("06-implementation") == "in_progress"
    for _ in range(2):
        place.tests(FAILS)
    assert place.disk.state()["pending_escalations"] == []  # the counting began anew
    place.tests(PASSES)
    place.detent("finish", "-m", "done")
    assert place.status("06-implementation") == "completed"


@pytest.mark.req("TS-015")
def test_skip_leaves_the_phase_out_and_the_next_may_begin(tmp_path: Path) -> None:
    place = failed(tmp_path)

    place.detent("resolve", "skip", "--reason", "not needed for the demo")
    place.detent("begin", "16-quality-loop")

    document = place.disk.state()
    assert document["pending_escalations"] == []
    assert "06-implementation" not in document["active_workflow"]["phases"]
    assert document["phases"]["16-quality-loop"]["status"] == "in_progress"
    [skipped] = [event for event in place.events() if event["type"] == "phase_skipped"]
    assert skipped["reason"] == "not needed for the demo"


@pytest.mark.req("TS-015")
def test_cancel_ends_the_session_and_keeps_its_record(tmp_path: Path) -> None:
    place = failed(tmp_path)
    session = place.session()

    place.detent("resolve", "cancel", "--reason", "the approach does not work")

    assert place.disk.state()["active_workflow"] is None
    assert place.disk.markers() == []
    entry = place.disk.history()[-1]
    assert (entry["session_id"], entry["status"]) == (session, "cancelled")
    assert place.delegate("software-developer").denied is None
