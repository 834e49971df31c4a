"""SHA-256. Loading OpenSSL takes longer than a short command takes to hash, so that a process begins without it."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from hashlib import _Hash

#: Bytes after which OpenSSL, which hashes six times as fast, is worth its loading.
_FEW = 256 * 1024
_hashed = 0


def _own() -> "Callable[[bytes], _Hash]":
    """The function of the interpreter itself; its module has another name since Python 3.12."""
    try:
        from _sha256 import sha256 as own  # type: ignore[import-not-found]  # noqa: PLC0415
    except ImportError:
        from _sha2 import sha256 as own  # type: ignore[import-not-found]  # noqa: PLC0415
    return own  # type: ignore[no-any-return]


_make = _own()


def sha256(data: bytes = b"") -> "_Hash":
    """The same as `hashlib.sha256`."""
    global _hashed, _make  # noqa: PLW0603 - what this process has hashed
    if _hashed <= _FEW:
        _hashed += len(data)
        if _hashed > _FEW:
            from hashlib import sha256 as fast  # noqa: PLC0415

            _make = fast
    return _make(data)
