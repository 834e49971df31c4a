"""Decisions signed with a key that a person touches; the key is Chromium's virtual authenticator."""

import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.support.page_project import NEEDS_A_PERSON, SESSION, SETTINGS, TASK, PageProject

SIGNED = '{ kind = "approval", assurance = "hardware" }'
HARDWARE = SETTINGS.replace('{ kind = "approval" }', SIGNED)
SECOND = SIGNED.replace("{", '{ name = "second",')
TWO_GATES = SETTINGS.replace('{ kind = "approval" }', f"{SIGNED}, {SECOND}")
SIGN = """async (options) => {
    const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
    const { id, response } = (await navigator.credentials.get({ publicKey })).toJSON();
    return { ...response, id };
}"""
KEY = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def signing(tmp_path, request):
    """A project whose approvals are signed with a key. Nobody has one yet."""
    project = PageProject(tmp_path, settings=TWO_GATES if "another_gate" in request.node.name else HARDWARE)
    try:
        yield project
    finally:
        project.stop()


class Authenticator:
    def __init__(self, tab):
        self._devtools = tab.context.new_cdp_session(tab)
        self._devtools.send("WebAuthn.enable")
        self.id = self._devtools.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})["authenticatorId"]

    def verifies(self, is_verified):
        self._send("setUserVerified", isUserVerified=is_verified)

    def credential(self):
        """The only one, with its private key."""
        [credential] = self._send("getCredentials")["credentials"]
        return credential

    def take(self, credential):
        """Have this credential and no other."""
        self._send("clearCredentials")
        self._send("addCredential", credential=credential)

    def _send(self, command, **arguments):
        return self._devtools.send(f"WebAuthn.{command}", {"authenticatorId": self.id, **arguments})


@pytest.fixture
def waits(signing, tabs, at):
    """A tab with a key that was enrolled, at the review of a phase that waits for an approval; and the key."""
    tab = tabs().open(signing.serve())
    tab.get_by_text("Nothing needs you.").wait_for()
    key = Authenticator(tab)
    at(tab, "")
    tab.get_by_role("button", name="Enrol a key").click()
    tab.get_by_label("Name of the approver").fill("ada")
    tab.get_by_role("dialog").get_by_role("button", name="Enrol").click()
    tab.get_by_role("dialog").wait_for(state="detached")
    signing.detent("run", TASK, expect=NEEDS_A_PERSON)
    at(tab, f"s/{SESSION}/review/accept")
    tab.get_by_role("button", name="Approve").wait_for()
    return tab, key


def approve(tab):
    """Ask for the approval on the screen of the review; the dialog stays open if it is refused."""
    tab.get_by_role("button", name="Approve").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("why").fill("read it, and touched the key")
    dialog.get_by_role("button", name="Approve").click()
    return dialog


class Caught:
    """An approval that was signed, and that did not reach the server."""

    def __init__(self, tab):
        self._tab = tab
        self.options: Any = None
        self.body: Any = None
        self.path = ""
        tab.route("**/statement", self._statement)
        tab.route("**/decide", self._decide)
        approve(tab).get_by_role("alert").wait_for()
        tab.unroute("**/statement")
        tab.unroute("**/decide")

    def _statement(self, route):
        answer = route.fetch()
        self.options = answer.json()["options"]
        route.fulfill(response=answer)

    def _decide(self, route):
        self.body, self.path = route.request.post_data_json, urlsplit(route.request.url).path
        route.fulfill(status=409, content_type="application/json", body=json.dumps({"error": {"message": "caught"}}))

    def post(self, **changes):
        """What the server answers to it, with some fields changed: nothing if it is carried out."""
        send = "([path, body]) => api.post(path, body).then(() => '', (refusal) => refusal.message)"
        return self._tab.evaluate(send, [self.path, {**self.body, **changes}])


def test_a_signature_for_one_gate_does_not_approve_another_gate(signing, waits):
    tab, _ = waits
    caught = Caught(tab)
    own = caught.body["gate"]
    other = {"approval": "second", "second": "approval"}[own]
    assert "signed" in caught.post(gate=other)
    assert signing.detent("gates", "accept", "--json").count('"PENDING"') == 2
    assert caught.post() == ""  # the same signature, for its own gate
    assert signing.detent("gates", "accept", "--json").count('"PENDING"') == 1


def test_a_key_that_no_approver_has_signs_nothing(signing, waits):
    """It answers under the name of the known key."""
    tab, key = waits
    known = key.credential()
    forged = ec.generate_private_key(ec.SECP256R1()).private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    key.take({**known, "privateKey": base64.b64encode(forged).decode()})
    alert = approve(tab).get_by_role("alert")
    alert.wait_for()
    assert "signature" in alert.inner_text()
    assert "PENDING" in signing.detent("gates", "accept", "--json")
    key.take(known)
    tab.keyboard.press("Escape")
    approve(tab).wait_for(state="detached")
    assert "PASS" in signing.detent("gates", "accept", "--json")


@pytest.fixture
def other_port():
    """A page of this host at another port, as a development server has."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>elsewhere</title>")

        def log_message(self, *_):
            """Nothing: it is asked for one page."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://localhost:{server.server_port}/"
        server.shutdown()


def test_a_key_that_was_touched_in_a_page_at_another_port_signs_nothing(signing, waits, other_port):
    """The browser lets every port of a host use the key."""
    tab, key = waits
    caught = Caught(tab)
    elsewhere = tab.context.new_page()
    elsewhere.goto(other_port)
    Authenticator(elsewhere).take(key.credential())
    credential = elsewhere.evaluate(SIGN, caught.options)
    proof = {**caught.body["proof"], "credential": {**caught.body["proof"]["credential"], **credential}}
    assert other_port.rstrip("/") in caught.post(proof=proof)
    assert "PENDING" in signing.detent("gates", "accept", "--json")
    assert caught.post() == ""
    assert "PASS" in signing.detent("gates", "accept", "--json")


def test_a_key_signs_an_approval(signing, waits, at):
    tab, _ = waits
    assert "webauthn" in (signing.root / "approvers.toml").read_text()
    approve(tab).wait_for(state="detached")
    assert "PASS" in signing.detent("gates", "accept", "--json")
    at(tab, f"s/{SESSION}/gate/accept/approval")
    votes = tab.locator("section", has=tab.get_by_role("heading", name="Votes"))
    votes.wait_for()
    assert "hardware" in votes.inner_text()
    assert "webauthn" in votes.inner_text()


def test_a_person_who_is_not_verified_cannot_sign(signing, waits):
    tab, key = waits
    key.verifies(False)
    approve(tab).get_by_role("alert").wait_for(timeout=40_000)
    assert "PENDING" in signing.detent("gates", "accept", "--json")


def test_files_that_changed_before_the_signature_are_not_approved(signing, waits):
    tab, _ = waits
    (signing.root / "wallet.py").write_text("# nothing is left\n")
    alert = approve(tab).get_by_role("alert")
    alert.wait_for()
    assert "wallet.py" in alert.inner_text()
    assert "PENDING" in signing.detent("gates", "accept", "--json")


def test_the_form_says_that_nobody_has_a_key_for_the_workflow(signing, tabs, at):
    tab = tabs().open(signing.serve())
    tab.get_by_text("Nothing needs you.").wait_for()
    at(tab, "start")
    tab.get_by_role("combobox", name="Workflow").select_option("trial")
    tab.get_by_role("textbox", name="Task").fill(TASK)
    tab.get_by_role("button", name="Start the run").click()
    alert = tab.get_by_role("alert")
    alert.wait_for()
    assert "approvers.toml" in alert.inner_text()
    assert signing.commits() == 0
