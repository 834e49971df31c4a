"""Keys in the page: a decision that needs one, and how a key is enrolled. The authenticator is a piece of software."""

import base64
import json

import pytest

from detent.engine.project import open_project
from tests.support.gated import calculator, started
from tests.support.keys import ALONE, TOUCHED, Authenticator, list_approvers

VOTE = {"decision": "approve", "phase": "work", "gate": "approval", "reason": "looks good"}


@pytest.fixture
def root(tmp_path):
    calculator(tmp_path)
    # A session whose gates nobody could open is not started.
    list_approvers(tmp_path, somebody=Authenticator().key)
    project, _ = started(tmp_path, '{ kind = "approval", assurance = "hardware" }')
    project.close()
    return tmp_path


def decoded(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def key_at(page, **options):
    return Authenticator(origin=page.origin, enrolled_at=page.origin, **options)


def asked(page, base, **changed):
    """The vote with the tree that is shown, and what the server wants to be signed for it."""
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]
    vote = {**VOTE, "tree": tree, **changed}
    return vote, page.post(f"{base}/statement", **vote).ok()


def proof(statement, key):
    credential = {"id": key.key.id, **key.get(decoded(statement["options"]["challenge"]))}
    return {"statement": statement["statement"], "credential": credential}


def test_a_gate_that_needs_a_key_is_not_opened_without_one(page, base, root):
    list_approvers(root, ada=key_at(page).key)
    need = page.get(base).ok()["needs"][0]
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]

    refused = page.post(f"{base}/decide", **VOTE, tree=tree)

    assert need["assurance"] == "hardware"
    assert refused.status == 409
    assert "needs the assurance hardware" in refused.error[2]


def test_a_key_opens_it_and_the_record_says_which(page, base, root):
    key = key_at(page)
    list_approvers(root, ada=key.key)
    vote, statement = asked(page, base)

    page.post(f"{base}/decide", **vote, proof=proof(statement, key)).ok()

    [given] = page.get(f"{base}/gate", phase="work", gate="approval").ok()["votes"]
    assert (given["identity"], given["proof"]["assurance"], given["proof"]["method"]) == ("ada", "hardware", "webauthn")
    assert given["proof"]["key"] == key.key.id
    assert json.loads(given["proof"]["statement"])["tree"] == vote["tree"]


@pytest.mark.parametrize("flags", [ALONE, TOUCHED])
def test_a_key_that_verified_nobody_is_refused(page, base, root, flags):
    key = key_at(page, flags=flags)
    list_approvers(root, ada=key.key)
    vote, statement = asked(page, base)

    assert page.post(f"{base}/decide", **vote, proof=proof(statement, key)).status == 409


def test_an_unknown_key_and_another_port_are_refused(page, base, root):
    list_approvers(root, ada=key_at(page).key)
    vote, statement = asked(page, base)
    elsewhere = Authenticator(origin="http://localhost:1", enrolled_at=page.origin)

    assert page.post(f"{base}/decide", **vote, proof=proof(statement, key_at(page))).status == 409
    list_approvers(root, ada=key_at(page).key, eve=elsewhere.key)
    vote, statement = asked(page, base)
    assert page.post(f"{base}/decide", **vote, proof=proof(statement, elsewhere)).status == 409


def test_a_signature_counts_for_what_it_was_made_for_and_once(page, base, root):
    key = key_at(page)
    list_approvers(root, ada=key.key)
    vote, statement = asked(page, base)
    signed = proof(statement, key)

    assert page.post(f"{base}/decide", **{**vote, "reason": "another"}, proof=signed).status == 409
    assert page.post(f"{base}/decide", **{**vote, "decision": "reject"}, proof=signed).status == 409
    (root / "calc.py").write_text("changed = True\n")
    assert page.post(f"{base}/decide", **vote, proof=signed).error[:2] == (409, "tree_changed")
    vote, statement = asked(page, base)
    signed = proof(statement, key)
    page.post(f"{base}/decide", **vote, proof=signed).ok()
    assert page.post(f"{base}/decide", **vote, proof=signed).status == 409


def test_nobody_can_be_asked_to_sign_without_a_key_of_this_page(page, base, root):
    list_approvers(root, ada=Authenticator(enrolled_at="http://localhost:1").key)
    tree = page.get(f"{base}/review", phase="work").ok()["tree"]

    assert "no approver has a key" in page.post(f"{base}/statement", **VOTE, tree=tree).error[2]


def enrol(page, own, name, key, signer=None):
    """All steps of an enrolment; the last answer."""
    begun = page.post(f"{own}/enrol", name=name).ok()
    response = key.create(decoded(begun["options"]["challenge"]))
    answer = page.post(f"{own}/enrol", id=begun["id"], response=response)
    if signer is None or answer.status != 200:
        return answer
    asked_for = answer.ok()
    return page.post(f"{own}/enrol", id=asked_for["id"], proof=proof(asked_for, signer))


def test_the_first_key_is_trusted_on_first_use_and_the_next_is_signed_for(page, own, root):
    (root / "approvers.toml").unlink()
    first, second, third = (key_at(page) for _ in range(3))

    done = enrol(page, own, "ada", first).ok()
    assert (done["step"], done["first"]) == ("done", True)
    assert enrol(page, own, "eve", second).ok()["step"] == "sign"
    assert enrol(page, own, "eve", second, signer=third).status == 409
    assert enrol(page, own, "bob", second, signer=first).ok()["first"] is False

    with open_project(root) as project:
        assert project.approvers.read().names == ("ada", "bob")


def test_a_key_that_another_page_made_is_not_enrolled(page, own):
    assert enrol(page, own, "ada", Authenticator(origin="http://localhost:1")).status == 409
    assert page.post(f"{own}/enrol", id="never", response={}).status == 409
