"""Signed decisions are verified on another machine, by a list of approvers that the record cannot change."""

import msgspec
import pytest

from detent.core.actor import ActorKind, Assurance
from detent.core.decision.approvers import NOBODY, SshKey
from detent.core.decision.statement import read_statement
from detent.core.gate.kinds.approval import ApprovalGate
from detent.core.session.events import GateApproved, VoteCast
from detent.core.workflow.graph import Phase, Workflow
from detent.doctor import deciders
from detent.doctor.verification import Demands, verify_bundle, verify_session
from detent.engine.bundles.exporting import export_session
from detent.engine.bundles.importing import import_session
from detent.engine.project import open_project
from tests.support.keys import ALONE, Authenticator, Device, approvers, list_approvers, make_ssh_key, ssh_signer
from tests.support.project import build_project
from tests.support.records import add, alter, problems, tampered

HARDWARE = Assurance.HARDWARE
FLOW = Workflow(
    name="held",
    phases=(
        Phase(key="build", gates=(ApprovalGate(), ApprovalGate(name="second"))),
        Phase(key="end", needs=("build",)),
    ),
)


class Keys:
    """The keys of three approvers: in a file, in a device, and in a WebAuthn authenticator."""

    def __init__(self, directory):
        make_ssh_key(directory / "ada")
        self.ada = ssh_signer(directory / "ada")
        self.bob, self.cem = Device(), Authenticator()
        self.listed = {"ada": SshKey(key=self.ada.key), "bob": self.bob.key, "cem": self.cem.key}


@pytest.fixture
def tmp_path(quick_path):
    """In memory: these tests sync a lot."""
    return quick_path


@pytest.fixture
def keys(tmp_path):
    return Keys(tmp_path / "keys")


@pytest.fixture
def project(tmp_path, clock, keys):
    build_project(tmp_path / "project", "", files={"a.txt": "one\n"})
    list_approvers(tmp_path / "project", **keys.listed)
    with open_project(tmp_path / "project", actor="tester", clock=clock) as opened:
        yield opened


@pytest.fixture
def demands(keys):
    return Demands(approvers=approvers(**keys.listed), assurance=HARDWARE)


def approve_both(project, signer):
    project.signer = signer
    session = project.session()
    for gate in ("approval", "second"):
        session.approve("looked at it", gate=gate)
    project.signer = None


def approved(project, signer, *, finish=True):
    """The session, with both gates approved by the signer, and its first phase finished."""
    session = project.start(FLOW, "try it")
    approve_both(project, signer)
    if finish:
        session.finish("done")
    return session


@pytest.fixture
def record(project, keys, tmp_path):
    session = approved(project, keys.bob)
    export_session(project, session.id, tmp_path / "record.bundle")
    return tmp_path / "record.bundle"


@pytest.mark.parametrize("name", ["ada", "bob", "cem"])
def test_signatures_are_verified_with_the_given_approvers(project, keys, tmp_path, name):
    session = approved(project, getattr(keys, name))
    export_session(project, session.id, tmp_path / "x")

    result = verify_bundle(tmp_path / "x", Demands(approvers=approvers(**keys.listed), assurance=Assurance.SIGNED))

    assert problems(result) == []
    assert [(one.by, one.is_verified) for one in result.decisions] == [(name, True)] * 2
    stronger = verify_bundle(tmp_path / "x", Demands(approvers=approvers(**keys.listed), assurance=HARDWARE))
    assert stronger.is_sound == (name != "ada")


def test_another_list_of_approvers_counts_instead_of_the_one_beside_the_record(record, keys):
    stranger = {"bob": Device().key}

    found = problems(verify_bundle(record, Demands(approvers=approvers(**stranger))))

    assert [line.partition(":")[0] for line in found] == ["wrong 2", "wrong 3"]
    assert all("belongs to no approver" in line for line in found)
    renamed = problems(verify_bundle(record, Demands(approvers=approvers(eve=keys.bob.key))))
    assert "the key is that of eve, and the commit names bob" in renamed[0]
    assert problems(verify_bundle(record, Demands(approvers=NOBODY))) != []


def test_without_a_list_of_approvers_a_signature_is_not_taken_for_checked(record):
    result = verify_bundle(record)

    assert [line.partition(":")[0] for line in problems(result)] == ["unchecked 2", "unchecked 3"]
    assert "no list of approvers was given" in problems(result)[0]
    assert not result.is_sound


def test_what_is_not_installed_is_said(project, keys, tmp_path, demands, monkeypatch):
    session = approved(project, keys.cem)
    export_session(project, session.id, tmp_path / "x")
    monkeypatch.setattr(deciders, "find_spec", lambda _: None)

    assert "unchecked 2" in problems(verify_bundle(tmp_path / "x", demands))[0]
    monkeypatch.undo()
    export_session(project, approved_again(project, keys.bob).id, tmp_path / "y")
    monkeypatch.setattr("detent.doctor.deciders.shutil.which", lambda _: None)
    assert "without ssh-keygen" in problems(verify_bundle(tmp_path / "y", demands))[0]


def approved_again(project, signer):
    project.session().cancel("another one")
    return approved(project, signer)


def with_proof(commit, **changes):
    proof = msgspec.structs.replace(commit.actor.proof, **changes)
    return msgspec.structs.replace(commit, actor=msgspec.structs.replace(commit.actor, proof=proof))


def test_a_signature_of_a_key_that_nobody_touched_is_found(project, keys, tmp_path, demands):
    session = approved(project, keys.bob)
    export_session(project, session.id, tmp_path / "x")
    untouched = Device(flags=ALONE)
    untouched._private, untouched._blob, untouched.key = keys.bob._private, keys.bob._blob, keys.bob.key
    [commit] = [one for one in session.log() if one.version == 2]
    statement = read_statement(commit.actor.proof.statement)

    forged = tampered(
        tmp_path / "x", alter(2, lambda one: with_proof(one, signature=untouched.sign(statement).signature))
    )

    assert any(line.startswith("wrong 2") for line in problems(verify_bundle(forged, demands)))


def test_a_signature_that_is_moved_to_another_gate_attempt_or_decision_is_found(record, demands):
    def told(event):
        def moved(known):
            return [
                msgspec.structs.replace(one, events=(event,)) if one.version == 2 else one
                for one in known
                if one.version < 3
            ]

        return problems(verify_bundle(tampered(record, moved), demands))

    vote = VoteCast(phase="build", gate="approval", approver="bob", approve=True, reason="looked at it")

    def changed(**values):
        return told(msgspec.structs.replace(vote, **values))

    assert told(vote) == []
    assert "gate is approval, not second" in changed(gate="second")[0]
    assert "decision is approve, not reject" in changed(approve=False)[0]
    assert "reason is looked at it, not fine" in changed(reason="fine")[0]
    assert any("the vote of ada was cast by bob" in line for line in changed(approver="ada"))
    by_hand = told(GateApproved(phase="build", gate="approval", reason="looked at it"))
    assert "choice is empty, not by hand" in by_hand[0]


def test_a_signature_that_is_used_again_is_found(record, demands):
    def again(known):
        return add(*known[1].events, actor=known[1].actor)(known[:2])

    found = problems(verify_bundle(tampered(record, again), demands))

    assert any("its signature was used before, in commit 2" in line for line in found)


def test_a_history_that_was_rewritten_below_a_signature_is_found(record, demands):
    def renamed(commit):
        start, *rest = commit.events
        return msgspec.structs.replace(commit, events=(msgspec.structs.replace(start, task="another task"), *rest))

    found = problems(verify_bundle(tampered(record, alter(1, renamed)), demands))

    assert "wrong 2: approve of build (approval): it was signed at version 1 of another journal" in found


def test_an_assurance_that_the_key_does_not_have_is_found(project, keys, tmp_path):
    session = approved(project, keys.ada)
    export_session(project, session.id, tmp_path / "x")
    forged = tampered(tmp_path / "x", alter(2, lambda one: with_proof(one, assurance=HARDWARE)))

    found = problems(verify_bundle(forged, Demands(approvers=approvers(**keys.listed))))

    assert "the signature is signed, and the commit says hardware" in found[0]


def test_a_signature_in_the_commit_of_a_run_is_found(record, demands):
    def by_run(commit):
        return msgspec.structs.replace(commit, actor=msgspec.structs.replace(commit.actor, kind=ActorKind.RUNNER))

    found = problems(verify_bundle(tampered(record, alter(2, by_run)), demands))

    assert "wrong 2: approve of build (approval): it is by runner bob, by library" in found


def test_a_session_that_was_imported_into_another_project_still_verifies(record, demands, tmp_path):
    build_project(tmp_path / "other", "")
    with open_project(tmp_path / "other", actor="tester") as other:
        session = import_session(other, record)

        assert problems(verify_session(other, session.id, demands)) == []
        export_session(other, session.id, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == record.read_bytes()


def test_the_signature_of_another_session_is_found(record, demands, tmp_path, keys, clock):
    build_project(tmp_path / "other", "", files={"a.txt": "one\n"})
    list_approvers(tmp_path / "other", **keys.listed)
    with open_project(tmp_path / "other", actor="tester", clock=clock) as other:
        export_session(other, approved(other, keys.bob).id, tmp_path / "y")
        [moved] = [one for one in other.session().log() if one.version == 2]

    found = problems(verify_bundle(tampered(record, alter(2, lambda _: moved)), demands))

    assert any("it was signed at version 1 of another journal" in line for line in found)


def test_files_that_changed_between_the_approval_and_the_finish_are_found(
    project, keys, tmp_path, demands, monkeypatch
):
    session = approved(project, keys.bob, finish=False)
    (tmp_path / "project" / "a.txt").write_text("slipped in\n")
    with monkeypatch.context() as changed:
        # A program that was changed to let it pass.
        changed.setattr("detent.core.gate.voted.is_for_other_files", lambda *_: False)
        session.finish("done")
    export_session(project, session.id, tmp_path / "x")

    found = problems(verify_bundle(tmp_path / "x", demands))

    assert found == [
        "wrong 4: build was finished with other files than bob approved for approval in commit 2",
        "wrong 4: build was finished with other files than bob approved for second in commit 3",
    ]
    session.redo("build")
    approve_both(project, keys.bob)
    session.finish("done")
    export_session(project, session.id, tmp_path / "x")
    assert len(problems(verify_bundle(tmp_path / "x", demands))) == 2


def test_an_approval_of_an_earlier_attempt_is_not_compared_with_a_later_finish(project, keys, tmp_path, demands):
    session = approved(project, keys.bob, finish=False)
    session.fail("not yet")
    (tmp_path / "project" / "a.txt").write_text("another try\n")
    session.redo("build")
    approve_both(project, keys.cem)
    session.finish("done")
    export_session(project, session.id, tmp_path / "x")

    assert problems(verify_bundle(tmp_path / "x", demands)) == []
