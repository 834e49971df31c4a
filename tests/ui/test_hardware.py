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
    """A project whose approvals are signed with a key. Nobody has one yet."""
    project = PageProject(tmp_path, settings=HARDWARE)
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
        self._devtools.send("WebAuthn.setUserVerified", {"authenticatorId": self.id, "isUserVerified": is_verified})


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
