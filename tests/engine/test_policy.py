"""Who may decide: every decision x every actor x every channel, asked of the engine and not of a surface."""

from itertools import product

import msgspec
import pytest

from detent.core.actor import Actor, ActorKind, Assurance, Channel, Proof
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.session.events import Supervised, VoteCast
from detent.core.workflow.graph import Phase, Workflow
from detent.engine.policy import ASSURANCE, MAY_DECIDE, RULES, Decision, authorize
from detent.engine.project import open_project
from detent.errors import Refused
from tests.support.project import build_project


def made(kind, channel):
    """An actor with the proof that its channel needs."""
    proof = Proof(assurance=Assurance.ATTENDED, method="page") if channel is Channel.PAGE else None
    return Actor(name=f"{kind}-{channel}", kind=kind, channel=channel, proof=proof)


ACTORS = [made(kind, channel) for kind, channel in product(ActorKind, Channel)]
ALLOWED = {
    (ActorKind.PERSON, Channel.TERMINAL),
    (ActorKind.PERSON, Channel.PAGE),
    (ActorKind.PERSON, Channel.LIBRARY),
}
WORKFLOW = Workflow(
    name="held",
    phases=(
        Phase(key="plan"),
        Phase(key="build", needs=("plan",), gates=(ApprovalGate(), ElicitationGate(), CommandGate(command="false"))),
        Phase(key="end", needs=("build",)),
    ),
)


@pytest.fixture
def place(tmp_path):
    return build_project(tmp_path, "", agent=True)


def _held(project):
    """A session in which something of every kind waits for a person."""
    session = project.start(WORKFLOW, "try it")
    session.finish("planned")
    session.begin("build")
    session.ask("left or right?")
    session.escalate("stuck", "build", "it does not get on")
    return session


#: How a surface would ask for the decision.
ASK = {
    "release": lambda session: session.release("open up"),
    Decision.APPROVE: lambda session: session.approve("fine", gate="approval"),
    Decision.RESOLVE: lambda session: session.resolve("retry", "again"),
    Decision.REPLY: lambda session: session.reply("left"),
    Decision.ANSWER: lambda session: session.answer(choice="save"),
    Decision.SKIP: lambda session: session.skip("end", reason="no"),
    Decision.CANCEL: lambda session: session.cancel("no"),
    Decision.FORCE: lambda session: session.complete(force=True),
    Decision.ROLLBACK: lambda session: session.checkpoints.rollback("PRE_plan_v1"),
}


def test_the_table_is_complete():
    assert sorted(rule.decision for rule in RULES) == sorted(Decision)
    assert set(ASSURANCE) == set(Decision)
    assert MAY_DECIDE == ALLOWED


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
@pytest.mark.parametrize("decision", Decision, ids=lambda decision: decision.name)
def test_only_a_person_decides_and_not_through_a_client(decision, actor):
    if (actor.kind, actor.channel) in ALLOWED:
        authorize(actor, decision)
    else:
        with pytest.raises(Refused, match="is a person's decision"):
            authorize(actor, decision)


@pytest.mark.parametrize("decision", Decision, ids=lambda decision: decision.name)
def test_a_page_that_proves_nothing_decides_nothing(decision):
    with pytest.raises(Refused, match="needs the assurance attended, and this request has none"):
        authorize(Actor(name="ada", kind=ActorKind.PERSON, channel=Channel.PAGE), decision)


def test_a_weaker_proof_than_the_decision_needs_is_refused(monkeypatch):
    monkeypatch.setitem(ASSURANCE, Decision.APPROVE, Assurance.SIGNED)
    signed = Proof(assurance=Assurance.HARDWARE, method="webauthn")

    with pytest.raises(Refused, match="needs the assurance signed"):
        authorize(made(ActorKind.PERSON, Channel.TERMINAL), Decision.APPROVE)
    authorize(msgspec.structs.replace(made(ActorKind.PERSON, Channel.PAGE), proof=signed), Decision.APPROVE)


@pytest.mark.parametrize("decision", ASK)
def test_the_engine_refuses_whatever_the_surface_is(place, clock, decision):
    """An actor that may not decide is refused and changes nothing; one that may decides, in a session of its own."""
    ada = Actor(name="ada", kind=ActorKind.PERSON, channel=Channel.TERMINAL)
    with open_project(place, actor=ada, clock=clock) as project:
        held = _held(project)
        version = held.state.version
        for actor in ACTORS:
            session = project.session(actor=actor)
            project.actor = actor
            if (actor.kind, actor.channel) not in ALLOWED:
                with pytest.raises(Refused, match="is a person's decision"):
                    ASK[decision](session)
                assert session.state.version == version
        for kind, channel in sorted(ALLOWED):
            project.actor = made(kind, channel)
            session = _held(project)
            version = session.state.version
            ASK[decision](session)
            assert session.state.version > version
            assert list(session.log())[-1].actor == project.actor


AGENT = Actor(name="bot", kind=ActorKind.AGENT, channel=Channel.LIBRARY)


def test_an_agent_neither_reviews_nor_imports(place, clock):
    with open_project(place, actor="ada", clock=clock) as project:
        project.settings = msgspec.structs.replace(project.settings, supervised=Supervised())
        project.start(WORKFLOW, "try it").finish("planned")
        project.flush()
    state = msgspec.json.decode((place / ".workflow" / "state.json").read_bytes())

    with open_project(place, actor=AGENT, clock=clock) as project:
        with pytest.raises(Refused, match="review is a person's decision"):
            project.session().review("continue")
        with pytest.raises(Refused, match="import is a person's decision"):
            project.import_state(state, source="state.json")


def test_a_name_does_not_make_a_person(place, monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")

    with open_project(place, actor="ada") as project:
        session = _held(project)
        with pytest.raises(Refused, match="CLAUDECODE is set"):
            session.approve("fine", gate="approval", who="ada")
        assert list(session.log())[-1].actor.kind is ActorKind.AGENT


def test_work_is_open_to_everybody(place, clock):
    for number, actor in enumerate(ACTORS):
        with open_project(place, actor=actor, clock=clock) as project:
            session = project.start(Workflow(name="free", phases=(Phase(key="a"),)), f"task {number}")
            session.tasks.add("one")
            session.checkpoints.take("here")
            assert session.state.version > 1


def test_an_event_is_refused_whatever_command_led_to_it(place, clock):
    """A surface that commits events by itself meets the same rule."""
    with open_project(place, actor="ada", clock=clock) as project:
        journal = project.journal(_held(project).id)
        vote = VoteCast(phase="build", gate="approval", approver="ada", approve=True)
        with pytest.raises(Refused, match="approve is a person's decision"):
            journal.commit(lambda _: (vote,), actor=AGENT, now=clock())
