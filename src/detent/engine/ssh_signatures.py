"""Signatures of SSH keys: makes them with `ssh-keygen`, and verifies them. The flags of a device are checked here."""

import base64
import os
import tempfile
from typing import NamedTuple

from detent.core.actor import Assurance, Proof
from detent.core.decision.approvers import HARDWARE_TYPES, Approvers, SshKey, fingerprint, ssh_key
from detent.core.decision.signature import MAX_SIGNATURE, PRESENT, VERIFIED, decoded
from detent.core.decision.statement import NAMESPACE, Statement, signed_bytes
from detent.errors import Invalid, NotFound, Refused
from detent.process import attach, run

SSH, SSH_HARDWARE = "ssh", "ssh-sk"
#: The program that signs and verifies with SSH keys.
_KEYGEN = "ssh-keygen"
#: The name of the signer in the list that is given to the program; our own list says who that is.
_PRINCIPAL = "approver"
_VERIFY_S_MAX = 30.0
#: Long enough to look for the key and to touch it.
_SIGN_S_MAX = 300.0
_MAGIC = b"SSHSIG"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"


class SshSigner:
    """Signs with an SSH key of this machine, of an agent for SSH keys, or of a device."""

    def __init__(self, file: str) -> None:
        """`file` is the private key or the `.pub` file beside it."""
        self._file = os.path.expanduser(file)
        self.key = public_key(self._file)

    @property
    def is_hardware(self) -> bool:
        return self.key.split(" ")[0] in HARDWARE_TYPES

    def identity(self, approvers: Approvers) -> str:
        owned = approvers.owner(fingerprint(self.key))
        if owned is None:
            raise Refused(
                f"the key {self._file} ({fingerprint(self.key)}) belongs to no approver",
                way_out=f"detent approver add NAME --public-key {self._file}",
            )
        return owned.approver.name

    def sign(self, statement: Statement) -> Proof:
        with tempfile.TemporaryDirectory(prefix="detent-sign-") as place:
            text = os.path.join(place, "statement")
            with open(text, "wb") as file:
                file.write(signed_bytes(statement))
            problem = attach(
                [_KEYGEN, "-Y", "sign", "-q", "-n", NAMESPACE, "-f", self._file, text], timeout_s=_SIGN_S_MAX
            )
            try:
                with open(f"{text}.sig", encoding="ascii") as file:
                    armored = file.read()
            except OSError as error:
                raise Refused(
                    f"the key {self._file} did not sign: {problem or 'no signature was written'}",
                    way_out="look at the lines above; ssh-add -l lists the keys that are loaded",
                ) from error
        return ssh_proof(statement, armored)


def ssh_proof(statement: Statement, armored: str) -> Proof:
    """The proof of a signature that `ssh-keygen -Y sign -n detent` made of the statement."""
    text = "".join(line.strip() for line in armored.splitlines() if not line.startswith("-----"))
    signature = _SshSignature.read(text)
    is_hardware = signature.key_type in HARDWARE_TYPES
    return Proof(
        assurance=Assurance.HARDWARE if is_hardware else Assurance.SIGNED,
        method=SSH_HARDWARE if is_hardware else SSH,
        statement=signed_bytes(statement).decode(),
        signature=text,
        key=fingerprint(signature.key),
    )


def public_key(file: str) -> str:
    """The public part of a key, read from the `.pub` file."""
    for path in (file, f"{file}.pub"):
        try:
            with open(path, encoding="utf-8", errors="replace") as opened:
                text = opened.read(MAX_SIGNATURE)
        except OSError:
            continue
        if not text.startswith("-----BEGIN"):
            return ssh_key(text)
    raise NotFound(f"there is no public key {file} or {file}.pub", way_out="name the .pub file of your key with --key")


def own_signer(approvers: Approvers, directory: str) -> SshSigner:
    """The signer of the first key in a directory that belongs to an approver; those of devices come first."""
    signers = []
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".pub"))
    except OSError:
        names = []
    for name in names:
        try:
            signer = SshSigner(os.path.join(directory, name.removesuffix(".pub")))
        except (Invalid, NotFound):
            continue
        if approvers.owner(fingerprint(signer.key)) is not None:
            signers.append(signer)
    if not signers:
        known = ", ".join(approvers.names) or "no approver"
        raise Refused(
            f"no key in {directory} belongs to an approver; approvers.toml lists {known}",
            way_out="name your key with --key FILE, or detent approver add NAME --public-key FILE",
        )
    return min(signers, key=lambda signer: not signer.is_hardware)


class _SshSignature(NamedTuple):
    """The parts of a signature in the format SSHSIG."""

    key_type: str
    key: str
    namespace: str
    #: The flags of a device; None for a key in a file.
    flags: int | None

    @classmethod
    def read(cls, text: str) -> "_SshSignature":
        wire = _Wire(decoded(text))
        if wire.take(len(_MAGIC)) != _MAGIC or wire.number() != 1:
            raise Invalid("it is no SSH signature of version 1")
        blob, namespace = wire.string(), wire.string()
        wire.string()
        wire.string()
        key_type = _Wire(blob).string().decode("ascii", "replace")
        flags = None
        if key_type in HARDWARE_TYPES:
            inner = _Wire(wire.string())
            if inner.string().decode("ascii", "replace") != key_type:
                raise Invalid("the signature is of another type than its key")
            inner.string()
            [flags] = inner.take(1)
        key = f"{key_type} {base64.b64encode(blob).decode()}"
        return cls(key_type, key, namespace.decode("utf-8", "replace"), flags)


class _Wire:
    """Reads the encoding of SSH: numbers of four bytes, and strings with their length in front."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, size: int) -> bytes:
        taken = self._data[self._at : self._at + size]
        if len(taken) != size:
            raise Invalid("the SSH signature is cut off")
        self._at += size
        return taken

    def number(self) -> int:
        return int.from_bytes(self.take(4))

    def string(self) -> bytes:
        return self.take(self.number())


def verify_ssh(proof: Proof, known: SshKey) -> Assurance:
    signature = _SshSignature.read(proof.signature)
    if signature.key != known.key:
        raise Refused(f"the signature was not made by the key {proof.key}")
    if signature.namespace != NAMESPACE:
        raise Refused(f"the signature was made for {signature.namespace[:40]!r}, not for {NAMESPACE!r}")
    _check_signature(proof, known)
    if signature.flags is None:
        return Assurance.SIGNED
    # ssh-keygen accepts a signature of a key that was not touched.
    if not signature.flags & PRESENT:
        raise Refused(f"the key {proof.key} was not touched for this signature (flags {signature.flags})")
    if known.verify and not signature.flags & VERIFIED:
        raise Refused(f"the key {proof.key} did not verify the person by PIN or fingerprint (flags {signature.flags})")
    return Assurance.HARDWARE


def _check_signature(proof: Proof, known: SshKey) -> None:
    """Let `ssh-keygen` verify it. Raises `Refused` if it is wrong."""
    with tempfile.TemporaryDirectory(prefix="detent-verify-") as place:
        paths = {name: os.path.join(place, name) for name in ("allowed", "signature", "statement")}
        lines = [proof.signature[at : at + 70] for at in range(0, len(proof.signature), 70)]
        contents = {
            "allowed": f'{_PRINCIPAL} namespaces="{NAMESPACE}" {known.key}\n',
            "signature": "\n".join([_BEGIN, *lines, _END, ""]),
            "statement": proof.statement,
        }
        for name, text in contents.items():
            with open(paths[name], "wb") as file:
                file.write(text.encode())
        command = [_KEYGEN, "-Y", "verify", "-f", paths["allowed"], "-I", _PRINCIPAL, "-n", NAMESPACE]
        ran = run(
            [*command, "-s", paths["signature"]], cwd=place, timeout_s=_VERIFY_S_MAX, input_file=paths["statement"]
        )
    if ran.problem:
        raise Refused(
            f"the signature could not be checked: {ran.problem}", way_out="install OpenSSH, which has ssh-keygen"
        )
    if ran.exit_code != 0:
        raise Refused(f"the signature of the key {proof.key} is wrong: {ran.output.strip()[:200]}")
