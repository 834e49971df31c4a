"""TS-014: in a supervised session a person looks at every finished phase."""

from pathlib import Path

import pytest

from tests.support.hooked_project import Place

SETTINGS = """
gates = "off"
[supervised]
max_redos = 2
[workflows.row]
phases = ["01-requirements", "06-implementation"]
"""


def finished(root: Path, settings: str = SETTINGS) -> Place:
    """The first phase is finished and waits."""
    place = Place(root, settings=settings)
    place.detent("start", "row", "Add search")
    place.detent("finish", "-m", "requirements written")
    return place


@pytest.mark.req("TS-014")
def test_a_finished_phase_waits_for_a_person(tmp_path: Path) -> None:
    place = finished(tmp_path)

    record = place.disk.state()["phases"]["01-requirements"]
    assert (record["status"], record["review"]) == ("completed", "pending")
    assert "waits for a person's review" in place.detent("why")
    assert "detent review continue" in place.detent("why")
    assert "waits for a person's review" in place.refused("begin")
    assert place.delegate("software-developer").denied is not None
    assert place.status("06-implementation") == "pending"


@pytest.mark.req("TS-014")
def test_the_agent_cannot_review_its_own_work(tmp_path: Path) -> None:
    place = finished(tmp_path)

    denied = place.before("Bash", command="detent review continue").denied

    assert denied is not None
    assert "a person's decision" in denied
    assert "agent's shell" in place.refused("review", "continue", CLAUDECODE="1")
    assert place.disk.state()["phases"]["01-requirements"]["review"] == "pending"


@pytest.mark.req("TS-014")
def test_continue_lets_the_next_phase_begin(tmp_path: Path) -> None:
    place = finished(tmp_path)

    place.detent("review", "continue")
    place.detent("begin")

    assert place.status("06-implementation") == "in_progress"
    assert place.delegate("software-developer").denied is None


@pytest.mark.req("TS-014")
def test_review_keeps_the_phase_with_the_person(tmp_path: Path) -> None:
    place = finished(tmp_path)

    place.detent("review", "review", "-m", "reading it")

    assert place.disk.state()["phases"]["01-requirements"]["review"] == "reviewing"
    place.refused("begin")

    place.detent("review", "continue")
    place.detent("begin")
    assert place.status("06-implementation") == "in_progress"


@pytest.mark.req("TS-014")
def test_redo_does_the_phase_again_and_counts_it(tmp_path: Path) -> None:
    place = finished(tmp_path)
    started = place.disk.state()["phases"]["01-requirements"]["timing"]["started_at"]

    place.detent("review", "redo", "-m", "think of the empty query")

    record = place.disk.state()["phases"]["01-requirements"]
    assert (record["status"], record["timing"]["retries"]) == ("in_progress", 1)
    assert record["timing"]["started_at"] == started
    assert place.disk.workflow()["current_phase"] == "01-requirements"
    assert place.delegate("requirements-analyst").denied is None
    assert place.delegate("software-developer").denied is not None

    place.detent("finish", "-m", "with the empty query")

    assert place.disk.state()["phases"]["01-requirements"]["review"] == "pending"
    place.refused("begin")


@pytest.mark.req("TS-014")
def test_redoing_ends_at_its_limit(tmp_path: Path) -> None:
    place = finished(tmp_path)
    for _ in range(2):
        place.detent("review", "redo")
        place.detent("finish", "-m", "again")

    assert "redone 2 times already" in place.refused("review", "redo")

    place.detent("review", "continue")
    assert place.disk.state()["phases"]["01-requirements"]["timing"]["retries"] == 2


@pytest.mark.req("TS-014")
def test_only_the_phases_that_are_named_wait(tmp_path: Path) -> None:
    place = finished(tmp_path, SETTINGS.replace("max_redos = 2", 'phases = ["06"]'))

    place.detent("begin")
    place.detent("finish", "-m", "written")

    # The last phase waits too: the session is not over before a person has looked.
    assert place.disk.state()["active_workflow"] is not None
    assert place.disk.state()["phases"]["06-implementation"]["review"] == "pending"
    place.detent("review", "continue")
    assert place.disk.state()["active_workflow"] is None
    assert place.disk.history()[-1]["status"] == "completed"


@pytest.mark.req("TS-014")
def test_nobody_is_kept_working_while_a_person_looks(tmp_path: Path) -> None:
    place = finished(tmp_path)

    assert place.hook("Stop", stop_hook_active=False).blocked is None
