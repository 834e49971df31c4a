"""Keys of approvers: SSH keys in files, SSH keys as a device has them, and a WebAuthn authenticator in software."""

import base64
import hashlib
import json
import subprocess
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.hashes import SHA256
from fido2 import cbor
from fido2.cose import ES256

from detent.core.actor import Proof
from detent.core.decision.approvers import Approver, Approvers, SshKey, WebAuthnKey
from detent.core.decision.statement import NAMESPACE, Statement, challenge, signed_bytes
from detent.engine.ssh_signatures import SshSigner, public_key, ssh_proof
from detent.engine.webauthn import webauthn_proof

SK_TYPE = b"sk-ssh-ed25519@openssh.com"
ORIGIN = "http://localhost:7337"
#: Flags of a device: nobody was there, somebody touched it, somebody touched it and gave the PIN.
ALONE, TOUCHED, VERIFIED = 0, 1, 5


def make_ssh_key(file: Path) -> SshKey:
    """A key in a file, without a passphrase."""
    file.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)
    return SshKey(key=public_key(str(file)))


def ssh_signer(file: Path) -> SshSigner:
    if not file.exists():
        make_ssh_key(file)
    return SshSigner(str(file))


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


class Device:
    """An SSH key in a device: a software key whose signatures have the form of a device's, with any flags."""

    def __init__(self, *, flags: int = TOUCHED, verify: bool = False, namespace: str = NAMESPACE) -> None:
        self._private = ed25519.Ed25519PrivateKey.generate()
        self._flags, self._namespace = flags, namespace.encode()
        blob = _string(SK_TYPE) + _string(self._private.public_key().public_bytes_raw()) + _string(b"ssh:")
        self._blob = blob
        self.key = SshKey(key=f"{SK_TYPE.decode()} {base64.b64encode(blob).decode()}", verify=verify)

    def identity(self, approvers: Approvers) -> str:
        owned = approvers.owner(self.key.id)
        assert owned is not None
        return owned.approver.name

    def sign(self, statement: Statement) -> Proof:
        digest = hashlib.sha512(signed_bytes(statement)).digest()
        signed = b"SSHSIG" + _string(self._namespace) + _string(b"") + _string(b"sha512") + _string(digest)
        seen = bytes([self._flags]) + (7).to_bytes(4)
        raw = self._private.sign(hashlib.sha256(b"ssh:").digest() + seen + hashlib.sha256(signed).digest())
        whole = b"SSHSIG" + (1).to_bytes(4) + _string(self._blob) + _string(self._namespace) + _string(b"")
        whole += _string(b"sha512") + _string(_string(SK_TYPE) + _string(raw) + seen)
        return ssh_proof(statement, base64.b64encode(whole).decode())


class Authenticator:
    """A WebAuthn authenticator and the browser around it."""

    def __init__(self, *, flags: int = VERIFIED, origin: str = ORIGIN, enrolled_at: str = ORIGIN) -> None:
        self._private = ec.generate_private_key(ec.SECP256R1())
        self._flags, self._origin = flags, origin
        self._id = hashlib.sha256(self._private.private_numbers().private_value.to_bytes(32)).digest()
        self._cose = dict(ES256.from_cryptography_key(self._private.public_key()))  # type: ignore[no-untyped-call]
        self.key = WebAuthnKey(id=_url(self._id), public_key=_url(cbor.encode(self._cose)), origin=enrolled_at)

    def identity(self, approvers: Approvers) -> str:
        owned = approvers.owner(self.key.id)
        assert owned is not None
        return owned.approver.name

    def _data(self, more: bytes = b"", flags: int = 0) -> bytes:
        return hashlib.sha256(b"localhost").digest() + bytes([self._flags | flags]) + (3).to_bytes(4) + more

    def _client(self, purpose: str, nonce: bytes) -> bytes:
        return json.dumps({"type": purpose, "challenge": _url(nonce), "origin": self._origin}).encode()

    def get(self, nonce: bytes) -> dict[str, str]:
        """The response to `navigator.credentials.get`."""
        data, client = self._data(), self._client("webauthn.get", nonce)
        signature = self._private.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(SHA256()))
        return {"authenticatorData": _url(data), "clientDataJSON": _url(client), "signature": _url(signature)}

    def create(self, nonce: bytes) -> dict[str, str]:
        """The response to `navigator.credentials.create`."""
        credential = bytes(16) + len(self._id).to_bytes(2) + self._id + cbor.encode(self._cose)
        attestation = {"fmt": "none", "attStmt": {}, "authData": self._data(credential, flags=0x40)}
        client = self._client("webauthn.create", nonce)
        return {"clientDataJSON": _url(client), "attestationObject": _url(cbor.encode(attestation))}

    def sign(self, statement: Statement) -> Proof:
        return webauthn_proof(statement, self.key.id, self.get(challenge(statement)))


def approvers(**keys: SshKey | WebAuthnKey) -> Approvers:
    """A list that was written by hand: each name with one key."""
    return Approvers(approver=tuple(Approver(name=name, keys=(key,)) for name, key in keys.items()))


def list_approvers(root: Path, **keys: SshKey | WebAuthnKey) -> None:
    """Write `approvers.toml` by hand."""
    lines = []
    for name, key in keys.items():
        if isinstance(key, SshKey):
            table = f'{{ type = "ssh", key = "{key.key}", verify = {str(key.verify).lower()} }}'
        else:
            table = (
                f'{{ type = "webauthn", id = "{key.id}", public_key = "{key.public_key}", origin = "{key.origin}" }}'
            )
        lines.append(f'[[approver]]\nname = "{name}"\nkeys = [{table}]\n')
    (root / "approvers.toml").write_text("\n".join(lines))


def _url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
