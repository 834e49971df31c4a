"""The approvers of a project: people, their keys and their roles, as `approvers.toml` lists them.

The file carries the changes that made it. Each is signed by a key that was known before it, except the first one, which
is trusted on first use. A list that does not follow from its changes is refused.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from detent.core.limits import MAX_NAME, check_text
from detent.errors import Invalid

#: The file in the root of the repository.
FILE = "approvers.toml"
#: Limits of the file.
MAX_APPROVERS = 1_000
MAX_KEYS = 20
MAX_CHANGES = 5_000
#: Types of SSH keys whose private part is in a device that can ask for a touch.
HARDWARE_TYPES = ("sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com")
SSH_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
    *HARDWARE_TYPES,
)


class _Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


class SshKey(_Value, frozen=True, kw_only=True, tag_field="type", tag="ssh"):
    """The public part of an SSH key, as in a `.pub` file without the comment."""

    key: str
    #: Whether the device must have verified the person by a PIN or a fingerprint, and not only seen a touch.
    verify: bool = False

    @property
    def id(self) -> str:
        """The fingerprint."""
        return fingerprint(self.key)

    @property
    def kind(self) -> str:
        return self.key.split(" ", 1)[0]

    @property
    def is_hardware(self) -> bool:
        return self.kind in HARDWARE_TYPES


class WebAuthnKey(_Value, frozen=True, kw_only=True, tag_field="type", tag="webauthn"):
    """A credential that was enrolled in the page."""

    #: The credential id, base64url without padding.
    id: str
    #: The COSE key, base64url without padding.
    public_key: str
    #: The page that it was enrolled in, with its port: the browser does not tell ports of one host apart.
    origin: str

    @property
    def kind(self) -> str:
        return "webauthn"

    @property
    def is_hardware(self) -> bool:
        return True


Key = SshKey | WebAuthnKey


class Approver(_Value, frozen=True, kw_only=True):
    name: str
    roles: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()


class Change(_Value, frozen=True, kw_only=True):
    """One change of the list, with the decision that a known approver signed."""

    #: The canonical JSON of the statement; its choice is the list after the change.
    statement: str
    method: str = ""
    #: The key that signed; empty for the first change.
    key: str = ""
    signature: str = ""


class Approvers(_Value, frozen=True, kw_only=True):
    approver: tuple[Approver, ...] = ()
    change: tuple[Change, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(approver.name for approver in self.approver)

    def owner(self, key: str) -> "Owned | None":
        """The approver with the key of this fingerprint or credential id."""
        for approver in self.approver:
            for owned in approver.keys:
                if owned.id == key:
                    return Owned(approver, owned)
        return None

    def roles(self) -> Mapping[str, tuple[str, ...]]:
        """Each role with the names of the approvers who have it."""
        filled: dict[str, tuple[str, ...]] = {}
        for approver in self.approver:
            for role in approver.roles:
                filled[role] = (*filled.get(role, ()), approver.name)
        return filled


class Owned(NamedTuple):
    """A key and the approver who owns it."""

    approver: Approver
    key: Key


NOBODY = Approvers()


def ssh_key(text: str) -> str:
    """The key of a line of a `.pub` file, without its comment; `Invalid` if it is none."""
    words = text.split()
    if len(words) < 2 or words[0] not in SSH_TYPES:
        raise Invalid(
            f"{text.strip()[:60]!r} is no public SSH key; it starts with one of {', '.join(SSH_TYPES)}",
            way_out="give the .pub file; ssh-keygen -t ed25519 makes a key",
        )
    key = f"{words[0]} {words[1]}"
    blob = _blob(key)
    length = int.from_bytes(blob[:4])
    if blob[4 : 4 + length] != words[0].encode():
        raise Invalid(f"the SSH key {key[:60]!r} does not hold a key of its type")
    return key


def fingerprint(key: str) -> str:
    """The fingerprint of an SSH key, as `ssh-keygen -l` shows it."""
    import base64  # noqa: PLC0415 - few commands look at keys

    digest = hashlib.sha256(_blob(key)).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _blob(key: str) -> bytes:
    import base64  # noqa: PLC0415 - few commands look at keys

    try:
        return base64.b64decode(key.split(" ")[1], validate=True)
    except (IndexError, ValueError) as error:
        raise Invalid(f"the SSH key {key[:60]!r} is not base64") from error


def checked(approvers: Approvers, source: str = FILE) -> Approvers:
    """The list, if every name and every key in it is well formed and stands there once."""
    problems = list(_problems(approvers))
    if problems:
        raise Invalid(f"{source} cannot be used", problems)
    return approvers


def _problems(approvers: Approvers) -> Iterable[str]:
    if len(approvers.approver) > MAX_APPROVERS or len(approvers.change) > MAX_CHANGES:
        yield f"it may list {MAX_APPROVERS} approvers and {MAX_CHANGES} changes"
    names: set[str] = set()
    keys: dict[str, str] = {}
    for approver in approvers.approver:
        try:
            name = check_text("the name of an approver", approver.name, MAX_NAME)
            for key in approver.keys:
                if isinstance(key, SshKey) and ssh_key(key.key) != key.key:
                    yield f"a key of {name} has more than its type and its base64 text"
            ids = [key.id for key in approver.keys]
        except Invalid as error:
            yield error.message
            continue
        if name in names:
            yield f"{name} is listed twice"
        names.add(name)
        if len(ids) > MAX_KEYS:
            yield f"{name} may have {MAX_KEYS} keys"
        for id_ in ids:
            if id_ in keys:
                # One key would be two people.
                yield f"the key {id_} is listed twice, for {keys[id_]} and for {name}"
            keys[id_] = name
