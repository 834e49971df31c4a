"""Signatures of people: who signed, how strongly, and every way in which a signature does not count."""

import base64
import json
import sys
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from detent.core.actor import Assurance
from detent.core.decision.approvers import SshKey
from detent.core.decision.statement import Statement, challenge, read_statement, signed_bytes
from detent.engine.proofs import verify_proof
from detent.engine.ssh_signatures import SshSigner, own_signer, public_key
from detent.engine.webauthn import authentication_options, registered_key, registration_options, webauthn_proof
from detent.errors import Invalid, Refused
from tests.support.keys import (
    ALONE,
    ORIGIN,
    TOUCHED,
    VERIFIED,
    Authenticator,
    Device,
    approvers,
    make_ssh_key,
    ssh_signer,
)

STATEMENT = Statement(
    project="p",
    session="WFS-a",
    decision="approve",
    reason="looked at it",
    at=datetime(2026, 1, 1, tzinfo=UTC),
    nonce="ab" * 16,
)


def test_an_ssh_key_says_who_signed(tmp_path):
    signer = ssh_signer(tmp_path / "ada")
    key = make_ssh_key(tmp_path / "bob")
    listed = approvers(bob=key, ada=ssh_public(tmp_path / "ada"))

    proof = signer.sign(STATEMENT)

    found = verify_proof(proof, listed)
    assert (found.name, found.assurance, found.statement) == ("ada", Assurance.SIGNED, STATEMENT)
    assert (proof.method, proof.statement) == ("ssh", signed_bytes(STATEMENT).decode())
    assert signer.identity(listed) == "ada"


def ssh_public(file):
    return SshKey(key=public_key(str(file)))


def test_the_key_of_nobody_does_not_count(tmp_path):
    proof = ssh_signer(tmp_path / "mallory").sign(STATEMENT)
    listed = approvers(ada=make_ssh_key(tmp_path / "ada"))

    with pytest.raises(Refused, match=r"belongs to no approver; approvers\.toml lists ada"):
        verify_proof(proof, listed)
    with pytest.raises(Refused, match="was not made by the key"):
        verify_proof(replace(proof, key=listed.approver[0].keys[0].id), listed)


@pytest.mark.parametrize(
    ("field", "value"), [("reason", "something else"), ("gate", "other"), ("version", 7), ("nonce", "cd" * 16)]
)
def test_a_changed_statement_does_not_count(tmp_path, field, value):
    proof = ssh_signer(tmp_path / "ada").sign(STATEMENT)
    changed = replace(proof, statement=signed_bytes(replace(STATEMENT, **{field: value})).decode())

    with pytest.raises(Refused, match="is wrong"):
        verify_proof(changed, approvers(ada=ssh_public(tmp_path / "ada")))


@pytest.mark.parametrize("damage", ["", "!", "AAAA", base64.b64encode(b"SSHSIG" + bytes(40)).decode()])
def test_a_damaged_signature_is_refused_and_no_bug(tmp_path, damage):
    key = make_ssh_key(tmp_path / "ada")
    proof = replace(ssh_signer(tmp_path / "ada").sign(STATEMENT), signature=damage)

    with pytest.raises(Refused):
        verify_proof(proof, approvers(ada=key))


def test_a_signature_for_another_purpose_does_not_count():
    device = Device(namespace="git")

    with pytest.raises(Refused, match="was made for 'git', not for 'detent'"):
        verify_proof(device.sign(STATEMENT), approvers(ada=device.key))


@pytest.mark.parametrize(
    ("flags", "verify", "refusal"),
    [
        (ALONE, False, "was not touched"),
        (TOUCHED, False, None),
        (VERIFIED, False, None),
        (ALONE, True, "was not touched"),
        (TOUCHED, True, "did not verify the person"),
        (VERIFIED, True, None),
    ],
)
def test_the_flags_of_a_device_are_checked(flags, verify, refusal):
    """ssh-keygen itself accepts all of them."""
    device = Device(flags=flags, verify=verify)
    listed = approvers(ada=device.key)

    if refusal is None:
        assert verify_proof(device.sign(STATEMENT), listed).assurance is Assurance.HARDWARE
    else:
        with pytest.raises(Refused, match=refusal):
            verify_proof(device.sign(STATEMENT), listed)


def test_the_flags_are_signed():
    """An agent cannot raise the flags of the signature of a key that was not touched."""
    device = Device(flags=ALONE)
    proof = device.sign(STATEMENT)
    raw = bytearray(base64.b64decode(proof.signature))
    raw[-5] = TOUCHED

    with pytest.raises(Refused, match="is wrong"):
        verify_proof(replace(proof, signature=base64.b64encode(raw).decode()), approvers(ada=device.key))


def test_the_own_key_is_found_and_a_device_comes_first(tmp_path):
    device = Device()
    first = make_ssh_key(tmp_path / "id_ed25519")
    (tmp_path / "id_sk.pub").write_text(f"{device.key.key} token\n")
    (tmp_path / "broken.pub").write_text("no key\n")

    assert own_signer(approvers(ada=first), str(tmp_path)).key == first.key
    assert own_signer(approvers(ada=first, bob=device.key), str(tmp_path)).key == device.key.key
    with pytest.raises(Refused, match=r"no key in .* belongs to an approver"):
        own_signer(approvers(), str(tmp_path))


def test_a_key_that_cannot_sign_says_so(tmp_path):
    make_ssh_key(tmp_path / "ada")
    (tmp_path / "ada").unlink()

    with pytest.raises(Refused, match="did not sign: ssh-keygen ended with the exit code"):
        SshSigner(str(tmp_path / "ada.pub")).sign(STATEMENT)


# WebAuthn


def test_webauthn_signs_a_decision():
    authenticator = Authenticator()
    options = authentication_options(STATEMENT, ORIGIN, approvers(ada=authenticator.key))

    assert options["rpId"] == "localhost"
    assert options["userVerification"] == "required"
    assert options["allowCredentials"] == [{"type": "public-key", "id": authenticator.key.id}]
    nonce = base64.urlsafe_b64decode(options["challenge"] + "=")
    assert nonce == challenge(STATEMENT)
    proof = webauthn_proof(STATEMENT, authenticator.key.id, authenticator.get(nonce))

    found = verify_proof(proof, approvers(ada=authenticator.key))
    assert (found.name, found.assurance) == ("ada", Assurance.HARDWARE)
    assert read_statement(proof.statement) == STATEMENT


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"flags": TOUCHED}, "did not verify the person"),
        ({"flags": ALONE}, "was not touched"),
        ({"flags": 4}, "was not touched"),
        ({"origin": "http://localhost:8000"}, "was used in the page http://localhost:8000"),
        ({"origin": "http://evil.example"}, "was used in the page"),
        ({"enrolled_at": "https://detent.example"}, "was used in the page"),
    ],
)
def test_webauthn_without_the_person_or_in_another_page_does_not_count(settings, refusal):
    authenticator = Authenticator(**settings)

    with pytest.raises(Refused, match=refusal):
        verify_proof(authenticator.sign(STATEMENT), approvers(ada=authenticator.key))


def test_a_webauthn_response_for_another_decision_does_not_count():
    authenticator = Authenticator()
    proof = authenticator.sign(STATEMENT)
    other = signed_bytes(replace(STATEMENT, gate="other")).decode()

    with pytest.raises(Refused, match="signed for another decision"):
        verify_proof(replace(proof, statement=other), approvers(ada=authenticator.key))


def test_a_webauthn_key_of_somebody_else_does_not_count():
    ada, mallory = Authenticator(), Authenticator()

    with pytest.raises(Refused, match="belongs to no approver"):
        verify_proof(mallory.sign(STATEMENT), approvers(ada=ada.key))
    with pytest.raises(Refused, match="is wrong"):
        verify_proof(replace(mallory.sign(STATEMENT), key=ada.key.id), approvers(ada=ada.key))


@pytest.mark.parametrize("damage", ["", "e30=", "%%%", base64.b64encode(b'{"authenticatorData":1}').decode()])
def test_a_damaged_webauthn_response_is_refused_and_no_bug(damage):
    ada = Authenticator()

    with pytest.raises(Refused):
        verify_proof(replace(ada.sign(STATEMENT), signature=damage), approvers(ada=ada.key))


def test_a_response_of_a_frame_does_not_count():
    ada = Authenticator()
    response = ada.get(challenge(STATEMENT))
    client = json.loads(base64.urlsafe_b64decode(response["clientDataJSON"] + "=="))
    client["crossOrigin"] = True
    response["clientDataJSON"] = base64.urlsafe_b64encode(json.dumps(client).encode()).decode().rstrip("=")

    with pytest.raises(Refused, match="was used in the page"):
        verify_proof(webauthn_proof(STATEMENT, ada.key.id, response), approvers(ada=ada.key))


def test_a_webauthn_key_is_enrolled():
    ada, nonce = Authenticator(), b"n" * 32
    options = registration_options("ada", ORIGIN, nonce=nonce, approvers=approvers(bob=Authenticator().key))

    assert options["rp"]["id"] == "localhost"
    assert options["authenticatorSelection"] == {"userVerification": "required"}
    assert len(options["excludeCredentials"]) == 1
    assert registered_key(ada.create(nonce), ORIGIN, nonce=nonce) == ada.key


@pytest.mark.parametrize(
    ("authenticator", "nonce", "error"),
    [
        (Authenticator(), b"other", Refused),
        (Authenticator(flags=TOUCHED), b"nonce", Refused),
        (Authenticator(origin="http://localhost:1"), b"nonce", Refused),
    ],
)
def test_an_enrolment_that_was_not_asked_for_is_refused(authenticator, nonce, error):
    with pytest.raises(error):
        registered_key(authenticator.create(b"nonce"), ORIGIN, nonce=nonce)
    with pytest.raises(Invalid):
        registered_key({}, ORIGIN, nonce=nonce)


def test_without_fido2_the_refusal_names_the_extra(monkeypatch):
    authenticator = Authenticator()
    proof = authenticator.sign(STATEMENT)
    monkeypatch.setitem(sys.modules, "fido2", None)

    with pytest.raises(Refused, match="fido2, which is not installed") as refused:
        verify_proof(proof, approvers(ada=authenticator.key))
    assert "detent[hardware]" in str(refused.value.way_out)
