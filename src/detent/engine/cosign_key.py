"""Decrypts a private key file of cosign: scrypt makes a key of the password, and that opens a NaCl secret box.

XSalsa20 is in no library that Detent uses. A key file has a few hundred bytes, so it may be slow.
"""

import hashlib
import struct
from base64 import b64decode

import msgspec

from detent.errors import Invalid, Refused

MARKS = (b"ENCRYPTED SIGSTORE PRIVATE KEY", b"ENCRYPTED COSIGN PRIVATE KEY")
#: The strongest parameters of scrypt that are tried: they need 256 MiB.
_MAX_N, _MAX_R, _MAX_P = 1 << 18, 16, 16
_MEMORY = 320 * 1024 * 1024
_NONCE, _TAG, _BLOCK = 24, 16, 64
_WORD = 0xFFFFFFFF
_CONSTANT = struct.unpack("<4I", b"expand 32-byte k")
#: The quarter rounds of a double round, by the places of their words.
_QUARTERS = (
    (0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11),
    (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14),
)  # fmt: skip


class _Params(msgspec.Struct, frozen=True):
    N: int
    r: int
    p: int


class _Kdf(msgspec.Struct, frozen=True):
    name: str
    params: _Params
    salt: str


class _Cipher(msgspec.Struct, frozen=True):
    name: str
    nonce: str


class _Sealed(msgspec.Struct, frozen=True):
    kdf: _Kdf
    cipher: _Cipher
    ciphertext: str


def is_cosign_key(data: bytes) -> bool:
    return any(mark in data for mark in MARKS)


def decrypted(data: bytes, password: bytes) -> bytes:
    """The private key of the file, in PKCS#8. Raises `Refused` if the password is not its own."""
    try:
        body = b"".join(line for line in data.splitlines() if line and not line.startswith(b"-----"))
        sealed = msgspec.json.decode(b64decode(body, validate=True), type=_Sealed)
        salt, nonce, box = (b64decode(text) for text in (sealed.kdf.salt, sealed.cipher.nonce, sealed.ciphertext))
    except (ValueError, msgspec.DecodeError) as error:
        raise Invalid(f"the key file is no key of cosign that can be read: {error}") from None
    params = sealed.kdf.params
    is_known = (sealed.kdf.name, sealed.cipher.name) == ("scrypt", "nacl/secretbox")
    is_bounded = 1 < params.N <= _MAX_N and 0 < params.r <= _MAX_R and 0 < params.p <= _MAX_P
    if not is_known or not is_bounded or len(nonce) != _NONCE or len(box) <= _TAG:
        raise Invalid("the key file is encrypted in another way than cosign does it")
    key = hashlib.scrypt(password, salt=salt, n=params.N, r=params.r, p=params.p, maxmem=_MEMORY, dklen=32)
    return _opened(key, nonce, box)


def _opened(key: bytes, nonce: bytes, box: bytes) -> bytes:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - an extra
    from cryptography.hazmat.primitives.poly1305 import Poly1305  # noqa: PLC0415

    tag, hidden = box[:_TAG], box[_TAG:]
    stream = _stream(_subkey(key, nonce[:16]), nonce[16:], 32 + len(hidden))
    try:
        Poly1305.verify_tag(stream[:32], hidden, tag)
    except InvalidSignature:
        raise Refused("the password does not open the key file", way_out="set DETENT_KEY_PASSWORD") from None
    return bytes(a ^ b for a, b in zip(hidden, stream[32:], strict=True))


def _subkey(key: bytes, nonce: bytes) -> bytes:
    """HSalsa20: the words of the last state that the input does not tell."""
    state = _rounds(_state(key, nonce))
    return struct.pack("<8I", *(state[at] for at in (0, 5, 10, 15, 6, 7, 8, 9)))


def _stream(key: bytes, nonce: bytes, length: int) -> bytes:
    """Salsa20: each block is a state of its own, by its number."""
    blocks = []
    for number in range(-(-length // _BLOCK)):
        start = _state(key, nonce + struct.pack("<Q", number))
        mixed = _rounds(start)
        blocks.append(struct.pack("<16I", *((a + b) & _WORD for a, b in zip(start, mixed, strict=True))))
    return b"".join(blocks)[:length]


def _state(key: bytes, middle: bytes) -> list[int]:
    k, m, c = struct.unpack("<8I", key), struct.unpack("<4I", middle), _CONSTANT
    return [c[0], *k[:4], c[1], *m, c[2], *k[4:], c[3]]


def _rounds(start: list[int]) -> list[int]:
    state = list(start)
    for _ in range(10):
        for a, b, c, d in _QUARTERS:
            for to, one_word, other, by in ((b, a, d, 7), (c, b, a, 9), (d, c, b, 13), (a, d, c, 18)):
                total = (state[one_word] + state[other]) & _WORD
                state[to] ^= (total << by | total >> (32 - by)) & _WORD
    return state
