"""Seed 001: the canonical phases, what each type of project has of them, and the gates where all must agree."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from detent.doctor.invariants import check
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from detent.errors import GateClosed, NotFound, Refused
from tests.support.hooked_project import Place
from tests.support.people import FILLED, SEATS, acting, needs_people
from tests.support.project import build_project
from tests.support.values import Clock

BEFORE = ("intake", "planning")
AFTER = ("documentation", "review", "hygiene", "complete")


@pytest.fixture
def strict(tmp_path: Path, clock: Clock) -> Iterator[Project]:
    """A project whose gates count."""
    build_project(tmp_path, FILLED)
    with open_project(tmp_path, actor="tester", clock=clock) as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


def do(session: SessionHandle, *phases: str) -> None:
    for phase in phases:
        if session.state.phases[phase].status != "in_progress":
            session.begin(phase)
        session.finish(f"{phase} is done", phase=phase)


def vote(session: SessionHandle, seat: str, reason: str, *, approve: bool = True) -> None:
    with acting(SEATS[seat]):
        session.approve(reason, approve=approve)


def needs(session: SessionHandle) -> dict[str, set[str]]:
    """What each phase follows directly: needs that another need has anyway are left out."""
    graph = session.state.workflow
    return {
        phase.key: {need for need in phase.needs if not set(graph.descendants(need)) & set(phase.needs)}
        for phase in graph.phases
    }


def live(session: SessionHandle) -> set[str]:
    return {key for key, state in session.state.phases.items() if state.status == "in_progress"}


@pytest.mark.req("001-flow-1")
def test_the_canonical_graph_is_that_of_the_seed(strict: Project) -> None:
    graph = needs(strict.start("canonical", "Without anything optional"))
    secured = needs(strict.start("webapp", "With security"))

    assert graph == {
        "intake": set(),
        "planning": {"intake"},
        "data": {"planning"},
        "architecture": {"planning"},
        "consensus_1": {"data", "architecture"},
        "development": {"consensus_1"},
        "qa": {"development"},
        "consensus_2": {"qa"},
        "documentation": {"consensus_2"},
        "review": {"consensus_2"},
        "hygiene": {"consensus_2"},
        "complete": {"documentation", "review", "hygiene"},
    }
    assert (secured["security"], secured["consensus_1"]) == ({"planning"}, {"architecture", "security"})
    canonical = strict.catalogue.workflow("canonical")
    assert [phase.key for phase in canonical.phases if phase.gates] == ["consensus_1", "consensus_2"]


@pytest.mark.req("001-flow-2")
@pytest.mark.parametrize("workflow", ["canonical-full", "ml", "optimization"])
def test_data_architecture_and_security_go_on_together(strict: Project, clock: Clock, workflow: str) -> None:
    session = strict.start(workflow, "All three")

    overlapped(session, "data", "architecture", "security", clock=clock)

    assert session.state.ready == ("consensus_1",)


def overlapped(session: SessionHandle, *keys: str, clock: Clock) -> None:
    """All are begun before any is finished, each has its own checkpoints, and none waits for another."""
    do(session, *(key for key in BEFORE if session.state.phases[key].status != "completed"))
    tokens = {}
    for key in keys:
        tokens[key] = session.begin(key).token
        clock.advance(minutes=1)
    assert live(session) == set(keys)
    for key in reversed(keys):
        session.finish(f"{key} is done", token=tokens[key])
        clock.advance(minutes=1)
    spans = [(state.begun, state.completed) for key, state in session.state.phases.items() if key in keys]
    assert max(begun for begun, _ in spans if begun) < min(ended for _, ended in spans if ended)
    taken = {one.event.name for one in session.checkpoints.all()}
    assert {f"{kind}_{key}_v1" for key in keys for kind in ("PRE", "POST")} <= taken


@needs_people
@pytest.mark.req("001-flow-2", "001-flow-3", "001-flow-4", "001-type-3", "001-trig-4")
def test_a_webapp_from_intake_to_complete(strict: Project, clock: Clock) -> None:
    session = strict.start("webapp", "A shop")
    overlapped(session, "architecture", "security", clock=clock)
    session.begin("consensus_1")
    with pytest.raises(GateClosed, match="consensus"):
        session.finish("nobody has voted")
    vote(session, "architect", "sound")
    with pytest.raises(GateClosed, match="consensus"):
        session.finish("one of two")
    vote(session, "security-engineer", "safe")
    session.finish("agreed")

    do(session, "development", "qa")
    session.begin("consensus_2")
    for who in ("developer", "qa-engineer"):
        vote(session, who, "works")
    session.finish("accepted")
    overlapped(session, "documentation", "review", "hygiene", clock=clock)
    do(session, "complete")
    strict.flush()

    assert session.state.status == "completed"
    assert "data" not in session.state.phases
    approved = Path(strict.place.state) / f"checkpoints/run-{session.id}/POST_consensus_1_v1.json"
    metadata = json.loads(approved.read_bytes())["metadata"]
    assert metadata["outcome"] == "approved"
    assert metadata["approvals"]["consensus"]["by"] == [SEATS["architect"], SEATS["security-engineer"]]


@needs_people
@pytest.mark.req("001-flow-3")
def test_consensus_waits_for_every_branch_and_for_its_quorum(strict: Project) -> None:
    session = strict.start("ml", "A model")
    do(session, "intake", "planning", "data")

    with pytest.raises(Refused, match="architecture"):
        session.begin("consensus_1")
    do(session, "architecture", "security")
    session.begin("consensus_1")
    vote(session, "data-engineer", "fits")
    with pytest.raises(GateClosed):
        session.finish("too early")
    vote(session, "architect", "no", approve=False)
    with pytest.raises(GateClosed):
        session.finish("one for it, one against it")
    vote(session, "architect", "convinced")
    session.finish("agreed")
    assert session.state.phases["consensus_1"].status == "completed"


@pytest.mark.req("001-type-1")
def test_analytics_has_data_and_neither_qa_nor_security(strict: Project) -> None:
    session = strict.start("analytics", "A report")

    order = ("data", "architecture", "consensus_1", "development", "consensus_2")
    assert session.state.workflow.order == (*BEFORE, *order, *AFTER)
    assert needs(session)["consensus_1"] == {"data", "architecture"}
    assert needs(session)["consensus_2"] == {"development"}


@pytest.mark.req("001-type-2", "001-type-4")
@pytest.mark.parametrize("kind", ["ml", "optimization"])
def test_ml_and_optimization_have_what_the_seed_lists(strict: Project, kind: str) -> None:
    session = strict.start(kind, f"Some {kind}")

    order = ("data", "architecture", "security", "consensus_1", "development", "qa", "consensus_2")
    assert session.state.workflow.order == (*BEFORE, *order, *AFTER)
    assert needs(session)["consensus_1"] == {"data", "architecture", "security"}
    assert [phase.key for phase in session.state.workflow.phases if phase.optional] == ["security"]


@pytest.mark.req("001-type-3")
def test_a_webapp_has_security_and_no_data(strict: Project) -> None:
    session = strict.start("webapp", "A shop")

    assert {"development", "qa", "documentation", "security"} <= set(session.state.workflow.order)
    assert "data" not in session.state.workflow.order
    assert needs(session)["consensus_1"] == {"architecture", "security"}


@pytest.mark.req("001-type-1", "001-type-2", "001-type-3", "001-type-4")
def test_an_unknown_type_of_project_is_refused(strict: Project) -> None:
    with pytest.raises(NotFound, match="did you mean webapp"):
        strict.start("webap", "A shop")


@needs_people
@pytest.mark.req("001-flow-2", "001-flow-3", "001-trig-4")
def test_on_the_command_line_too(tmp_path: Path) -> None:
    place = Place(tmp_path, settings=FILLED)
    place.detent("start", "webapp", "A shop")
    place.detent("finish", "-m", "taken in")
    place.detent("begin", "planning")
    place.detent("finish", "-m", "planned")
    for key in ("architecture", "security"):
        place.detent("begin", key)
    assert [place.status(key) for key in ("architecture", "security")] == ["in_progress", "in_progress"]
    for key in ("architecture", "security"):
        place.detent("finish", key, "-m", f"{key} done")
    place.detent("begin", "consensus_1")
    with acting(SEATS["architect"]):
        place.detent("approve", "-m", "sound")

    refusal = place.refused("finish", "-m", "one of two")

    assert "consensus" in refusal
    with acting(SEATS["security-engineer"]):
        place.detent("approve", "-m", "safe")
    place.detent("finish", "-m", "agreed")
    assert "data" not in place.disk.state()["phases"]
    assert document(place, "POST_consensus_1_v1")["metadata"]["outcome"] == "approved"
    assert "all is well" in place.detent("doctor")


def document(place: Place, name: str) -> dict[str, Any]:
    path = place.root / f".workflow/checkpoints/run-{place.session()}/{name}.json"
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found
