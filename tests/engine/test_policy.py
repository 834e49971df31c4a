"""Who may decide: every decision x every actor x every channel, asked of the engine and not of a surface.

The tests have a terminal of their own, so that a person may decide here at all.
"""

from itertools import product

import msgspec
import pytest

from detent.core.actor import Actor, ActorKind, Assurance, Channel, Proof
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.run.choices import RunChoices
from detent.core.session.events import Supervised, VoteCast
from detent.core.workflow.graph import Phase, Workflow
from detent.doctor.invariants import check, fix
from detent.doctor.mending import mend
from detent.engine.policy import (
    MAY_DECIDE,
    MAY_SIGN,
    RULES,
    Decision,
    authorize,
    authorize_or_sign,
    check_signer,
)
from detent.engine.project import open_project
from detent.errors import Refused
from tests.support.people import ME
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
GATES = (ApprovalGate(), ElicitationGate(), CommandGate(command="false"), ConstitutionGate(articles=("I",)))
FREE = Workflow(name="free", phases=(Phase(key="a"),))
WORKFLOW = Workflow(
    name="held",
    phases=(
        Phase(key="plan"),
        Phase(key="build", needs=("plan",), gates=GATES),
        Phase(key="end", needs=("build",)),
    ),
)


@pytest.fixture
def place(tmp_path):
    return build_project(tmp_path, "", agent=True, constitution=True)


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
    Decision.REPORT: lambda session: session.gates.report("constitution", compliant=True),
}
#: How a surface would ask for a decision that is not about one session.
ASK_PROJECT = {
    Decision.PAUSE: lambda project: project.sessions.pause("lunch"),
    Decision.SWITCH: lambda project: project.sessions.switch("WFS-first"),
    Decision.REPLACE: lambda project: project.start(FREE, "something else"),
    Decision.ARCHIVE: lambda project: project.sessions.archive("WFS-ended"),
    Decision.REOPEN: lambda project: project.sessions.reopen("WFS-ended"),
    Decision.FIX: fix,
    Decision.MEND: lambda project: mend(project, "WFS-first"),
    Decision.COLLECT: lambda project: project.collect_garbage(dry_run=False),
}
#: Decisions that other tests ask for: of imports, reviews and steps, of a surface, at the start of a session, about
#: the tests of a session (tests/engine/gates/test_baseline.py), and about the approvers (test_approvers.py).
ELSEWHERE = {
    *(
        Decision.IMPORT,
        Decision.REVIEW,
        Decision.STEP,
        Decision.UNINSTALL,
        Decision.QUORUM,
        Decision.FORGET,
        Decision.STORE,
    ),
    *(Decision.INTO, Decision.MEND, Decision.LIST, Decision.UNLIST, Decision.LIMITS),
    *(Decision.ACCEPT, Decision.COMMAND, Decision.BASELINE),
}


def test_the_table_is_complete():
    assert sorted(rule.decision for rule in RULES) == sorted(Decision)
    assert MAY_DECIDE == ALLOWED
    assert {Channel.TERMINAL, Channel.PAGE, Channel.LIBRARY} == MAY_SIGN
    assert {*ASK, *ASK_PROJECT, *ELSEWHERE} - {"release"} == set(Decision)


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


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
@pytest.mark.parametrize("decision", Decision, ids=lambda decision: decision.name)
@pytest.mark.parametrize("assurance", Assurance)
def test_a_signature_takes_the_place_of_the_terminal(decision, actor, assurance):
    """A key that signs by itself proves a person where no agent is; one that is touched, in an agent's shell too."""
    is_signed = assurance is not Assurance.ATTENDED
    may = {
        Assurance.ATTENDED: (actor.kind, actor.channel) in ALLOWED,
        Assurance.SIGNED: actor.kind is ActorKind.PERSON and actor.channel in MAY_SIGN,
        Assurance.HARDWARE: actor.kind is not ActorKind.RUNNER and actor.channel in MAY_SIGN,
    }[assurance]

    def decide():
        authorize_or_sign(actor, decision, is_signed=is_signed)
        if is_signed:
            check_signer(actor, decision, assurance)

    if may:
        decide()
    else:
        with pytest.raises(Refused, match="is a person's decision"):
            decide()


def test_a_page_cannot_claim_more_than_it_shows():
    claim = Proof(assurance=Assurance.HARDWARE, method="webauthn")
    page = msgspec.structs.replace(made(ActorKind.PERSON, Channel.PAGE), proof=claim)

    proof = authorize(page, Decision.APPROVE).proof
    assert proof is not None
    assert proof.assurance is Assurance.ATTENDED


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
            last = list(session.log())[-1].actor
            assert (last.name, last.kind, last.channel) == (project.actor.name, kind, channel)
            assert (last.proof.assurance, last.proof.identity) == (Assurance.ATTENDED, ME)


@pytest.mark.parametrize("decision", ASK_PROJECT)
@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
def test_only_a_person_leaves_the_gates_of_a_session(place, clock, decision, actor):
    with open_project(place, actor="ada", clock=clock) as project:
        project.start(FREE, "ended", name="WFS-ended").finish("done")
        project.start(FREE, "first", name="WFS-first")
        second = project.start(FREE, "second", name="WFS-second")
        project.actor = actor
        if (actor.kind, actor.channel) in ALLOWED:
            ASK_PROJECT[decision](project)
            return
        with pytest.raises(Refused, match=f"{decision} is a person's decision"):
            ASK_PROJECT[decision](project)
        assert project.active() == second.id
        assert [entry.status for entry in project.sessions.sessions()] == ["active", "paused", "completed"]


@pytest.mark.parametrize("actor", ACTORS, ids=lambda actor: actor.name)
def test_whoever_starts_a_session_beside_no_other_one_may(place, clock, actor):
    """An agent works: it starts, does its phases again, and says what does not comply."""
    with open_project(place, actor=actor, clock=clock) as project:
        session = project.start(WORKFLOW, "try it")
        session.finish("planned")
        session.redo("plan", reason="once more")
        session.finish("planned again")
        session.begin("build")
        session.gates.report("constitution", compliant=False, note="article I")
        assert project.collect_garbage(dry_run=True).objects >= 0
        project.flush()
        assert check(project) == []


def test_an_agent_does_not_lower_the_quorum(place, clock):
    with open_project(place, actor=AGENT, clock=clock) as project:
        with pytest.raises(Refused, match="start --quorum is a person's decision"):
            project.start("webapp", "A shop", quorum=1)
        assert project.store.sessions() == []


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
            session.approve("fine", gate="approval", stands_for="ada")
        assert list(session.log())[-1].actor.kind is ActorKind.AGENT


def test_work_is_open_to_everybody(place, clock):
    for number, actor in enumerate(ACTORS):
        with open_project(place, actor=actor, clock=clock) as project:
            session = project.start(FREE, f"task {number}")
            session.tasks.add("one")
            session.checkpoints.take("here")
            session.tasks.remove("IMPL-1")
            session.finish("done")
            assert session.state.version > 1


def test_an_event_is_refused_whatever_command_led_to_it(place, clock):
    """A surface that commits events by itself meets the same rule."""
    with open_project(place, actor="ada", clock=clock) as project:
        journal = project.journal(_held(project).id)
        vote = VoteCast(phase="build", gate="approval", approver="somebody else", approve=True)
        with pytest.raises(Refused, match="approve is a person's decision"):
            journal.commit(lambda _: (vote,), actor=AGENT, now=clock())
        with pytest.raises(Refused, match=f"the vote of somebody else cannot be cast by {ME}"):
            journal.commit(lambda _: (vote,), actor=made(ActorKind.PERSON, Channel.TERMINAL), now=clock())


def test_a_damaged_journal_does_not_free_an_agent_from_its_session(place, clock):
    with open_project(place, actor="ada", clock=clock) as project:
        held = project.start(FREE, "first", name="WFS-first")
    with (place / ".workflow" / held.id / "journal.jsonl").open("ab") as file:
        file.write(b"no commit\n")

    with open_project(place, actor=AGENT, clock=clock) as project:
        with pytest.raises(Refused, match="is a person's decision"):
            project.start(FREE, "something else")
        assert project.store.sessions() == ["WFS-first"]


# Limits of a run

AGENTS = [actor for actor in ACTORS if actor.kind is ActorKind.AGENT]
LIMITS = [RunChoices(max_hours=8.5), RunChoices(max_turns=201), RunChoices(max_tasks=51)]


@pytest.mark.parametrize("actor", AGENTS, ids=lambda actor: actor.name)
@pytest.mark.parametrize("given", LIMITS, ids=str)
def test_an_agent_does_not_start_a_run_with_higher_limits(place, clock, actor, given):
    with open_project(place, actor=actor, clock=clock) as project:
        # As `detent run` does before it starts a session.
        project.settings = msgspec.structs.replace(
            project.settings, run=msgspec.structs.replace(project.settings.run, **given.overrides())
        )
        with pytest.raises(Refused, match="raising a limit of a run is a person's decision"):
            project.start(FREE, "try it", run=given)
        assert project.store.sessions() == []


@pytest.mark.parametrize("given", LIMITS, ids=str)
def test_an_agent_does_not_raise_the_recorded_limits_of_a_run(place, clock, given):
    lower = RunChoices(max_hours=1.0, max_turns=10, max_tasks=1)
    with open_project(place, actor=AGENTS[0], clock=clock) as project:
        session = project.start(FREE, "try it", run=lower)
        for higher in (given, RunChoices(max_turns=11)):
            with pytest.raises(Refused, match="raising a limit of a run is a person's decision"):
                session.set_run_options(higher)
        assert session.state.options.run == lower
        session.set_run_options(RunChoices(max_turns=9, parallel=2))


@pytest.mark.parametrize("actor", [actor for actor in ACTORS if actor.kind is not ActorKind.AGENT])
def test_a_person_and_ci_may_raise_them(place, clock, actor):
    with open_project(place, actor=actor, clock=clock) as project:
        session = project.start(FREE, "try it", run=RunChoices(max_hours=100.0))
        session.set_run_options(RunChoices(max_turns=1_000))

    assert session.state.options.run == RunChoices(max_hours=100.0, max_turns=1_000)
