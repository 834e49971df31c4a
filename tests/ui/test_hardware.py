"""Decisions signed with a key that a person touches; the key is Chromium's virtual authenticator."""

import pytest

from tests.support.page_project import NEEDS_A_PERSON, SESSION, SETTINGS, TASK, PageProject

HARDWARE = SETTINGS.replace('{ kind = "approval" }', '{ kind = "approval", assurance = "hardware" }')
KEY = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def signing(tmp_path):
    """A run ended because a person has to approve `accept` with a key."""
    project = PageProject(tmp_path, settings=HARDWARE)
    try:
        project.detent("run", TASK, expect=NEEDS_A_PERSON)
        yield project
    finally:
        project.stop()


class Authenticator:
    def __init__(self, tab):
        self._devtools = tab.context.new_cdp_session(tab)
        self._devtools.send("WebAuthn.enable")
        self.id = self._devtools.send("WebAuthn.addVirtualAuthenticator", {"options": KEY})["authenticatorId"]

    def verifies(self, is_verified):
        self._devtools.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": is_verified})


def enrol(tab, at, name="ada"):
    at(tab, "")
    tab.get_by_role("button", name="Enrol a key").click()
    tab.get_by_label("Name of the approver").fill(name)
    tab.get_by_role("dialog").get_by_role("button", name="Enrol").click()
    tab.get_by_role("dialog").wait_for(state="detached")


def approve(tab):
    """Ask for the approval on the screen of the review; the dialog stays open if it is refused."""
    tab.get_by_role("button", name="Approve").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label("why").fill("read it, and touched the key")
    dialog.get_by_role("button", name="Approve").click()
    return dialog


def test_a_key_signs_an_approval(signing, tabs, at):
    tab = tabs().open(signing.serve())
    tab.get_by_role("article").wait_for()
    Authenticator(tab)
    enrol(tab, at)
    assert "webauthn" in (signing.root / "approvers.toml").read_text()
    at(tab, f"s/{SESSION}/review/accept")
    approve(tab).wait_for(state="detached")
    assert "PASS" in signing.detent("gates", "accept", "--json")
    at(tab, f"s/{SESSION}/gate/accept/approval")
    votes = tab.locator("section", has=tab.get_by_role("heading", name="Votes"))
    votes.wait_for()
    assert "hardware" in votes.inner_text()
    assert "webauthn" in votes.inner_text()


def test_nothing_is_approved_without_an_enrolled_key(signing, tabs, at):
    tab = tabs().open(signing.serve())
    tab.get_by_role("article").wait_for()
    Authenticator(tab)
    at(tab, f"s/{SESSION}/review/accept")
    alert = approve(tab).get_by_role("alert")
    alert.wait_for()
    assert "no approver has a key" in alert.inner_text()
    assert "PENDING" in signing.detent("gates", "accept", "--json")


def test_a_person_who_is_not_verified_cannot_sign(signing, tabs, at):
    tab = tabs().open(signing.serve())
    tab.get_by_role("article").wait_for()
    key = Authenticator(tab)
    enrol(tab, at)
    key.verifies(False)
    at(tab, f"s/{SESSION}/review/accept")
    alert = approve(tab).get_by_role("alert")
    alert.wait_for(timeout=40_000)
    assert "PENDING" in signing.detent("gates", "accept", "--json")


def test_files_that_changed_before_the_signature_are_not_approved(signing, tabs, at):
    tab = tabs().open(signing.serve())
    tab.get_by_role("article").wait_for()
    Authenticator(tab)
    enrol(tab, at)
    at(tab, f"s/{SESSION}/review/accept")
    tab.get_by_role("button", name="Approve").wait_for()
    (signing.root / "wallet.py").write_text("# nothing is left\n")
    alert = approve(tab).get_by_role("alert")
    alert.wait_for()
    assert "wallet.py" in alert.inner_text()
    assert "PENDING" in signing.detent("gates", "accept", "--json")
