"""Private keys in files, for signing attestations: OpenSSH keys, PEM keys, and those of cosign.

The library that signs is an extra. A key says who attests. It decides nothing: decisions have proofs of their own.
"""

import hashlib
import os
from typing import TYPE_CHECKING, NamedTuple

from detent.core.attestation.envelope import Signature, signed_bytes
from detent.engine.cosign_key import decrypted, is_cosign_key
from detent.errors import Invalid, NotFound, Refused
from detent.extras import install_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

MAX_BYTES = 64 * 1024
#: Variables with the password of a key; the second one is that of Sigstore's tools.
PASSWORDS = ("DETENT_KEY_PASSWORD", "COSIGN_PASSWORD")
_SSH = b"OPENSSH PRIVATE KEY"


class KeyFile(NamedTuple):
    """A key that can sign."""

    private: "PrivateKeyTypes"
    keyid: str
    #: The public key as PEM, for those who verify.
    public: bytes

    def sign(self, data: bytes) -> Signature:
        """The signature of the payload of an envelope."""
        from cryptography.hazmat.primitives import hashes  # noqa: PLC0415 - an extra
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa  # noqa: PLC0415

        message, key = signed_bytes(data), self.private
        if isinstance(key, ed25519.Ed25519PrivateKey):
            return Signature(keyid=self.keyid, sig=key.sign(message))
        if isinstance(key, ec.EllipticCurvePrivateKey):
            by_size = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
            return Signature(keyid=self.keyid, sig=key.sign(message, ec.ECDSA(by_size[key.curve.key_size])))
        assert isinstance(key, rsa.RSAPrivateKey)
        padded = padding.PSS(mgf=padding.MGF1(hashes.SHA256()), salt_length=padding.PSS.DIGEST_LENGTH)
        return Signature(keyid=self.keyid, sig=key.sign(message, padded, hashes.SHA256()))


def read_key(path: str, environment: "os._Environ[str] | dict[str, str]") -> KeyFile:
    """The key of a file. A password comes from the environment."""
    try:
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    except ImportError:
        raise Refused(
            "signing needs the package cryptography", way_out=f"{install_command('attest')}, or --unsigned"
        ) from None
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError:
        raise NotFound(f"there is no key file {path}") from None
    except OSError as error:
        raise Invalid(f"the key file {path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise Invalid(f"{path} has more than {MAX_BYTES} bytes")
    password = next((environment[name].encode() for name in PASSWORDS if environment.get(name)), None)
    if is_cosign_key(data):
        if password is None:
            raise Refused(f"{path} has a password", way_out=f"set {' or '.join(PASSWORDS)}")
        return _known(path, serialization.load_der_private_key(decrypted(data, password), None))
    load = serialization.load_ssh_private_key if _SSH in data else serialization.load_pem_private_key
    try:
        private = _loaded(load, data, password)
    except TypeError:
        raise Refused(f"{path} has a password", way_out=f"set {PASSWORDS[0]}") from None
    except ValueError as error:
        raise Invalid(f"{path} is no private key that can be read: {error}") from None
    return _known(path, private)


def _loaded(
    load: "Callable[[bytes, bytes | None], PrivateKeyTypes]", data: bytes, password: bytes | None
) -> "PrivateKeyTypes":
    """The key; the password is for one that has one."""
    try:
        return load(data, None)
    except TypeError:
        if password is None:
            raise
        return load(data, password)


def _known(path: str, private: "PrivateKeyTypes | object") -> KeyFile:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa  # noqa: PLC0415

    if not isinstance(private, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise Refused(f"{path} is a key of another kind than Ed25519, ECDSA and RSA", way_out="name another key")
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    public = private.public_key()
    der = public.public_bytes(serialization.Encoding.DER, form)
    pem = public.public_bytes(serialization.Encoding.PEM, form)
    return KeyFile(private, hashlib.sha256(der).hexdigest(), pem)
