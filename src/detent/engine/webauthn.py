"""WebAuthn: the options that a browser is given, new keys, and signatures.

It needs `fido2`, which the extra `detent[hardware]` installs.
"""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from detent.core.actor import Assurance, Proof
from detent.core.decision.approvers import Approvers, WebAuthnKey
from detent.core.decision.signature import PRESENT, VERIFIED, decoded
from detent.core.decision.statement import Statement, challenge, signed_bytes
from detent.errors import Invalid, Refused
from detent.extras import install_command

WEBAUTHN = "webauthn"
#: Algorithms of new WebAuthn credentials: Ed25519, ECDSA on P-256, RSA.
_ALGORITHMS = (-8, -7, -257)
_CEREMONY_MS = 300_000


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
        client = decoded(response["clientDataJSON"], urlsafe=True)
        attestation = webauthn.AttestationObject(decoded(response["attestationObject"], urlsafe=True))
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
    """The answer of an authenticator, each part base64url."""

    authenticator_data: str = msgspec.field(name="authenticatorData")
    client_data: str = msgspec.field(name="clientDataJSON")
    signature: str


class _ClientData(msgspec.Struct, frozen=True, kw_only=True):
    """The browser's statement about the page that asked."""

    type: str
    challenge: str
    origin: str
    crossOrigin: bool = False  # noqa: N815 - the standard's name


def verify_webauthn(proof: Proof, known: WebAuthnKey, statement: Statement) -> Assurance:
    try:
        response = msgspec.json.decode(decoded(proof.signature), type=_Response)
    except msgspec.DecodeError as error:
        raise Invalid(f"the response of the authenticator is damaged: {error}") from error
    client = decoded(response.client_data, urlsafe=True)
    authenticator = decoded(response.authenticator_data, urlsafe=True)
    _check_client_data(client, "webauthn.get", challenge(statement), known.origin)
    _check_authenticator(authenticator, known.origin)
    _, cose, cbor = _fido2()
    problems = _key_problems()
    try:
        key = cose.CoseKey.parse(cbor.decode(decoded(known.public_key, urlsafe=True)))
        signed = authenticator + hashlib.sha256(client).digest()
        key.verify(signed, decoded(response.signature, urlsafe=True))
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
    if not flags & PRESENT:
        raise Refused(f"the key was not touched (flags {flags})")
    if not flags & VERIFIED:
        raise Refused(f"the key did not verify the person by PIN or fingerprint (flags {flags})")


def _rp_id(origin: str) -> str:
    return urlsplit(origin).hostname or ""


def _credentials(ids: Iterable[str]) -> list[dict[str, str]]:
    return [{"type": "public-key", "id": id_} for id_ in ids]


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _key_problems() -> tuple[type[Exception], ...]:
    """The errors that a wrong signature, or a key of an unknown kind, raises."""
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
            way_out=install_command("hardware"),
        ) from error
    return webauthn, cose, cbor
