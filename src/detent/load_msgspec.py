"""Loads msgspec quickly, for commands and hooks whose start is felt."""

import sys


def load_msgspec() -> None:
    """Load msgspec without `typing_extensions`, which it prefers to `typing`: that loads `inspect`, and takes long."""
    if "typing_extensions" in sys.modules:
        return
    sys.modules["typing_extensions"] = None  # type: ignore[assignment]
    try:
        import msgspec  # noqa: F401, PLC0415
    finally:
        del sys.modules["typing_extensions"]
