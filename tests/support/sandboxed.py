"""Runs with and without a sandbox.

The tests run as on a machine whose bubblewrap does not work: a program of that name, first on PATH, fails. So an agent
of a test can write beside its project, and a run starts as fast as without a sandbox. A test of the sandbox calls
`use_sandbox`, which takes that program away again.
"""

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

import pytest

from detent.process.sandbox import problem

#: What the program says.
NO_SANDBOX = "no sandbox in tests"
#: What `detent doctor` says of it.
OFF_NOTICE = f"detent: the sandbox of runs is off: bwrap does not work here: {NO_SANDBOX}\n"
_PREFIX = "detent-no-sandbox-"


def use_no_sandbox() -> None:
    """Put a program that fails before the real one, for this process and those that it starts."""
    if os.path.basename(_first()).startswith(_PREFIX):
        return
    directory = tempfile.mkdtemp(prefix=_PREFIX)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    program = Path(directory, "bwrap")
    program.write_text(f"#!/bin/sh\necho {NO_SANDBOX} >&2\nexit 1\n")
    program.chmod(0o755)
    os.environ["PATH"] = f"{directory}{os.pathsep}{os.environ['PATH']}"


def real_path() -> str:
    """PATH without the program that fails."""
    entries = os.environ["PATH"].split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if not os.path.basename(entry).startswith(_PREFIX))


def use_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this test have the real one; it is skipped where there is none."""
    if (reason := _real_problem(real_path())) is not None:
        pytest.skip(f"there is no sandbox: {reason}")
    monkeypatch.setenv("PATH", real_path())
    problem.cache_clear()


@cache
def _real_problem(path: str) -> str | None:
    before = os.environ["PATH"]
    os.environ["PATH"] = path
    try:
        return problem.__wrapped__()
    finally:
        os.environ["PATH"] = before


def _first() -> str:
    return os.environ["PATH"].split(os.pathsep)[0]
