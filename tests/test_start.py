"""The start of a short process: msgspec without the parts that Detent never uses, and SHA-256 without OpenSSL."""

import ast
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from detent.load_msgspec import STAND_INS

SOURCE = Path(__file__).parents[1] / "src" / "detent"
#: They send no UUID through msgspec.
WITH_UUID = {SOURCE / each for each in ("store/postgres/feeds.py", "store/postgres/store.py", "worker/temporal.py")}
LOAD = "from detent.load_msgspec import load_msgspec; load_msgspec(); import sys, msgspec; "


def printed(code: str, first: Path | None = None) -> str:
    """The output of a fresh interpreter. It finds modules in `first` before all others."""
    found = f"import sys; sys.path.insert(0, {str(first)!r}); " if first else ""
    return subprocess.run(
        [sys.executable, "-c", found + code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_msgspec_is_loaded_without_them_and_they_are_real_afterwards():
    listed = f"[name for name in {list(STAND_INS)!r} if name in sys.modules]"
    used = "import uuid, decimal; x = uuid.uuid4().hex + str(decimal.Decimal(1)); "

    assert printed(f"{LOAD}print({listed}, msgspec.json.decode(b'[1]'))") == "[] [1]"
    assert printed(f"{LOAD}{used}print(len(x), msgspec.json.encode(1))") == "33 b'1'"


def test_schemas_are_made_by_the_real_module():
    made = "msgspec.json.schema(dict[str, int]), msgspec.json.schema_components([int])"
    plainly = printed(f"import msgspec; print({made})")

    assert printed(f"{LOAD}print({made})") == plainly
    assert "additionalProperties" in plainly


def test_a_msgspec_that_takes_more_from_them_is_loaded_with_the_real_ones(tmp_path):
    (tmp_path / "msgspec").mkdir()
    (tmp_path / "msgspec" / "__init__.py").write_text("from uuid import UUID, uuid4\n")

    assert printed(f"{LOAD}print(msgspec.UUID.__module__, callable(msgspec.uuid4))", tmp_path) == "uuid True"


def test_no_value_of_detent_is_a_uuid_or_a_decimal():
    importing = {
        path
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module])
        if name in STAND_INS
    }

    assert importing == WITH_UUID


@pytest.mark.parametrize("size", [0, 1, 1_000, 300_000])
def test_it_is_sha256_before_and_after_it_loads_openssl(size):
    code = (
        "import sys; from detent.sha256 import sha256; before = 'hashlib' in sys.modules; "
        f"print(sha256(b'x' * {size}).hexdigest(), sha256(b'y').hexdigest(), before, 'hashlib' in sys.modules)"
    )

    first, second, before, after = printed(code).split()

    assert (first, second) == (hashlib.sha256(b"x" * size).hexdigest(), hashlib.sha256(b"y").hexdigest())
    assert (before, after) == ("False", str(size > 256 * 1024))
