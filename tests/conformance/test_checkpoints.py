"""Seed 001: what takes a checkpoint, what is in one and where, and how one goes back."""

import asyncio
import hashlib
import json
import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from detent.compat.checkpoint_service import CheckpointService
from detent.compat.checkpoint_values import (
    AgentState,
    ArtifactInfo,
    CheckpointType,
    GovernanceResults,
    OrchestratorState,
    TokenUsage,
)
from detent.core.session.phase_state import Tokens, ToolUse
from detent.doctor.invariants import check
from detent.engine.bundles.exporting import export_session
from detent.engine.bundles.importing import import_session
from detent.engine.project import Project, init_project, open_project
from detent.engine.session import SessionHandle
from detent.errors import Corrupt, NotFound, Refused
from tests.support.disk import Disk
from tests.support.hooked_project import Place
from tests.support.people import ANN, BOB, CEM, acting, needs_people, roles
from tests.support.project import build_project
from tests.support.values import Clock, diamond, row

GATED = """
[[workflows.gated.phases]]
key = "develop"
gates = [
    { kind = "command", command = "test -f done", name = "done" },
    { kind = "constitution", articles = ["I"] },
]

[[workflows.gated.phases]]
key = "agree"
gates = [{ kind = "consensus", approvers = ["lead", "sec", "ops"], quorum = 2 }]
"""


@pytest.fixture
def session(project: Project, root: Path) -> SessionHandle:
    (root / "notes.txt").write_text("first\n")
    return project.start(row("planning", "development", "qa"), "Build it")


@pytest.fixture
def gated(tmp_path_factory: pytest.TempPathFactory, clock: Clock) -> Iterator[Project]:
    """A project whose gates count."""
    root = tmp_path_factory.mktemp("gated")
    build_project(root, GATED + roles(lead=ANN, sec=BOB, ops=CEM), constitution=True)
    with open_project(root, actor="tester", clock=clock) as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


def read(project: Project, session: SessionHandle, name: str) -> dict[str, Any]:
    """The file of a checkpoint, as any other program would read it."""
    project.flush()
    path = Path(project.place.state) / "checkpoints" / f"run-{session.id}" / f"{name}.json"
    document: dict[str, Any] = json.loads(path.read_bytes())
    return document


def index(project: Project) -> dict[str, Any]:
    project.flush()
    document: dict[str, Any] = json.loads((Path(project.place.state) / "checkpoints/index.json").read_bytes())
    return document


def developed(session: SessionHandle, root: Path, clock: Clock) -> None:
    """Planning and development done; development changed a file, made one and removed one."""
    (root / "plan.md").write_text("the plan\n")
    session.finish("planned", artifacts=["plan.md"])
    clock.advance(minutes=1)
    session.begin("development")
    (root / "notes.txt").write_text("second\n")
    (root / "app.py").write_text("print(1)\n")
    (root / "plan.md").unlink()
    clock.advance(minutes=5)
    session.finish("built", artifacts=["app.py"], tokens=Tokens(input=900, output=100))
    clock.advance(minutes=1)


# Triggers


@pytest.mark.req("001-trig-1")
def test_the_start_of_a_phase_takes_a_pre(project: Project, session: SessionHandle, root: Path, clock: Clock) -> None:
    developed(session, root, clock)
    session.begin("qa")

    taken = read(project, session, "PRE_qa_v1")

    assert (taken["type"], taken["metadata"]["outcome"]) == ("PRE", "started")
    assert taken["orchestrator_state"]["completed_phases"] == ["planning", "development"]
    assert taken["artifacts"]["app.py"]["size_bytes"] == 9
    assert taken["duration_ms"] == 0


@pytest.mark.req("001-trig-2")
def test_the_success_of_a_phase_takes_a_post(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    developed(session, root, clock)

    taken = read(project, session, "POST_development_v1")

    assert (taken["type"], taken["metadata"]["outcome"]) == ("POST", "success")
    assert taken["agent_states"]["development-agent@development"]["summary"] == "built"
    assert "app.py" in taken["artifacts"]
    assert taken["governance_results"] == {"quality_gates": [], "compliance_checks": [], "passed": True}


@pytest.mark.req("001-trig-3")
def test_the_failure_of_a_phase_takes_a_post_that_says_so(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    (root / "half.md").write_text("half a plan")
    session.fail("the model is away", artifacts=["half.md"])

    taken = read(project, session, "POST_planning_v1")

    assert (taken["type"], taken["metadata"]["outcome"]) == ("POST", "failed")
    assert taken["metadata"]["error"] == "the model is away"
    assert taken["agent_states"]["planning-agent@planning"]["status"] == "failed"
    assert taken["artifacts"]["half.md"]["hash"] == hashlib.sha256(b"half a plan").hexdigest()


@needs_people
@pytest.mark.req("001-trig-4")
def test_a_consensus_takes_a_post_with_who_approved(gated: Project, clock: Clock) -> None:
    session = gated.start("gated", "Agree on it")
    Path(gated.place.base, "done").touch()
    session.gates.run("done")
    session.gates.report("constitution", compliant=True)
    session.finish("developed")
    session.begin("agree")
    clock.advance(minutes=2)
    for name, reason in ((ANN, "sound"), (CEM, "agreed")):
        with acting(name):
            session.approve(reason)
    session.finish("agreed on")

    taken = read(gated, session, "POST_agree_v1")

    assert (taken["type"], taken["metadata"]["outcome"]) == ("POST", "approved")
    assert taken["metadata"]["approvals"] == {"consensus": {"by": [ANN, CEM], "at": "2026-02-20T10:02:00.000Z"}}
    [gate] = taken["governance_results"]["quality_gates"]
    assert gate["votes"][ANN] == {"approve": True, "reason": "sound"}


@pytest.mark.req("001-trig-5", "001-back-6")
def test_a_rollback_takes_a_pre_that_links_to_its_source(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    developed(session, root, clock)
    source = session.checkpoints.all()[1].event
    last = session.checkpoints.all()[-1].event
    assert source.name == "POST_planning_v1"

    session.checkpoints.rollback("POST_planning_v1")

    taken = read(project, session, "PRE_planning_v2")
    assert (taken["phase"], taken["type"], taken["metadata"]["outcome"]) == ("planning", "PRE", "rollback")
    assert taken["parent_checkpoint_id"] == source.id
    assert taken["metadata"]["rolled_back_to"] == source.id
    safety = next(one for one in session.checkpoints.all() if one.event.id == taken["metadata"]["rollback_from"])
    assert (safety.event.taken, safety.event.parent) == ("safety", last.id)


# Rollback


@pytest.mark.req("001-back-1")
def test_a_checkpoint_is_selected_by_name_or_id_and_verified(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    developed(session, root, clock)
    event = session.checkpoints.all()[1].event
    names = (event.name, event.id, event.id[:8], event.name.lower())

    assert [session.checkpoints.plan_rollback(name).to.event for name in names] == [event] * 4
    with pytest.raises(NotFound, match="did you mean POST_planning_v1"):
        session.checkpoints.rollback("POST_planing_v1")
    before, journal = _files(root), session.state.version
    [plain] = (Path(project.place.state) / "checkpoints/artifacts").glob("*/*/plan.md")
    whole = plain.read_bytes()
    plain.chmod(0o644)
    plain.write_bytes(b"forged")
    with pytest.raises(Corrupt):
        session.checkpoints.rollback(event.id)
    assert (_files(root), session.state.version) == (before, journal)
    plain.write_bytes(whole)


@pytest.mark.req("001-back-2", "001-ben-1")
def test_a_rollback_restores_state_and_files(
    project: Project, session: SessionHandle, root: Path, disk: Disk, clock: Clock
) -> None:
    developed(session, root, clock)
    (root / "mine.txt").write_text("no checkpoint has this")

    session.checkpoints.rollback("POST_planning_v1")
    project.flush()

    assert disk.state()["current_phase"] == "planning"
    assert disk.workflow()["phase_status"] == {"planning": "completed", "development": "pending", "qa": "pending"}
    assert (root / "notes.txt").read_text() == "first\n"
    assert (root / "plan.md").read_text() == "the plan\n"
    assert not (root / "app.py").exists()
    session.checkpoints.rollback("PRE_planning_v1")
    assert session.state.phases["planning"].status == "pending"  # before it, it was not done
    assert not (root / "plan.md").exists()
    session.checkpoints.undo()
    session.checkpoints.undo()


@pytest.mark.req("001-back-3")
def test_only_what_builds_on_it_becomes_incomplete(project: Project, root: Path, clock: Clock) -> None:
    session = project.start(diamond(), "Two at once")
    session.finish("split")
    for key in ("b", "c", "d"):
        session.begin(key)
        (root / f"{key}.txt").write_text(key)
        session.finish(f"{key} done", artifacts=[f"{key}.txt"])
        clock.advance(minutes=1)

    session.checkpoints.rollback("PRE_b_v1")

    statuses = {key: str(state.status) for key, state in session.state.phases.items()}
    assert statuses == {"a": "completed", "b": "pending", "c": "completed", "d": "pending"}
    assert sorted(path.name for path in root.glob("?.txt")) == ["c.txt"]


@pytest.mark.req("001-back-4")
def test_what_is_rolled_back_is_archived(project: Project, session: SessionHandle, root: Path, clock: Clock) -> None:
    developed(session, root, clock)
    session.checkpoints.rollback("POST_planning_v1")

    event = next(one.rollback for one in reversed(session.checkpoints.all()) if one.rollback)
    assert event.archive is not None
    listing = json.loads(project.checkpoints.objects.read(event.archive))
    assert set(listing["files"]) == {"app.py", "notes.txt"}
    assert project.checkpoints.objects.read(listing["files"]["app.py"]["hash"]) == b"print(1)\n"
    assert listing["phases"] == ["development"]
    project.checkpoints.collect(dry_run=False)
    session.checkpoints.undo()
    assert (root / "app.py").read_text() == "print(1)\n"
    assert (root / "notes.txt").read_text() == "second\n"


@pytest.mark.req("001-back-5", "001-path-4", "001-ben-2")
def test_a_version_is_never_used_twice(project: Project, session: SessionHandle, root: Path, clock: Clock) -> None:
    developed(session, root, clock)
    first = read(project, session, "POST_development_v1")
    for again in (2, 3):
        session.checkpoints.rollback("POST_planning_v1")
        clock.advance(minutes=1)
        session.begin("development")
        (root / "app.py").write_text(f"print({again})\n")
        session.finish(f"built for the {again}. time", artifacts=["app.py"])
        clock.advance(minutes=1)

        later = read(project, session, f"POST_development_v{again}")
        assert (later["version"], later["type"]) == (again, "POST")
        assert read(project, session, f"PRE_development_v{again}")["version"] == again

    assert read(project, session, "POST_development_v1") == first
    runs = [one for one in index(project)["runs"][session.id]["checkpoints"] if one["phase"] == "development"]
    posts = [(one["name"], one["version"], one["outcome"]) for one in runs if one["type"] == "POST"]
    assert posts == [(f"POST_development_v{number}", number, "success") for number in (1, 2, 3)]


# Storage


@pytest.mark.req("001-path-1")
def test_the_index_lists_all_and_can_be_rebuilt(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    developed(session, root, clock)
    lines = index(project)["runs"][session.id]["checkpoints"]

    assert [line["name"] for line in lines] == [one.event.name for one in session.checkpoints.all()]
    for line in lines:
        assert read(project, session, line["name"])["id"] == line["id"]
        assert (Path(project.place.state) / "checkpoints" / line["file"]).is_file()
    path = Path(project.place.state) / "checkpoints/index.json"
    whole = path.read_bytes()
    for damaged in (None, b"{", b'{"runs": {}}'):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        project.rebuild()
        assert path.read_bytes() == whole


@pytest.mark.req("001-path-2", "001-path-3", "001-path-5")
def test_everything_is_where_the_seed_has_it(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    developed(session, root, clock)
    project.flush()
    base = Path(project.place.state) / "checkpoints"

    names = sorted(path.name for path in (base / f"run-{session.id}").iterdir())
    assert names == [f"{kind}_{phase}_v1.json" for kind in ("POST", "PRE") for phase in ("development", "planning")]
    taken = [read(project, session, name.removesuffix(".json")) for name in names]
    for name, artifact in {name: artifact for each in taken for name, artifact in each["artifacts"].items()}.items():
        # Equal content is stored once, with the checkpoint that had it first.
        [content] = (base / "artifacts").glob(f"*/{artifact['hash']}/{name}")
        assert content.parts[-3] in {each["id"] for each in taken}
        assert hashlib.sha256(content.read_bytes()).hexdigest() == artifact["hash"]
        assert content.stat().st_size == artifact["size_bytes"]
    post = read(project, session, "POST_planning_v1")
    own = base / "artifacts" / post["id"] / post["artifacts"]["plan.md"]["hash"] / "plan.md"
    assert own.read_text() == "the plan\n"


# Structure


@pytest.mark.req("001-str-1", "001-str-2", "001-str-3", "001-str-5", "001-str-7")
def test_a_checkpoint_says_all_that_the_seed_asks_for(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    started = clock.now
    developed(session, root, clock)

    taken = read(project, session, "POST_development_v1")

    assert str(uuid.UUID(taken["id"])) == taken["id"]
    assert (taken["phase"], taken["type"], taken["version"]) == ("development", "POST", 1)
    assert datetime.fromisoformat(taken["created_at"]) == started + timedelta(minutes=6)
    assert taken["duration_ms"] == 5 * 60_000
    state = taken["orchestrator_state"]
    assert state["run_id"] == session.id
    assert (state["current_phase"], state["completed_phases"]) == ("development", ["planning", "development"])
    assert state["intake_summary"]["task"] == "Build it"
    assert taken["artifacts"]["app.py"] == {
        "path": "app.py",
        "hash": hashlib.sha256(b"print(1)\n").hexdigest(),
        "size_bytes": 9,
    }
    assert taken["parent_checkpoint_id"] == read(project, session, "PRE_development_v1")["id"]
    assert read(project, session, "PRE_planning_v1")["parent_checkpoint_id"] is None
    assert taken["metadata"]["name"] == "POST_development_v1"
    assert taken["metadata"]["taken_by"] == "tester"


@pytest.mark.req("001-str-4", "001-ben-4")
def test_agents_are_preserved_with_what_they_used(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    tools = [ToolUse(tool="Bash", input="pytest -q", at=clock.now), ToolUse(tool="Edit", succeeded=False)]
    session.finish("planned", tokens=Tokens(input=1200, output=300, cost=0.5), tools=tools)
    session.begin("development")
    session.fail("gave up", tokens=Tokens(input=10, output=1))
    session.redo("development")

    agents = read(project, session, "PRE_development_v2")["agent_states"]

    planning, development = agents["planning-agent@planning"], agents["development-agent@development"]
    assert (planning["status"], planning["summary"]) == ("complete", "planned")
    assert planning["token_usage"] == {"input": 1200, "output": 300}
    assert [(one["tool"], one.get("input")) for one in planning["tool_invocations"]] == [
        ("Bash", "pytest -q"),
        ("Edit", None),
    ]
    assert planning["tool_invocations"][1]["succeeded"] is False
    assert (development["status"], development["token_usage"]) == ("running", {"input": 10, "output": 1})
    failed = read(project, session, "POST_development_v1")["agent_states"]["development-agent@development"]
    assert (failed["status"], failed["summary"]) == ("failed", "gave up")


@pytest.mark.req("001-str-6", "001-ben-5")
def test_gates_and_compliance_are_in_the_checkpoint(gated: Project) -> None:
    session = gated.start("gated", "Under rules")

    def results(name: str) -> tuple[bool, list[tuple[str, str]], list[tuple[str, str]]]:
        found = read(gated, session, name)["governance_results"]
        gates, checks = (
            [(one["gate"], one["verdict"]) for one in found[kind]] for kind in ("quality_gates", "compliance_checks")
        )
        return found["passed"], gates, checks

    assert results("PRE_develop_v1") == (False, [("done", "PENDING")], [("constitution", "PENDING")])
    session.gates.run("done")
    noted = session.checkpoints.take("the gate fails").name
    assert results(noted) == (False, [("done", "FAIL")], [("constitution", "PENDING")])
    Path(gated.place.base, "done").touch()
    session.gates.run("done")
    session.gates.report("constitution", compliant=True)
    session.finish("developed")
    assert results("POST_develop_v1") == (True, [("done", "PASS")], [("constitution", "PASS")])
    [gate] = read(gated, session, "POST_develop_v1")["governance_results"]["quality_gates"]
    assert (gate["command"], gate["exit_code"], gate["iterations"]) == ("test -f done", 0, 2)


# Interface


@pytest.mark.req("001-str-4", "001-ben-4")
def test_agents_under_hooks_are_preserved_with_what_they_used(tmp_path: Path) -> None:
    place = Place(tmp_path / "project", settings='[workflows.one]\nphases = [{ key = "build", agent = "builder" }]\n')
    place.detent("start", "one", "Build it")
    lines = [
        {"type": "assistant", "message": {"id": "m", "usage": {"input_tokens": 70, "output_tokens": 5}, "content": [
            {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}]}},
        {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "is_error": True}]}},
    ]  # fmt: skip
    transcript = tmp_path / "agent.jsonl"
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines))
    agent = {"agent_id": "a1", "agent_type": "builder"}
    place.hook("SubagentStart", **agent)
    place.hook("SubagentStop", **agent, agent_transcript_path=str(transcript), last_assistant_message="Summary: ok")
    place.detent("finish", "-m", "built")

    folder = place.disk.directory / "checkpoints/run-WFS-build-it"
    before = json.loads((folder / "PRE_build_v1.json").read_text())["agent_states"]["builder@build"]
    after = json.loads((folder / "POST_build_v1.json").read_text())["agent_states"]["builder@build"]
    assert before["status"] == "running"
    assert (after["status"], after["summary"]) == ("complete", "built")
    assert after["token_usage"] == {"input": 70, "output": 5}
    assert after["tool_invocations"] == [{"tool": "Bash", "input": '{"command": "make"}', "succeeded": False}]
    assert [each["agent_id"] for each in after["delegations"]] == ["a1"]


@pytest.mark.req("001-api-1", "001-api-2", "001-api-3", "001-api-4", "001-api-5")
def test_the_service_has_the_interface_of_the_seed(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    service = CheckpointService(project)
    (root / "notes.txt").write_text("noted")
    digest = hashlib.sha256(b"noted").hexdigest()

    async def use() -> None:
        made = await service.create(
            "planning",
            CheckpointType.PRE,
            OrchestratorState(run_id=session.id, current_phase="planning"),
            {},
            {"notes": ArtifactInfo(path="notes.txt", hash=digest, size_bytes=5)},
            GovernanceResults(passed=True),
        )
        assert made.not_stored == (
            "artifact notes: notes.txt is among the files, but no phase declares it as an artifact",
        )
        assert await service.load(made.id) == msgspec.structs.replace(made, not_stored=())
        developed(session, root, clock)
        await asyncio.gather(*(service.list_for_run(session.id) for _ in range(4)))
        listed = await service.list_for_run(session.id)
        names = ["PRE_planning_v1", made.metadata["name"], "POST_planning_v1", "PRE_development_v1"]
        assert [one.name for one in listed] == [*names, "POST_development_v1"]
        diff = await service.compare(made.id, listed[-1].id)
        assert (diff.added, diff.modified) == (("app.py",), ("notes.txt",))
        assert diff.newly_completed == ("planning", "development")
        await service.rollback(made.id)
        assert (root / "notes.txt").read_text() == "noted"
        assert (await service.compare(made.id, made.id)).is_empty

    asyncio.run(use())


# Benefits that are not shown elsewhere


@pytest.mark.req("001-ben-3")
def test_another_project_gets_the_same(
    project: Project, session: SessionHandle, root: Path, clock: Clock, tmp_path_factory: pytest.TempPathFactory
) -> None:
    developed(session, root, clock)
    wanted = {name: (root / name).read_bytes() for name in ("app.py", "notes.txt")}
    bundle = tmp_path_factory.mktemp("bundle") / "it.tar"
    export_session(project, session.id, bundle, with_files=True)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    init_project(elsewhere)

    with open_project(elsewhere, actor="other", clock=clock) as other:
        same = import_session(other, bundle)
        same.checkpoints.rollback("POST_development_v1")

        assert {name: (elsewhere / name).read_bytes() for name in wanted} == wanted
        assert [one.event for one in same.checkpoints.all()][:4] == [one.event for one in session.checkpoints.all()]
        other.flush()
        assert check(other) == []


@pytest.mark.req("001-ben-6")
def test_progress_can_be_drawn_from_the_documents_alone(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write("detent.toml", 'gates = "off"\n')
    place.detent("start", "adhoc", "Draw it", "--phase", "Plan it:planner", "--phase", "Build it:builder")
    place.detent("finish", "-m", "planned")
    place.detent("begin")

    base = place.root / ".workflow/checkpoints"
    [run] = json.loads((base / "index.json").read_bytes())["runs"].values()
    drawn = [(line["phase"], line["type"], line["outcome"]) for line in run["checkpoints"]]
    last = json.loads((base / run["checkpoints"][-1]["file"]).read_bytes())

    assert drawn == [
        ("phase_0", "PRE", "started"),
        ("phase_0", "POST", "success"),
        ("phase_1", "PRE", "started"),
    ]
    assert last["orchestrator_state"]["phase_status"] == {"phase_0": "completed", "phase_1": "in_progress"}
    listed = json.loads(place.detent("checkpoint", "list", "--json"))
    assert [one["name"] for one in listed] == [line["name"] for line in run["checkpoints"]]


# Migration


@pytest.mark.req("001-mig-1", "001-mig-2", "001-mig-3")
def test_older_documents_are_read_and_still_written(project: Project, root: Path, disk: Disk) -> None:
    (root / "plan.md").write_text("old plan")
    older = {
        "current_phase": "build",
        "active_workflow": {
            "type": "old",
            "description": "Go on",
            "phases": ["plan", "build"],
            "current_phase": "build",
            "phase_status": {"plan": "completed", "build": "in_progress"},
        },
        "phases": {"plan": {"status": "completed", "summary": "planned"}, "build": {"status": "in_progress"}},
        "phase_artifacts": {"plan": ["plan.md"]},
    }

    session = project.import_state(older, source="state.json")

    assert session.state.phases["plan"].artifacts == ("plan.md",)
    (root / "app.py").write_text("app")
    session.checkpoints.take("on the way")
    project.flush()
    assert disk.state()["phase_artifacts"] == {"plan": ["plan.md"]}
    [line] = index(project)["runs"][session.id]["checkpoints"]
    taken = read(project, session, line["name"])
    assert taken["artifacts"]["plan.md"]["hash"] == hashlib.sha256(b"old plan").hexdigest()
    assert taken["orchestrator_state"]["completed_phases"] == ["plan"]


# Risks


@pytest.mark.req("001-risk-1")
def test_content_is_stored_once_however_often_it_is_captured(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    data = bytes(range(256)) * 8_192
    (root / "large.bin").write_bytes(data)
    (root / "copy.bin").write_bytes(data)
    session.finish("planned", artifacts=["large.bin"])
    before = project.checkpoints.stored_bytes()

    for _ in range(5):
        session.checkpoints.take()
    (root / "third.bin").write_bytes(data)
    session.checkpoints.take()

    assert len(data) <= before < 2 * len(data)
    assert project.checkpoints.stored_bytes() - before < 20_000
    assert sum(digest == hashlib.sha256(data).hexdigest() for digest in project.checkpoints.objects.digests()) == 1


@pytest.mark.req("001-risk-1")
def test_content_can_be_compressed(tmp_path: Path) -> None:
    sizes = []
    for compress in ("false", "true"):
        root = tmp_path / compress
        root.mkdir()
        build_project(root, f'gates = "off"\n[checkpoint]\ncompress = {compress}\n')
        (root / "words.txt").write_text("the same words again\n" * 20_000)
        with open_project(root, actor="tester") as project:
            project.start(row("a"), "Pack it")
            sizes.append(project.checkpoints.stored_bytes())

    assert sizes[1] * 20 < sizes[0]


@pytest.mark.req("001-risk-2")
def test_a_changed_bit_is_found_and_stops_a_rollback(
    project: Project, session: SessionHandle, root: Path, clock: Clock
) -> None:
    (root / "plan.md").write_text("a plan that matters")
    session.finish("planned", artifacts=["plan.md"])
    session.begin("development")
    (root / "plan.md").write_text("changed")
    [plain] = (Path(project.place.state) / "checkpoints/artifacts").glob("*/*/plan.md")
    whole = plain.read_bytes()
    plain.chmod(0o644)
    plain.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])

    assert [one.digest for one in project.checkpoints.objects.verify()] == [hashlib.sha256(whole).hexdigest()]
    assert [finding.invariant for finding in check(project) if finding.invariant == "I7"]
    with pytest.raises(Corrupt, match=r"plan\.md"):
        asyncio.run(CheckpointService(project).load(session.checkpoints.all()[1].event.id))
    with pytest.raises(Corrupt):
        session.checkpoints.rollback("POST_planning_v1")
    assert (root / "plan.md").read_text() == "changed"
    plain.write_bytes(whole)


@pytest.mark.req("001-risk-3")
def test_unchanged_files_and_lists_cost_no_reading(
    project: Project, session: SessionHandle, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from detent.objects import stat_cache, universe
    from detent.objects.pack import Objects

    for number in range(50):
        (root / f"{number}.txt").write_text(str(number))
    monkeypatch.setattr(stat_cache, "RACE_NS", -1)  # as if they had been there for a while
    session.checkpoints.take("all are read once")
    seen: list[str] = []
    read_file = universe._content
    monkeypatch.setattr(universe, "_content", lambda path, status: seen.append(path) or read_file(path, status))

    (root / "7.txt").write_text("seven, which is longer")
    session.checkpoints.take("one has changed")

    assert [Path(path).name for path in seen] == ["7.txt"]
    project.flush()
    with monkeypatch.context() as patched:
        patched.setattr(Objects, "read", lambda *_: pytest.fail("a list needs no content"))
        assert len(session.checkpoints.all()) == 3
        assert len(asyncio.run(CheckpointService(project).list_for_run(session.id))) == 3


def _files(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


@pytest.mark.req("001-api-1")
def test_create_takes_what_is_so_and_refuses_what_is_not(project: Project, session: SessionHandle, root: Path) -> None:
    service = CheckpointService(project)
    (root / "plan.md").write_text("the plan")
    used = TokenUsage(input=70, output=5)
    session.finish("planned", artifacts=["plan.md"], tokens=Tokens(input=70, output=5))
    plan = ArtifactInfo(path="plan.md", hash=hashlib.sha256(b"the plan").hexdigest(), size_bytes=8)

    def create(agent: AgentState, artifact: ArtifactInfo) -> Any:
        state = OrchestratorState(run_id=session.id, current_phase="planning", completed_phases=("planning",))
        passed = GovernanceResults(passed=True)
        given = {"planning-agent@planning": agent}, {"plan.md": artifact}
        return asyncio.run(service.create("planning", CheckpointType.POST, state, *given, passed))

    done = AgentState(status="complete", token_usage=used, summary="planned")
    made = create(done, plan)
    assert made.not_stored == ()
    assert made.agent_states["planning-agent@planning"].token_usage == used
    assert made.artifacts["plan.md"] == plan
    assert (made.type, made.governance_results.passed) == (CheckpointType.POST, True)
    for agent, artifact, reason in (
        (AgentState(status="running"), plan, "is complete, not running"),
        (AgentState(status="complete"), plan, "used 70 input and 5 output"),
        (done, msgspec.structs.replace(plan, hash="0" * 64), "has SHA-256"),
    ):
        with pytest.raises(Refused, match=reason):
            create(agent, artifact)


@pytest.mark.req("001-api-2")
def test_load_verifies_the_document_and_the_content(project: Project, session: SessionHandle, root: Path) -> None:
    service = CheckpointService(project)
    (root / "plan.md").write_text("the plan")
    session.finish("planned", artifacts=["plan.md"])
    project.flush()
    [post] = [one for one in asyncio.run(service.list_for_run(session.id)) if one.name == "POST_planning_v1"]
    path = Path(project.place.state) / "checkpoints" / post.file
    text = path.read_text()

    assert asyncio.run(service.load(post.id)).artifacts["plan.md"].size_bytes == 8
    path.write_text(text.replace("planned", "skipped"))
    with pytest.raises(Corrupt, match="differs from the journal"):
        asyncio.run(service.load(post.id))
    path.write_text(text)
    [content] = (Path(project.place.state) / "checkpoints/artifacts").glob("*/*/plan.md")
    content.chmod(0o600)
    content.write_text("the plam")
    with pytest.raises(Corrupt, match=r"plan\.md of POST_planning_v1"):
        asyncio.run(service.load(post.id))
    content.write_text("the plan")
    assert asyncio.run(service.load(post.id)).id == post.id


@pytest.mark.req("001-api-4")
def test_a_list_is_of_one_run_and_in_order(project: Project, session: SessionHandle, clock: Clock) -> None:
    service = CheckpointService(project)
    other = project.start(row("planning"), "Another")
    for handle in (session, other):
        clock.advance(minutes=1)
        handle.finish("planned", phase="planning")

    first, second = (asyncio.run(service.list_for_run(handle.id)) for handle in (session, other))

    assert [one.name for one in first] == ["PRE_planning_v1", "POST_planning_v1"]
    assert [one.name for one in second] == ["PRE_planning_v1", "POST_planning_v1"]
    assert ({one.run_id for one in first}, {one.run_id for one in second}) == ({session.id}, {other.id})
    assert not {one.id for one in first} & {one.id for one in second}
    assert [one.created_at for one in first] == sorted(one.created_at for one in first)
    with pytest.raises(NotFound):
        asyncio.run(service.list_for_run("WFS-nobody"))


@pytest.mark.req("001-api-5")
def test_comparing_names_files_phases_and_runs(project: Project, session: SessionHandle, root: Path) -> None:
    service = CheckpointService(project)
    (root / "gone.txt").write_text("soon gone")
    session.finish("planned", phase="planning")
    (root / "gone.txt").unlink()
    (root / "notes.txt").write_text("other\n")
    (root / "new.txt").write_text("new")
    session.begin("development")
    other = project.start(row("planning"), "Another")
    start, planned, developed_from = (one.id for one in asyncio.run(service.list_for_run(session.id)))

    diff = asyncio.run(service.compare(planned, developed_from))
    assert (diff.added, diff.removed, diff.modified) == (("new.txt",), ("gone.txt",), ("notes.txt",))
    assert diff.newly_completed == ()
    assert asyncio.run(service.compare(start, planned)).newly_completed == ("planning",)
    assert asyncio.run(service.compare(planned, planned)).is_empty
    assert not asyncio.run(service.compare(start, asyncio.run(service.list_for_run(other.id))[0].id)).same_run
