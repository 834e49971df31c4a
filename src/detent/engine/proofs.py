"""Signatures of people: makes them with an SSH key, and verifies those of SSH keys and of WebAuthn credentials.

`verify_proof` says who signed, and how strong that is. Whether the statement is about the decision at hand is asked
elsewhere, see `core/decision/matching.py`. WebAuthn needs `fido2`, which the extra `detent[hardware]` installs.
"""

import base64
import binascii
import hashlib
import os
import tempfile
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from detent.core.actor import Assurance, Proof
from detent.core.decision.approvers import (
    HARDWARE_TYPES,
    Approvers,
    SshKey,
    WebAuthnKey,
    fingerprint,
    ssh_key,
)
from detent.core.decision.statement import NAMESPACE, Statement, challenge, read_statement, signed_bytes
from detent.errors import Invalid, NotFound, Refused
from detent.process import attach, run

SSH, SSH_HARDWARE, WEBAUTHN = "ssh", "ssh-sk", "webauthn"
METHODS = (SSH, SSH_HARDWARE, WEBAUTHN)
#: The program that signs and verifies with SSH keys.
_KEYGEN = "ssh-keygen"
#: The name of the signer in the list that is given to the program; our own list says who that is.
_PRINCIPAL = "approver"
_VERIFY_S_MAX = 30.0
#: Long enough to look for the key and to touch it.
_SIGN_S_MAX = 300.0
_MAX_SIGNATURE = 64 * 1024
_MAGIC = b"SSHSIG"
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
#: Flags of an authenticator: the person was present; the person was verified by a PIN or a fingerprint.
_PRESENT, _VERIFIED = 0x01, 0x04
#: Algorithms of new WebAuthn credentials: Ed25519, ECDSA on P-256, RSA.
_ALGORITHMS = (-8, -7, -257)
_CEREMONY_MS = 300_000


class Verified(NamedTuple):
    """The approver who signed."""

    name: str
    roles: tuple[str, ...]
    assurance: Assurance
    statement: Statement


class Signer(Protocol):
    """Signs a statement for a person."""

    def identity(self, approvers: Approvers) -> str:
        """The approver who signs; `Refused` if the key is not known."""
        ...

    def sign(self, statement: Statement) -> Proof: ...


def verify_proof(proof: Proof, approvers: Approvers) -> Verified:
    """Who signed the statement of the proof, and how strongly; `Refused` with the reason if that is not proven."""
    owned = approvers.owner(proof.key)
    if owned is None:
        known = ", ".join(approvers.names) or "no approver"
        raise Refused(
            f"the key {proof.key[:80] or '(none)'} belongs to no approver; approvers.toml lists {known}",
            way_out="detent approver add NAME --public-key FILE, signed by one of them",
        )
    try:
        statement = read_statement(proof.statement)
        match owned.key:
            case SshKey():
                assurance = _verify_ssh(proof, owned.key)
            case WebAuthnKey():
                assurance = _verify_webauthn(proof, owned.key, statement)
    except Invalid as error:
        raise Refused(f"the proof of {owned.approver.name} cannot be read: {error.message}") from error
    return Verified(owned.approver.name, owned.approver.roles, assurance, statement)


# SSH


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
                text = opened.read(_MAX_SIGNATURE)
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
        wire = _Wire(_decoded(text))
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


def _verify_ssh(proof: Proof, known: SshKey) -> Assurance:
    signature = _SshSignature.read(proof.signature)
    if signature.key != known.key:
        raise Refused(f"the signature was not made by the key {proof.key}")
    if signature.namespace != NAMESPACE:
        raise Refused(f"the signature was made for {signature.namespace[:40]!r}, not for {NAMESPACE!r}")
    _check_signature(proof, known)
    if signature.flags is None:
        return Assurance.SIGNED
    # ssh-keygen accepts a signature of a key that was not touched.
    if not signature.flags & _PRESENT:
        raise Refused(f"the key {proof.key} was not touched for this signature (flags {signature.flags})")
    if known.verify and not signature.flags & _VERIFIED:
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


# WebAuthn


def registration_options(name: str, origin: str, *, nonce: bytes, approvers: Approvers) -> dict[str, Any]:
    """The options of `navigator.credentials.create` for a new key of an approver; binary values are base64url."""
    known = [key.id for approver in approvers.approver for key in approver.keys if isinstance(key, WebAuthnKey)]
    return {
        "rp": {"id": _rp_id(origin), "name": "Detent"},
        "user": {"id": _base64url(hashlib.sha256(name.encode()).digest()), "name": name, "displayName": name},
        "challenge": _base64url(nonce),
        "pubKeyCredParams": [{"type": "public-key", "alg": number} for number in _ALGORITHMS],
        "authenticatorSelection": {"userVerification": "required"},
        "excludeCredentials": _credentials(known),
        "attestation": "none",
        "timeout": _CEREMONY_MS,
    }


def registered_key(response: Mapping[str, str], origin: str, *, nonce: bytes) -> WebAuthnKey:
    """The key that an authenticator made. `response` has `clientDataJSON` and `attestationObject`, base64url.

    No attestation is asked for: it would say which device it is, not whose.
    """
    webauthn, _, cbor = _fido2()
    try:
        client = _decoded(response["clientDataJSON"], urlsafe=True)
        attestation = webauthn.AttestationObject(_decoded(response["attestationObject"], urlsafe=True))
        data = attestation.auth_data
        _check_client_data(client, "webauthn.create", nonce, origin)
        _check_authenticator(bytes(data), origin)
        credential = data.credential_data
        if credential is None:
            raise Invalid("the response has no key")
        return WebAuthnKey(
            id=_base64url(credential.credential_id),
            public_key=_base64url(cbor.encode(dict(credential.public_key))),
            origin=origin,
        )
    except (KeyError, ValueError, TypeError, IndexError) as error:
        raise Invalid(f"the response of the authenticator cannot be read: {error}") from error


def authentication_options(statement: Statement, origin: str, approvers: Approvers) -> dict[str, Any]:
    """The options of `navigator.credentials.get` that sign the statement; binary values are base64url."""
    keys = [key for approver in approvers.approver for key in approver.keys if isinstance(key, WebAuthnKey)]
    return {
        "rpId": _rp_id(origin),
        "challenge": _base64url(challenge(statement)),
        "allowCredentials": _credentials(key.id for key in keys if key.origin == origin),
        "userVerification": "required",
        "timeout": _CEREMONY_MS,
    }


def webauthn_proof(statement: Statement, credential: str, response: Mapping[str, str]) -> Proof:
    """The proof of an authenticator's response, which has `authenticatorData`, `clientDataJSON` and `signature`."""
    try:
        parts = {name: response[name] for name in ("authenticatorData", "clientDataJSON", "signature")}
    except KeyError as error:
        raise Invalid(f"the response of the authenticator lacks {error}") from error
    return Proof(
        assurance=Assurance.HARDWARE,
        method=WEBAUTHN,
        statement=signed_bytes(statement).decode(),
        signature=base64.b64encode(msgspec.json.encode(parts)).decode(),
        key=credential,
    )


class _Response(msgspec.Struct, frozen=True):
    """What an authenticator signed, each part base64url."""

    authenticator_data: str = msgspec.field(name="authenticatorData")
    client_data: str = msgspec.field(name="clientDataJSON")
    signature: str


class _ClientData(msgspec.Struct, frozen=True, kw_only=True):
    """What the browser says about the page that asked."""

    type: str
    challenge: str
    origin: str
    crossOrigin: bool = False  # noqa: N815 - the standard's name


def _verify_webauthn(proof: Proof, known: WebAuthnKey, statement: Statement) -> Assurance:
    try:
        response = msgspec.json.decode(_decoded(proof.signature), type=_Response)
    except msgspec.DecodeError as error:
        raise Invalid(f"the response of the authenticator is damaged: {error}") from error
    client = _decoded(response.client_data, urlsafe=True)
    authenticator = _decoded(response.authenticator_data, urlsafe=True)
    _check_client_data(client, "webauthn.get", challenge(statement), known.origin)
    _check_authenticator(authenticator, known.origin)
    _, cose, cbor = _fido2()
    problems = _key_problems()
    try:
        key = cose.CoseKey.parse(cbor.decode(_decoded(known.public_key, urlsafe=True)))
        signed = authenticator + hashlib.sha256(client).digest()
        key.verify(signed, _decoded(response.signature, urlsafe=True))
    except problems as error:
        raise Refused(f"the signature of the key {proof.key[:20]} is wrong") from error
    return Assurance.HARDWARE


def _check_client_data(client: bytes, purpose: str, expected: bytes, origin: str) -> None:
    try:
        client_data = msgspec.json.decode(client, type=_ClientData)
    except msgspec.DecodeError as error:
        raise Invalid(f"the data of the browser is damaged: {error}") from error
    if client_data.type != purpose:
        raise Refused(f"the response is for {client_data.type[:40]!r}, not for {purpose!r}")
    if client_data.challenge.rstrip("=") != _base64url(expected):
        raise Refused("the response was signed for another decision")
    # The browser lets every port of a host use a key, so the origin with its port is compared.
    if client_data.origin != origin or client_data.crossOrigin:
        raise Refused(f"the key was used in the page {client_data.origin[:80]}, and it belongs to {origin}")


def _check_authenticator(data: bytes, origin: str) -> None:
    if len(data) < 37 or data[:32] != hashlib.sha256(_rp_id(origin).encode()).digest():
        raise Refused(f"the response of the authenticator is not for {_rp_id(origin)}")
    flags = data[32]
    if not flags & _PRESENT:
        raise Refused(f"the key was not touched (flags {flags})")
    if not flags & _VERIFIED:
        raise Refused(f"the key did not verify the person by PIN or fingerprint (flags {flags})")


def _rp_id(origin: str) -> str:
    return urlsplit(origin).hostname or ""


def _credentials(ids: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "public-key", "id": id_} for id_ in ids]


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _decoded(text: str, *, urlsafe: bool = False) -> bytes:
    if len(text) > _MAX_SIGNATURE:
        raise Invalid(f"a signature may have {_MAX_SIGNATURE} characters and this one has {len(text)}")
    try:
        if urlsafe:
            return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise Invalid("the signature is not base64") from error


def _key_problems() -> tuple[type[Exception], ...]:
    """What a wrong signature, or a key of an unknown kind, raises."""
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm  # noqa: PLC0415 - comes with fido2

    return (
        InvalidSignature,
        UnsupportedAlgorithm,
        *(ValueError, TypeError, KeyError, IndexError, NotImplementedError),
    )


def _fido2() -> tuple[Any, Any, Any]:
    """The modules of `fido2` that read and verify WebAuthn."""
    try:
        from fido2 import cbor, cose, webauthn  # noqa: PLC0415 - an extra, and slow to load
    except ImportError as error:
        raise Refused(
            "a WebAuthn key cannot be checked without fido2, which is not installed",
            way_out="pip install 'detent[hardware]'",
        ) from error
    return webauthn, cose, cbor
