"""The list of approvers: every change is signed by one who was listed, and a list that was edited is refused."""

import pytest

from detent.core.actor import Actor, ActorKind, Channel
from detent.core.decision.approvers import FILE, Approver, SshKey
from detent.engine.approvers import Edit, read_approvers, trusted_list
from detent.engine.project import open_project
from detent.errors import Invalid, NotFound, Refused
from tests.support.keys import ALONE, Authenticator, Device, list_approvers, ssh_signer
from tests.support.project import build_project

ADA = Actor(name="tester", kind=ActorKind.PERSON, channel=Channel.LIBRARY)
AGENT = Actor(name="bot", kind=ActorKind.AGENT, channel=Channel.LIBRARY)


class Listed:
    """The file of a project, and the keys of the people in it."""

    def __init__(self, root, keys):
        build_project(root)
        self.path = root / FILE
        self.ada, self.bob, self.cem = ssh_signer(keys / "ada"), Device(), Authenticator()
        with open_project(root, actor="tester") as project:
            self.file = project.approvers

    def add(self, name, key, signer=None, *, actor=ADA, roles=()):
        return self.file.add(name, key, roles, actor=actor, signer=signer)

    def remove(self, name, key=None, signer=None):
        return self.file.remove(name, key, actor=ADA, signer=signer)

    @property
    def ada_key(self):
        return SshKey(key=self.ada.key)


@pytest.fixture
def listed(tmp_path, tmp_path_factory):
    return Listed(tmp_path, tmp_path_factory.mktemp("keys"))


def test_the_first_is_trusted_and_signs_for_the_next(listed):
    assert listed.add("ada", listed.ada_key, roles=("architect",))
    assert not listed.add("bob", listed.bob.key, listed.ada)
    assert not listed.add("cem", listed.cem.key, listed.bob)
    assert not listed.add("bob", None, listed.cem, roles=("qa",))

    trusted = listed.file.trusted()
    assert trusted.approvers.names == ("ada", "bob", "cem")
    assert trusted.on_first_use == {"ada"}
    assert trusted.approvers.roles() == {"architect": ("ada",), "qa": ("bob",)}
    assert trusted.approvers.approver[2].keys == (listed.cem.key,)


def test_whoever_is_not_listed_adds_nobody(listed, tmp_path_factory):
    listed.add("ada", listed.ada_key)
    mallory = ssh_signer(tmp_path_factory.mktemp("other") / "mallory")

    with pytest.raises(Refused, match=r"a change of approvers\.toml is signed by one who is listed: ada"):
        listed.add("mallory", SshKey(key=mallory.key))
    with pytest.raises(Refused, match="belongs to no approver"):
        listed.add("mallory", SshKey(key=mallory.key), mallory)
    untouched = Device(flags=ALONE)
    listed.add("bob", untouched.key, listed.ada)
    with pytest.raises(Refused, match="was not touched"):
        listed.add("mallory", SshKey(key=mallory.key), untouched)
    assert listed.file.read().names == ("ada", "bob")


def test_an_agent_adds_nobody(listed):
    with pytest.raises(Refused, match="approver add is a person's decision"):
        listed.add("ada", listed.ada_key, actor=AGENT)
    assert not listed.path.exists()
    listed.add("ada", listed.ada_key)
    with pytest.raises(Refused, match=r"approver add is a person's decision, .* may use your SSH key"):
        listed.add("bob", listed.bob.key, listed.ada, actor=AGENT)


def test_a_key_has_one_owner_and_the_last_approver_stays(listed):
    listed.add("ada", listed.ada_key)
    with pytest.raises(Refused, match="is listed already, for ada"):
        listed.add("bob", listed.ada_key, listed.ada)
    with pytest.raises(Invalid, match="bob has no key yet"):
        listed.add("bob", None, listed.ada)
    with pytest.raises(Refused, match="ada is the only approver"):
        listed.remove("ada", signer=listed.ada)
    with pytest.raises(NotFound, match="there is no approver eve"):
        listed.remove("eve", signer=listed.ada)


def test_a_key_and_an_approver_are_removed(listed):
    listed.add("ada", listed.ada_key)
    listed.add("ada", listed.bob.key, listed.ada)
    listed.add("cem", listed.cem.key, listed.bob)
    with pytest.raises(NotFound, match="ada has no key SHA256:nothing"):
        listed.remove("ada", "SHA256:nothing", listed.cem)
    listed.remove("ada", listed.bob.key.id, listed.cem)
    with pytest.raises(Refused, match="belongs to no approver"):
        listed.add("dee", Device().key, listed.bob)
    listed.remove("ada", signer=listed.cem)

    assert listed.file.read().names == ("cem",)
    assert listed.file.trusted().on_first_use == frozenset()


@pytest.mark.parametrize(
    "forge",
    [
        lambda text: text.replace('name = "bob"', 'name = "bo"'),
        lambda text: text.replace("[[change]]", '[[approver]]\nname = "eve"\nkeys = []\n\n[[change]]', 1),
        lambda text: text.replace('roles = ["qa"]', 'roles = ["qa", "architect"]'),
        lambda text: text[: text.rindex("[[change]]")],
        lambda text: text.replace('\\"name\\\\\\":\\\\\\"bob', '\\"name\\\\\\":\\\\\\"eve'),
        lambda text: text.rpartition("signature")[0],
    ],
    ids=["a name", "another approver", "a role", "a change left out", "a changed statement", "no signature"],
)
def test_a_list_that_was_edited_is_refused(listed, forge):
    listed.add("ada", listed.ada_key)
    listed.add("bob", listed.bob.key, listed.ada, roles=("qa",))
    text = listed.path.read_text()
    forged = forge(text)
    assert forged != text
    listed.path.write_text(forged)

    with pytest.raises((Refused, Invalid)):
        listed.file.read()


def test_changes_cannot_be_put_in_another_order(listed):
    listed.add("ada", listed.ada_key)
    listed.add("bob", listed.bob.key, listed.ada)
    listed.remove("bob", signer=listed.bob)
    head, *changes = listed.path.read_text().split("[[change]]")
    # The removal is left out, so bob would be listed again.
    listed.path.write_text("[[change]]".join([head, *changes[:2]]))

    with pytest.raises(Refused, match="does not follow from its signed changes"):
        listed.file.read()


def test_a_key_that_signs_by_itself_does_not_add_keys_beside_one_that_is_touched(listed):
    """Else an agent that can use the one would list a device of its own."""
    listed.add("ada", listed.ada_key)
    listed.add("bob", listed.bob.key, listed.ada)

    with pytest.raises(Refused, match=r"needs the assurance hardware .* and ada signed it with signed"):
        listed.add("mallory", Device().key, listed.ada)
    with pytest.raises(Refused, match="needs the assurance hardware"):
        listed.remove("bob", signer=listed.ada)
    listed.add("cem", listed.cem.key, listed.bob)


def test_a_list_written_by_hand_is_trusted_until_it_is_changed(listed, tmp_path):
    list_approvers(tmp_path, ada=listed.ada_key, bob=listed.bob.key)
    trusted = listed.file.trusted()
    assert trusted.on_first_use == {"ada", "bob"}

    with pytest.raises(Refused, match="is signed by one who is listed: ada, bob"):
        listed.add("cem", listed.cem.key)
    listed.add("cem", listed.cem.key, listed.bob)

    written = read_approvers(str(listed.path))
    assert len(written.change) == 2
    assert trusted_list(written).on_first_use == {"ada", "bob"}


@pytest.mark.parametrize("text", ["name = 1", "[[approver]]\nname = 'a'\nkey = 1", "not toml", "[[approver]]\n"])
def test_a_file_that_cannot_be_used_says_why(listed, text):
    listed.path.write_text(text)
    with pytest.raises(Invalid, match=r"approvers\.toml cannot be used"):
        listed.file.read()


def test_a_signature_for_an_earlier_list_does_not_count_later(listed):
    listed.add("ada", listed.ada_key)
    statement = listed.file.edit_statement(_edit(listed))
    proof = listed.ada.sign(statement)
    listed.add("ada", None, listed.ada, roles=("lead",))

    with pytest.raises(Refused, match="was signed for another list"):
        listed.file.change(statement, actor=ADA, proof=proof)


def _edit(listed):
    return Edit(name="cem", entry=Approver(name="cem", keys=(listed.cem.key,)))


def test_a_person_is_asked_about_the_first_approver_in_words(listed, monkeypatch):
    asked = []
    monkeypatch.setattr("detent.engine.approvers.ask", lambda lines, decision: asked.append((list(lines), decision)))
    listed.add("ada", listed.ada_key, roles=("architect", "qa"))

    [(lines, decision)] = asked
    assert decision == "approver add"
    assert [line.split() for line in lines[:4]] == [
        ["approver", "add"],
        ["approver", "ada"],
        ["roles", "architect,", "qa"],
        ["key", "1", listed.ada_key.kind, listed.ada_key.id],
    ]
    assert "on first use" in lines[4]
