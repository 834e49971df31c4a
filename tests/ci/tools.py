"""The environment of tests/ci: pre-commit, the verifiers of attestations, and the official messages of OTLP."""

import hashlib
import os
import tempfile
from pathlib import Path

PACKAGES = (
    "pre-commit>=4.0,<5",
    "in-toto-attestation>=0.9,<1",
    "securesystemslib[crypto]>=1.3,<2",
    "opentelemetry-proto>=1.27,<2",
    "protobuf>=4",
    "hatchling>=1.25",
    "pynacl>=1.5",
)
_NAME = hashlib.sha256("\n".join(PACKAGES).encode()).hexdigest()[:12]
#: Outside of the checkout, and shared by all of its worktrees.
ENVIRONMENT = Path(os.environ.get("XDG_CACHE_HOME") or tempfile.gettempdir(), f"detent-ci-{os.getuid()}-{_NAME}")
PYTHON = ENVIRONMENT / "bin" / "python"
READY = ENVIRONMENT / ".ready"
