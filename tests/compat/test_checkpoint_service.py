"""The awaitable interface: the same checkpoints, and beliefs that are held against what is so."""

import asyncio
import hashlib
import inspect
import json
from pathlib import Path

import msgspec
import pytest

import detent
from detent.compat.checkpoint_service import CheckpointService
from detent.compat.checkpoint_values import (
    AgentState,
    ArtifactInfo,
    CheckpointType,
    GateResult,
    GovernanceResults,
    OrchestratorState,
    TokenUsage,
)
from detent.core.session.phase_state import Tokens, ToolUse
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import Corrupt, NotFound, Refused
from tests.support.people import roles
from tests.support.project import build_project
from tests.support.values import diamond, row

PRE, POST = CheckpointType.PRE, CheckpointType.POST
PASSED = GovernanceResults(passed=True)


@pytest.fixture
def tmp_path(quick_path):
    """In memory: these tests sync a lot."""
    return quick_path


@pytest.fixture
def root(tmp_path):
    build_project(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    return tmp_path


@pytest.fixture
def project(root):
    with open_project(root, actor="tester") as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


@pytest.fixture
def session(project):
    return project.start(row("a", "b", "c"), "Try it")


@pytest.fixture
def service(project):
    return CheckpointService(project)


def now(session, **differently):
    """What is so."""
    state = session.state
    live = [key for key, phase in state.phases.items() if phase.status == "in_progress"]
    done = tuple(key for key, phase in state.phases.items() if phase.status == "completed")
    believed = OrchestratorState(run_id=session.id, current_phase=(live or done)[-1], completed_phases=done)
    return msgspec.structs.replace(believed, **differently)


def create(service, session, *, phase="a", kind=PRE, state=None, agents=None, artifacts=None, governance=PASSED):
    return asyncio.run(service.create(phase, kind, state or now(session), agents or {}, artifacts or {}, governance))


def info(path, data):
    return ArtifactInfo(path=path, hash=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


def test_it_is_there_for_those_who_import_detent():
    assert detent.CheckpointService is CheckpointService
    methods = {name: value for name, value in vars(CheckpointService).items() if not name.startswith("_")}
    assert list(methods) == ["create", "load", "rollback", "list_for_run", "compare"]
    assert all(inspect.iscoroutinefunction(method) for method in methods.values())
    assert list(inspect.signature(CheckpointService.create).parameters)[1:] == [
        "phase", "type", "state", "agent_states", "artifacts", "governance",
    ]  # fmt: skip


def test_a_created_checkpoint_is_one_of_the_present(service, session, root, project):
    (root / "b.txt").write_text("two\n")

    made = create(service, session, artifacts={"b": info("b.txt", b"two\n")})

    position = session.checkpoints.all()[-1]
    assert (made.id, made.phase, made.type, made.version) == (position.event.id, "a", PRE, 1)
    assert made.metadata["outcome"] == "note"
    assert made.orchestrator_state.run_id == session.id
    assert msgspec.structs.replace(made, not_stored=()) == asyncio.run(service.load(made.id))
    assert "b.txt" in project.checkpoints.files(made.tree.manifest)


@pytest.mark.parametrize(
    ("differently", "told"),
    [
        ({"phase": "b"}, "the present belongs to a, not to b"),
        ({"state": {"current_phase": "b"}}, "current_phase is a, not b"),
        ({"state": {"completed_phases": ("a",)}}, r"completed_phases is \[\], not \[a\]"),
        ({"state": {"intake_summary": {"task": "Other"}}}, "intake_summary.task is 'Try it', not 'Other'"),
        ({"governance": GovernanceResults(passed=False)}, "governance passed is True, not False"),
        ({"agents": {"x@a": AgentState(status="running")}}, "no agent x@a was started; there are a-agent@a"),
        ({"agents": {"a-agent@a": AgentState(status="complete")}}, "agent a-agent@a is running, not complete"),
        ({"artifacts": {"n": info("nowhere", b"")}}, "artifact n: nowhere is not among the captured files"),
        ({"artifacts": {"n": info("a.txt", b"else")}}, "artifact n: a.txt has SHA-256 .*, not "),
        ({"artifacts": {"n": msgspec.structs.replace(info("a.txt", b"one\n"), size_bytes=9)}}, "has 4 bytes, not 9"),
    ],
)
def test_what_the_caller_believes_must_be_so(service, session, differently, told):
    if "state" in differently:
        differently = differently | {"state": now(session, **differently["state"])}
    before = session.state.version

    with pytest.raises(Refused, match=told):
        create(service, session, **differently)

    assert session.state.version == before


def test_every_difference_is_named_at_once(service, session):
    with pytest.raises(Refused) as refusal:
        create(service, session, state=now(session, current_phase="c"), governance=GovernanceResults(passed=False))

    assert "current_phase is a, not c; governance passed is True, not False" in refusal.value.message


def test_the_run_must_be_a_session(service, session):
    with pytest.raises(NotFound):
        create(service, session, state=now(session, run_id="WFS-nobody"))


def test_a_gate_must_stand_as_the_caller_says(root, service, project):
    (root / "detent.toml").write_text(
        '[[workflows.gated.phases]]\nkey = "a"\ngates = [{ kind = "consensus", approvers = ["x", "y"], quorum = 2 }]\n'
        + roles(x="somebody", y="another")
    )
    with open_project(root, actor="tester") as strict:
        session = strict.start("gated", "Agree")
        believed = GovernanceResults(
            quality_gates=(GateResult(gate="consensus", verdict="PASS"),),
            passed=True,
        )
        with pytest.raises(Refused, match="gate consensus is PENDING, not PASS"):
            create(CheckpointService(strict), session, governance=believed)
        made = create(CheckpointService(strict), session, governance=GovernanceResults(passed=False))

    assert [(gate.gate, gate.verdict) for gate in made.governance_results.quality_gates] == [("consensus", "PENDING")]
    assert made.governance_results.passed is False


def test_what_a_running_agent_used_is_kept_as_the_note(service, session):
    used = AgentState(
        status="running",
        token_usage=TokenUsage(input=120, output=30),
        tool_invocations=(ToolUse(tool="Bash"), ToolUse(tool="Edit"), ToolUse(tool="Bash")),
    )

    made = create(service, session, agents={"a-agent@a": used})

    assert made.metadata["note"] == "a-agent@a: 120 input and 30 output tokens and 3 tools (Bash, Edit)"


def test_of_an_agent_that_ended_the_journal_knows_better(service, session):
    session.finish("done", tokens=Tokens(input=7, output=8))
    session.begin("b")
    so = AgentState(status="complete", token_usage=TokenUsage(input=7, output=8))

    with pytest.raises(Refused, match="agent a-agent@a used 7 input and 8 output tokens and 0 tools, not 0 input"):
        create(service, session, phase="b", agents={"a-agent@a": AgentState(status="complete")})
    made = create(service, session, phase="b", agents={"a-agent@a": so})

    assert made.agent_states["a-agent@a"].token_usage == TokenUsage(input=7, output=8)


def test_a_post_is_the_one_that_the_end_of_the_phase_made(service, session, root):
    (root / "plan.md").write_text("plan")
    with pytest.raises(Refused, match="a is in_progress, and only a phase that has ended has a POST"):
        create(service, session, kind=POST)
    session.finish("done", artifacts=["plan.md"])
    count = len(session.checkpoints.all())

    made = create(service, session, kind=POST, artifacts={"plan": info("plan.md", b"plan")})

    assert (made.metadata["name"], made.metadata["outcome"]) == ("POST_a_v1", "success")
    assert made.artifacts == {"plan.md": info("plan.md", b"plan")}
    assert len(session.checkpoints.all()) == count
    (root / "plan.md").write_text("another")
    with pytest.raises(Refused, match="files have changed since POST_a_v1 was taken"):
        create(service, session, kind=POST)


def test_loading_notices_a_changed_artifact(service, session, root, project):
    (root / "plan.md").write_text("the plan that counts")
    session.finish("done", artifacts=["plan.md"])
    project.flush()
    post = session.checkpoints.all()[-1].event
    assert asyncio.run(service.load(post.id)).artifacts["plan.md"].size_bytes == 20
    [plain] = Path(project.checkpoints.objects.root).glob("*/*/plan.md")
    whole = plain.read_bytes()
    plain.chmod(0o644)
    plain.write_bytes(b"another plan altogethe")

    with pytest.raises(Corrupt, match=r"plan\.md of POST_a_v1 cannot be restored"):
        asyncio.run(service.load(post.id))
    plain.write_bytes(whole)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text["artifacts"]["plan.md"].update(hash="0" * 64), r"artifact plan\.md"),
        (lambda text: text["orchestrator_state"].update(completed_phases=["a", "b"]), "orchestrator_state"),
        (lambda text: text.update(version="seven"), "is no checkpoint"),
        (lambda text: text.pop("governance_results"), "is no checkpoint"),
        (lambda text: text.update(extra=1), "extra"),
    ],
)
def test_loading_notices_a_changed_document(service, session, root, project, change, told):
    (root / "plan.md").write_text("plan")
    session.finish("done", artifacts=["plan.md"])
    project.flush()
    path = root / f".workflow/checkpoints/run-{session.id}/POST_a_v1.json"
    whole = path.read_bytes()
    text = json.loads(whole)
    change(text)
    path.write_text(json.dumps(text))

    with pytest.raises(Corrupt, match=told):
        asyncio.run(service.load(session.checkpoints.all()[-1].event.id))
    path.write_bytes(b"\xff")
    with pytest.raises(Corrupt, match="is no checkpoint"):
        asyncio.run(service.load(session.checkpoints.all()[-1].event.id))
    path.write_bytes(whole)


def test_a_document_that_is_not_there_yet_is_written(service, session):
    taken = session.checkpoints.take("just now")

    assert asyncio.run(service.load(taken.id)).metadata["note"] == "just now"
    with pytest.raises(NotFound, match="no session has a checkpoint"):
        asyncio.run(service.load("00000000-0000-0000-0000-000000000000"))


def test_a_rollback_returns_nothing_and_restores_all(service, session, root, project):
    session.finish("done")
    target = session.checkpoints.all()[-1].event.id
    session.begin("b")
    (root / "a.txt").write_text("two\n")
    session.finish("built")

    assert asyncio.run(service.rollback(target)) is None

    assert (root / "a.txt").read_text() == "one\n"
    assert session.state.phases["b"].status == "pending"
    last = asyncio.run(service.list_for_run(session.id))[-1]
    assert (last.name, last.outcome, last.parent_checkpoint_id) == ("PRE_a_v2", "rollback", target)


def test_a_list_is_of_one_run_and_in_order(service, session, project):
    session.finish("done")
    other = project.start(row("x"), "Other")

    mine, others = (asyncio.run(service.list_for_run(name)) for name in (session.id, other.id))

    assert [(one.name, one.outcome) for one in mine] == [("PRE_a_v1", "started"), ("POST_a_v1", "success")]
    assert [one.run_id for one in others] == [other.id]
    assert [one.created_at for one in mine] == sorted(one.created_at for one in mine)


def test_comparing_tells_what_changed_and_whether_it_is_one_run(service, session, root, project):
    (root / "b.txt").write_text("b")
    session.finish("done", tokens=Tokens(input=5))
    first, last = (session.checkpoints.all()[at].event.id for at in (0, -1))
    other = project.start(row("x"), "Other").checkpoints.all()[0].event.id

    diff = asyncio.run(service.compare(first, last))
    across = asyncio.run(service.compare(last, other))

    assert (diff.added, diff.newly_completed, diff.same_run) == (("b.txt",), ("a",), True)
    assert [(one.agent, one.after, one.input_tokens) for one in diff.agents] == [("a-agent@a", "complete", 5)]
    assert asyncio.run(service.compare(first, first)).is_empty
    assert (across.same_run, across.no_longer_completed) == (False, ("a",))


def test_many_tasks_may_use_one_service(service, project, root):
    session = project.start(diamond(), "All at once")

    async def work():
        state = now(session)
        creates = [service.create("a", PRE, state, {}, {}, PASSED) for _ in range(8)]
        lists = [service.list_for_run(session.id) for _ in range(8)]
        return await asyncio.gather(*(one for pair in zip(creates, lists, strict=True) for one in pair))

    done = asyncio.run(work())

    made, listed = done[::2], done[1::2]
    assert len({one.id for one in made}) == 8
    names = [one.id for one in asyncio.run(service.list_for_run(session.id))]
    assert {one.id for one in made} < set(names)
    assert all([one.id for one in some] == names[: len(some)] for some in listed)


def test_of_phases_beside_each_other_any_may_be_meant(service, project):
    session = project.start(diamond(), "Side by side")
    session.finish("split")
    session.begin("b")
    session.begin("c")
    state = OrchestratorState(run_id=session.id, current_phase="b", completed_phases=("a",))

    made = [create(service, session, phase=phase, state=state) for phase in ("b", "c")]

    assert [one.phase for one in made] == ["b", "c"]
    with pytest.raises(Refused, match="the present belongs to b, not to a"):
        create(service, session, phase="a", state=state)


def test_what_is_not_stored_is_told(service, session):
    session.record_agent_started("a", "helper", "h1")
    agents = {
        "a-agent@a": AgentState(
            status="running", token_usage=TokenUsage(input=5, output=2), summary="half way", tool_invocations=()
        ),
        "helper@a": AgentState(status="running", token_usage=TokenUsage(input=1, output=1)),
    }

    made = create(service, session, agents=agents, artifacts={"plan": info("a.txt", b"one\n")})

    assert made.not_stored == (
        "agent a-agent@a: its usage is in the note",
        "agent a-agent@a: its summary, which is recorded when its phase ends",
        "agent helper@a: it is kept as a delegation of its phase, without tokens, tools and summary",
        "artifact plan: a.txt is among the files, but no phase declares it as an artifact",
    )
    assert "a-agent@a: 5 input and 2 output tokens" in made.metadata["note"]
    [delegation] = made.agent_states["a-agent@a"].delegations
    assert delegation["agent"] == "helper"
    assert asyncio.run(service.load(made.id)).not_stored == ()


def test_a_sub_agent_must_stand_as_the_caller_says(service, session):
    session.record_agent_started("a", "helper", "h1")
    session.record_agent_ended("h1", succeeded=False)

    with pytest.raises(Refused, match="agent helper is failed, not complete"):
        create(service, session, agents={"helper": AgentState(status="complete")})
    with pytest.raises(Refused, match="no agent helper@b was started"):
        create(service, session, agents={"helper@b": AgentState(status="failed")})


def test_a_checkpoint_that_holds_everything_has_nothing_to_tell(service, session, root):
    session.finish("done", artifacts=["a.txt"])
    made = create(
        service,
        session,
        kind=POST,
        agents={"a-agent@a": AgentState(status="complete", summary="done")},
        artifacts={"a.txt": info("a.txt", b"one\n")},
    )

    assert made.not_stored == ()
