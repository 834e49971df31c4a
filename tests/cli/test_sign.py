"""Signing on the command line: who is listed, which key is taken, and that a key needs no terminal."""

import os
import subprocess

import pytest

from tests.support.command import DETENT, Tool
from tests.support.keys import Device, make_ssh_key
from tests.support.project import build_project

SETTINGS = """
[decisions]
assurance = "signed"
[workflows.w]
phases = [{ key = "work", gates = [{ kind = "approval" }] }, "end"]
"""


@pytest.fixture
def place(detent, tmp_path_factory) -> Tool:
    """A project in which ada is listed, with a key in her home directory."""
    home = tmp_path_factory.mktemp("home")
    detent.environment["HOME"] = str(home)
    build_project(detent.directory, SETTINGS, files={"a.txt": "one\n"})
    make_ssh_key(home / ".ssh" / "id_ed25519")
    first = detent("approver", "add", "ada", "--public-key", "~/.ssh/id_ed25519.pub", "--role", "lead").ok()
    assert "trusted on first use" in " ".join(first.out.split())
    return detent


def test_a_decision_is_signed_without_a_terminal(place):
    """As in CI: the process has no terminal, and the key says who decides."""
    place("start", "w", "Add login").ok()
    ran = subprocess.run(
        [DETENT, "approve", "-m", "read it", "--sign", "--json"],
        cwd=place.directory,
        env=place.environment,
        capture_output=True,
        start_new_session=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr

    [*_, commit] = place("log", "--json").ok().json()["commits"]
    proof = commit["actor"]["proof"]
    assert (commit["by"], proof["assurance"], proof["method"]) == ("ada", "signed", "ssh")
    assert proof["key"].startswith("SHA256:")
    assert "approved by ada (signed)" in place("gates").ok().out
    assert "(signed: ssh key SHA256:" in " ".join(place("why").ok().out.split())
    assert "(signed: ssh key SHA256:" in " ".join(place("log").ok().out.split())
    assert "ada approved (signed): read it" in place("report").ok().out


def test_what_is_shown_as_next_can_be_typed(place):
    place("start", "w", "Add login").ok()
    [entry] = place("next", "--json").ok().json()["needs"]
    assert entry["command"] == "detent approve work --gate approval -m WHY --sign"
    code, message, way_out = place("approve", "work", "-m", "WHY").error()
    assert (code, way_out) == (1, "add --sign: an SSH key of an approver signs it")
    assert message == "approve needs the assurance signed, and this request has attended"
    place(*entry["command"].split()[1:]).ok()


@pytest.mark.parametrize("verb", [("skip", "end", "-m", "no"), ("cancel", "-m", "no"), ("release", "-m", "no")])
def test_other_verbs_that_decide_are_signed_too(place, verb):
    place("start", "w", "Add login").ok()
    assert place(*verb).code == 1
    place(*verb, "--sign", "--key", "~/.ssh/id_ed25519").ok()
    assert place("log", "--json").ok().json()["commits"][-1]["by"] == "ada"


def test_the_key_is_named_or_found(place, tmp_path):
    place("start", "w", "Add login").ok()
    make_ssh_key(tmp_path / "other")
    assert place("approve", "-m", "x", "--key", "other").error()[:2] == (
        2,
        "--key names the key to sign with, and --sign is missing",
    )
    code, message, way_out = place("approve", "-m", "x", "--sign", "--key", "other").error()
    assert code == 1
    assert "belongs to no approver" in message
    assert way_out.startswith("detent approver add NAME --public-key")
    assert "there is no public key" in place("approve", "-m", "x", "--sign", "--key", "nowhere").error()[1]
    os.rename(f"{place.environment['HOME']}/.ssh", f"{place.environment['HOME']}/elsewhere")
    assert "belongs to an approver; approvers.toml lists ada" in place("approve", "-m", "x", "--sign").error()[1]


def test_approvers_are_listed_with_what_they_rest_on(place):
    (place.directory / "token.pub").write_text(f"{Device().key.key} token\n")
    assert (
        "is signed by one who is listed: ada" in place("approver", "add", "bob", "--public-key", "token.pub").error()[1]
    )
    place("approver", "add", "bob", "--public-key", "token.pub", "--verify", "--sign").ok()

    listed = place("approver", "list", "--json").ok().json()["approvers"]
    assert [(each["name"], each["roles"], each["first_use"]) for each in listed] == [
        ("ada", ["lead"], True),
        ("bob", [], False),
    ]
    assert [key["hardware"] for each in listed for key in each["keys"]] == [False, True]
    assert "ada (lead), trusted on first use" in place("approver", "list").ok().out

    assert "needs the assurance hardware" in place("approver", "remove", "bob", "--sign").error()[1]


def test_an_approver_is_removed(place, tmp_path):
    make_ssh_key(tmp_path / "bob")
    place("approver", "add", "bob", "--public-key", "bob.pub", "--sign").ok()
    place("approver", "remove", "bob", "--sign").ok()
    assert [each["name"] for each in place("approver", "list", "--json").ok().json()["approvers"]] == ["ada"]


def test_a_list_that_was_edited_stops_every_signature(place):
    place("start", "w", "Add login").ok()
    file = place.directory / "approvers.toml"
    file.write_text(file.read_text().replace('name = "ada"', 'name = "eve"', 1))

    for arguments in (("approver", "list"), ("approve", "-m", "x", "--sign")):
        assert "does not follow from its signed changes" in place(*arguments).error()[1]


def test_a_session_that_nobody_could_sign_for_does_not_start(detent):
    build_project(detent.directory, SETTINGS)
    code, message, way_out = detent("start", "w", "Add login").error()
    assert code == 1
    assert "its votes must be signed, and approvers.toml lists no approver with such a key" in message
    assert "detent approver add" in way_out
