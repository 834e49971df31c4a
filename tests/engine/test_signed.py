"""Signed decisions: what passes, and every way in which a signature is used for something that was not signed."""

from itertools import product

import pytest
from msgspec.structs import replace

from detent.core.actor import Actor, ActorKind, Assurance, Channel, Proof
from detent.core.decision.approvers import SshKey
from detent.core.decision.statement import read_statement
from detent.core.gate.evidence import Verdict
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.gate.kinds.command import CommandGate
from detent.core.gate.kinds.consensus import ConsensusGate
from detent.core.gate.kinds.constitution import ConstitutionGate
from detent.core.gate.kinds.elicitation import ElicitationGate
from detent.core.session.events import Supervised
from detent.core.workflow.graph import Phase, Workflow
from detent.doctor.invariants import check
from detent.engine.project import open_project
from detent.errors import GateClosed, Refused
from tests.support.keys import ALONE, Authenticator, Device, list_approvers, make_ssh_key, ssh_signer
from tests.support.people import ME
from tests.support.project import build_project

GATES = {assurance: ApprovalGate(name=assurance, assurance=assurance) for assurance in Assurance}


def flow(*gates):
    return Workflow(
        name="held",
        phases=(Phase(key="build", gates=gates), Phase(key="end", needs=("build",))),
    )


class Signers:
    """The keys of three approvers: in a file, in a device, and in a WebAuthn authenticator."""

    def __init__(self, directory):
        make_ssh_key(directory / "ada")
        self.ada = ssh_signer(directory / "ada")
        self.bob, self.cem = Device(), Authenticator()


@pytest.fixture
def keys(tmp_path_factory):
    return Signers(tmp_path_factory.mktemp("keys"))


@pytest.fixture
def project(tmp_path, clock, keys):
    build_project(tmp_path, "", files={"a.txt": "one\n"}, constitution=True)
    list_approvers(tmp_path, ada=ssh_key_of(keys.ada), bob=keys.bob.key, cem=keys.cem.key)
    with open_project(tmp_path, actor="tester", clock=clock) as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


def ssh_key_of(signer):
    return SshKey(key=signer.key)


def approve(session, **settings):
    return session.approve("looked at it", **settings)


def signed_for(session, signer, decide=approve, approver="ada"):
    """The proof of a decision that is not made yet."""
    return signer.sign(session.statement(decide, approver=approver))


def last(session):
    return list(session.log())[-1].actor


SIGNERS = {Assurance.ATTENDED: None, Assurance.SIGNED: "ada", Assurance.HARDWARE: "bob"}


@pytest.mark.parametrize(("needed", "given"), list(product(Assurance, Assurance)))
def test_a_vote_counts_if_it_is_strong_enough(project, keys, needed, given):
    name = SIGNERS[given]
    project.signer = getattr(keys, name) if name else None
    session = project.start(flow(GATES[needed]), "try it")

    if given.reaches(needed):
        approve(session)
        assert (last(session).identity, last(session).proof.assurance) == (name or ME, given)
        [judged] = session.gates.judgements()["build"]
        assert judged.verdict is Verdict.PASS
        assert (f"({given})" in judged.reason) == (given is not Assurance.ATTENDED)
    else:
        with pytest.raises(Refused, match=f"approve needs the assurance {needed}, and this request has {given}"):
            approve(session)
        assert session.state.version == 1


@pytest.mark.parametrize(
    "gate", [GATES["signed"], CommandGate(name="checks", command="false")], ids=["vote", "by hand"]
)
def test_an_approval_is_for_the_files_that_were_signed_until_it_is_given_again(project, keys, tmp_path, gate):
    project.signer = keys.ada
    session = project.start(flow(gate), "try it")
    approve(session, gate=gate.name)
    (tmp_path / "a.txt").write_text("two\n")

    [judged] = session.gates.judgements()["build"]

    assert (judged.verdict, "they have changed since" in judged.reason) == (Verdict.STALE, True)
    with pytest.raises(GateClosed):
        session.finish("done")
    approve(session, gate=gate.name)
    session.finish("done")


def test_the_proof_stands_in_the_commit(project, keys):
    session = project.start(flow(GATES["hardware"]), "try it")
    before = project.journal(session.id).end
    project.signer = keys.cem

    approve(project.session())

    actor = last(session)
    statement = read_statement(actor.proof.statement)
    assert (actor.name, actor.kind, actor.proof.method, actor.proof.key) == (
        "cem",
        ActorKind.PERSON,
        "webauthn",
        keys.cem.key.id,
    )
    assert (statement.session, statement.phase, statement.gate, statement.attempt) == (
        session.id,
        "build",
        "hardware",
        1,
    )
    assert (statement.decision, statement.reason, statement.tree) == ("approve", "looked at it", project.files().digest)
    assert (statement.version, statement.sum) == (before.version, before.sum)


# What was not signed


def elsewhere(project):
    return project.start(flow(GATES["signed"]), "something else")


#: A use of the signature that was made for `approve` at the gate `signed` of the session.
MISUSES = {
    "another gate": (
        lambda session, proof, _: session.approve("looked at it", gate="hardware", proof=proof),
        "gate is",
    ),
    "a vote against": (
        lambda session, proof, _: approve(session, gate="signed", approve=False, proof=proof),
        "decision is",
    ),
    "another reason": (lambda session, proof, _: session.approve("all fine", gate="signed", proof=proof), "reason is"),
    "the place of another": (
        lambda session, proof, _: approve(session, gate="signed", stands_for="bob", proof=proof),
        "stands_for is",
    ),
    "another decision": (lambda session, proof, _: session.with_proof(proof).skip("build", reason="no"), "decision is"),
    "another session": (lambda _, proof, project: approve(elsewhere(project), proof=proof), "session is"),
}


@pytest.mark.parametrize("misuse", MISUSES)
def test_a_signature_counts_for_nothing_else(project, keys, misuse):
    use, reason = MISUSES[misuse]
    session = project.start(flow(GATES["signed"], GATES["hardware"]), "try it")
    proof = signed_for(session, keys.bob, lambda session: approve(session, gate="signed"), "bob")

    with pytest.raises(Refused, match=f"was signed for something else: .*{reason}"):
        use(session, proof, project)
    session.approve("looked at it", gate="signed", proof=proof)
    assert session.state.phases["build"].gates["signed"].votes["bob"].key == keys.bob.key.id


def test_a_signature_is_about_the_files_that_were_shown(project, keys, tmp_path):
    session = project.start(flow(GATES["signed"]), "try it")
    proof = signed_for(session, keys.ada)
    shown = project.files()
    (tmp_path / "a.txt").write_text("two\n")

    with pytest.raises(Refused, match="the files are not those that were shown"):
        approve(session, proof=proof)
    assert shown.changed(project.files()) == ["a.txt"]
    (tmp_path / "a.txt").write_text("one\n")
    approve(session, proof=proof)


def test_a_signature_counts_once(project, keys):
    session = project.start(flow(GATES["signed"]), "try it")
    proof = signed_for(session, keys.ada)
    approve(session, proof=proof)
    against = signed_for(session, keys.ada, lambda session: approve(session, approve=False))
    approve(session, approve=False, proof=against)

    with pytest.raises(Refused, match="was used for a decision before"):
        approve(session, proof=proof)
    assert not session.state.phases["build"].gates["signed"].votes["ada"].approve


def test_a_signature_of_an_earlier_attempt_does_not_count(project, keys):
    session = project.start(flow(GATES["signed"]), "try it")
    proof = signed_for(session, keys.ada)
    session.fail("no")
    session.redo("build")

    with pytest.raises(Refused, match="attempt is 1, not 2"):
        approve(session, proof=proof)
    statement = replace(read_statement(proof.statement), attempt=2)
    with pytest.raises(Refused, match="before the attempt began"):
        approve(session, proof=keys.ada.sign(statement))


@pytest.mark.parametrize("change", [{"sum": "0" * 32}, {"version": 99}, {"version": 1}])
def test_a_signature_is_about_a_position_of_this_journal(project, keys, change):
    session = project.start(flow(GATES["signed"]), "try it")
    session.ask("why?")
    statement = read_statement(signed_for(session, keys.ada).statement)
    assert statement.version == 2

    with pytest.raises(Refused, match="of another journal"):
        approve(session, proof=keys.ada.sign(replace(statement, **change)))


def test_work_may_go_on_while_a_person_signs(project, keys):
    session = project.start(flow(GATES["signed"]), "try it")
    proof = signed_for(session, keys.ada)
    session.ask("may I?")

    approve(session, proof=proof)


def test_an_unknown_key_and_an_untouched_one_do_not_count(project, keys, tmp_path_factory):
    session = project.start(flow(GATES["signed"]), "try it")
    mallory = ssh_signer(tmp_path_factory.mktemp("other") / "mallory")

    with pytest.raises(Refused, match="belongs to no approver"):
        approve(session, proof=signed_for(session, mallory))
    keys.bob._flags = ALONE
    with pytest.raises(Refused, match="was not touched"):
        approve(session, proof=signed_for(session, keys.bob, approver="bob"))
    assert session.state.version == 1


def test_a_proof_without_a_signature_is_not_more_than_attended(project):
    """Whatever a page or a caller of the library says about itself."""
    project.start(flow(GATES["hardware"]), "try it")
    claim = Proof(assurance=Assurance.HARDWARE, method="webauthn", key="abc", identity="ada")

    for channel in (Channel.PAGE, Channel.LIBRARY, Channel.TERMINAL):
        actor = Actor(name="ada", kind=ActorKind.PERSON, channel=channel, proof=claim)
        with pytest.raises(Refused, match="needs the assurance hardware, and this request has attended"):
            approve(project.session(actor=actor))


# Who signs


@pytest.mark.parametrize("signer", ["ada", "bob"])
@pytest.mark.parametrize(("kind", "channel"), list(product(ActorKind, Channel)))
def test_a_key_that_is_touched_proves_a_person_anywhere(project, keys, kind, channel, signer):
    """An agent may use the key of a file by itself, and a run or a client decides nothing."""
    session = project.start(flow(GATES["signed"]), "try it")
    proof = signed_for(session, getattr(keys, signer), approver=signer)
    project.actor = Actor(name="x", kind=kind, channel=channel)
    may = channel in (Channel.TERMINAL, Channel.PAGE, Channel.LIBRARY) and (
        kind is ActorKind.PERSON or (kind is ActorKind.AGENT and signer == "bob")
    )

    if may:
        approve(project.session(), proof=proof)
        assert (last(session).name, last(session).kind) == (signer, ActorKind.PERSON)
    else:
        with pytest.raises(Refused, match="approve is a person's decision"):
            approve(project.session(), proof=proof)
        assert session.state.version == 1


# Every decision of a session

STRICT = '[decisions]\nassurance = "signed"\n'
HELD = (ApprovalGate(), ElicitationGate(), CommandGate(command="false"), ConstitutionGate(articles=("I",)))
DECISIONS = {
    "approve": lambda session: session.approve("fine", gate="approval"),
    "override": lambda session: session.approve("fine", gate="command"),
    "release": lambda session: session.release("open up"),
    "resolve": lambda session: session.resolve("retry", "again"),
    "resolve skip": lambda session: session.resolve("skip", "again"),
    "resolve cancel": lambda session: session.resolve("cancel", "again"),
    "reply": lambda session: session.reply("left"),
    "gate answer": lambda session: session.answer(choice="save"),
    "gate set": lambda session: session.gates.set_command("command", "true", "it is gone"),
    "gate report": lambda session: session.gates.report("constitution", compliant=True),
    "skip": lambda session: session.skip("end", reason="no"),
    "skip two": lambda session: session.skip("build", "end", reason="no"),
    "cancel": lambda session: session.cancel("no"),
    "complete --force": lambda session: session.complete(force=True),
    "rollback": lambda session: session.checkpoints.rollback("PRE_build_v1"),
    "review": lambda session: session.review("continue"),
}


@pytest.mark.parametrize("decision", DECISIONS)
def test_every_decision_of_a_session_can_be_signed_and_must_be(tmp_path, clock, keys, decision):
    build_project(tmp_path, STRICT, files={"a.txt": "one\n"}, constitution=True, agent=True)
    list_approvers(tmp_path, ada=ssh_key_of(keys.ada))
    with open_project(tmp_path, actor="tester", clock=clock) as project:
        if decision == "review":
            project.settings = replace(project.settings, supervised=Supervised())
            project.start(Workflow(name="w", phases=(Phase(key="a"), Phase(key="b", needs=("a",)))), "try").finish("ok")
        else:
            session = project.start(flow(*HELD), "try it")
            session.ask("left or right?")
            session.escalate("stuck", "build", "it does not get on")
        session = project.session()
        version = session.state.version
        with pytest.raises(Refused, match="needs the assurance signed, and this request has attended"):
            DECISIONS[decision](session)
        assert session.state.version == version

        project.signer = keys.ada
        DECISIONS[decision](project.session())

        assert session.state.version > version
        assert (last(session).name, last(session).proof.assurance) == ("ada", Assurance.SIGNED)
        project.flush()
        assert check(project) == []


def test_a_strong_gate_is_not_left_out_with_less(project, keys):
    """Skipping its phase or forcing the end would go around it."""
    session = project.start(flow(GATES["hardware"]), "try it")
    around = (
        lambda: session.skip("build", reason="no"),
        lambda: session.complete(force=True),
        lambda: session.release("no"),
        lambda: session.approve("no", gate="hardware"),
    )
    for way in around:
        with pytest.raises(Refused, match="needs the assurance hardware, and this request has attended"):
            way()
    session.skip("end", reason="not a gate of it")
    project.signer = keys.bob
    project.session().skip("build", reason="no")


# Votes


def test_one_person_cannot_cast_all_votes(project, keys):
    gate = ConsensusGate(approvers=("ada", "bob", "cem"), quorum=2, assurance=Assurance.SIGNED)
    session = project.start(flow(gate), "try it")
    approve(session, proof=signed_for(session, keys.ada))
    approve(session, proof=signed_for(session, keys.ada))
    [judged] = session.gates.judgements()["build"]
    assert judged.reason == "1 of 2 approvals; bob, cem may still vote"

    with pytest.raises(Refused, match="approve needs the assurance signed"):
        approve(session, stands_for="cem")
    approve(session, proof=signed_for(session, keys.bob, approver="bob"))
    [judged] = session.gates.judgements()["build"]
    assert (judged.verdict, judged.reason) == (Verdict.PASS, "approved by ada (signed), bob (hardware)")


def test_the_vote_of_an_account_and_a_signed_one_may_be_one_person_s(project, keys):
    gate = ConsensusGate(approvers=(ME, "ada", "bob"), quorum=2)
    session = project.start(flow(gate), "try it")
    approve(session)
    approve(session, proof=signed_for(session, keys.ada))

    [judged] = session.gates.judgements()["build"]
    assert judged.verdict is Verdict.PENDING
    assert judged.reason.startswith("1 of 2 approvals")


def test_a_session_that_nobody_could_sign_for_is_refused_at_the_start(tmp_path, clock, keys):
    build_project(tmp_path, "")
    list_approvers(tmp_path, ada=ssh_key_of(keys.ada))
    with open_project(tmp_path, actor="tester", clock=clock) as project:
        with pytest.raises(
            Refused, match=r"its votes must be hardware, and approvers\.toml lists no approver with such a key"
        ):
            project.start(flow(GATES["hardware"]), "try it")
        project.start(flow(GATES["signed"]), "try it")


def test_roles_of_approvers_fill_the_seats_of_a_gate(tmp_path, clock, keys):
    build_project(tmp_path, "")
    list_approvers(tmp_path, ada=ssh_key_of(keys.ada), bob=keys.bob.key)
    text = (tmp_path / "approvers.toml").read_text()
    (tmp_path / "approvers.toml").write_text(text.replace('name = "ada"', 'name = "ada"\nroles = ["architect"]'))
    gate = ApprovalGate(approvers=("architect",), assurance=Assurance.SIGNED)
    with open_project(tmp_path, actor="tester", clock=clock) as project:
        session = project.start(flow(gate), "try it")
        project.signer = keys.bob
        with pytest.raises(Refused, match="bob is not an approver of approval; architect \\(ada\\) are"):
            approve(project.session())
        project.signer = keys.ada
        approve(project.session())
        assert session.state.phases["build"].gates["approval"].votes["ada"].approve


def test_the_files_of_detent_are_no_part_of_what_is_signed(project, keys, tmp_path):
    before = project.files().digest
    (tmp_path / "detent.toml").write_text("# changed\n")
    (tmp_path / "approvers.toml").write_text("# changed\n")
    project.start(flow(), "try it")

    assert project.files().digest == before
    (tmp_path / "new.txt").write_text("new\n")
    assert project.files().digest != before
