"""The list of approvers: one name, one entry; one key, one owner."""

import pytest

from detent.core.decision.approvers import Approver, Approvers, SshKey, WebAuthnKey, checked, fingerprint, ssh_key
from detent.errors import Invalid
from tests.support.keys import Device

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIC8TkWmcvqfoDEW7xFDdgW/32BBgCTcK71qF5+hLZ/C0"
ADA = Approver(name="ada", roles=("architect",), keys=(SshKey(key=KEY),))


def test_a_key_is_known_by_its_fingerprint():
    assert fingerprint(KEY) == "SHA256:WbjjnA78TBabK3Ft7lfysrjUOODanFqi9ZZE3ecUQVA"
    assert ssh_key(f"{KEY} ada@home\n") == KEY
    owned = Approvers(approver=(ADA,)).owner(fingerprint(KEY))
    assert owned is not None
    assert owned.approver == ADA
    assert Approvers(approver=(ADA,)).owner("SHA256:other") is None


def test_a_key_in_a_device_is_hardware():
    assert Device().key.is_hardware
    assert not SshKey(key=KEY).is_hardware
    assert WebAuthnKey(id="a", public_key="b", origin="c").is_hardware


def test_roles_name_their_approvers():
    listed = Approvers(approver=(ADA, Approver(name="bob", roles=("architect",), keys=(Device().key,))))
    assert listed.roles() == {"architect": ("ada", "bob")}


@pytest.mark.parametrize(
    ("entries", "problem"),
    [
        ((ADA, Approver(name="bob", keys=ADA.keys)), "is listed twice, for ada and for bob"),
        ((ADA, ADA), "ada is listed twice"),
        ((Approver(name=" "),), "the name of an approver is needed"),
        ((Approver(name="bob", keys=(SshKey(key="ssh-ed25519 AAAA"),)),), "does not hold a key of its type"),
        ((Approver(name="bob", keys=(SshKey(key="ssh-dss AAAA"),)),), "is no public SSH key"),
        ((Approver(name="bob", keys=(SshKey(key=f"{KEY} comment"),)),), "more than its type and its base64 text"),
    ],
)
def test_a_list_that_could_be_read_in_two_ways_is_refused(entries, problem):
    with pytest.raises(Invalid, match=problem):
        checked(Approvers(approver=entries))
