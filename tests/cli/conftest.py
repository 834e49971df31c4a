"""Detent as people run it: a process of its own, in a directory of its own."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
RUN_S_MAX = 60


def normalised(text: str) -> str:
    """Without the times, which are all that differs between two runs."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-01 00:00:00", text)
    text = re.sub(r"since \d\d:\d\d", "since 00:00", text)
    return re.sub(r"\b\d+s\b", "0s", text)


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def ok(self) -> "Ran":
        assert self.code == 0, self.err or self.out
        return self

    def json(self):
        return msgspec.json.decode(self.out)

    def error(self) -> tuple[int, str, str]:
        """Exit code, message and way out of a refusal, which says nothing on standard output."""
        assert self.out == ""
        message, _, way_out = self.err.partition("\n  try: ")
        assert message.startswith("detent: "), self.err
        return self.code, message.removeprefix("detent: "), way_out.strip()


class Tool:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            "PATH": os.environ["PATH"],
            "COLUMNS": "80",
            "TZ": "UTC",
            "USER": "ada",
            "LC_ALL": "C.UTF-8",
            # Compiled once for all runs, as an installed Detent is.
            "PYTHONPYCACHEPREFIX": os.path.join(tempfile.gettempdir(), "detent-tests-bytecode"),
        }

    def __call__(self, *arguments: str | bytes, stdin: bytes = b"", **environment: str) -> Ran:
        return Ran(self.run(*arguments, stdin=stdin, **environment))

    def run(self, *arguments: str | bytes, stdin: bytes = b"", preexec_fn=None, **environment: str):
        return subprocess.run(
            [DETENT, *arguments],
            cwd=self.directory,
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            timeout=RUN_S_MAX,
            check=False,
            preexec_fn=preexec_fn,
        )

    @property
    def state(self) -> Path:
        return self.directory / ".workflow"

    def digest(self) -> dict[str, str]:
        """Every journal and document by content; locks and unfinished files hold nothing."""
        return {
            str(path.relative_to(self.state)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.state.rglob("*"))
            if path.is_file() and path.name != ".lock" and path.suffix != ".tmp" and ".new-" not in str(path)
        }


@pytest.fixture
def detent(tmp_path) -> Tool:
    """In an empty directory."""
    return Tool(tmp_path)


@pytest.fixture(scope="session")
def once(tmp_path_factory) -> Callable[[Callable[[Tool], None], Tool], Tool]:
    """What is typed first, for many tests, is typed once; each has a copy of what came of it."""
    made: dict[Callable[[Tool], None], Path] = {}

    def copy(make: Callable[[Tool], None], into: Tool) -> Tool:
        if make not in made:
            made[make] = tmp_path_factory.mktemp("once")
            make(Tool(made[make]))
        shutil.copytree(made[make], into.directory, symlinks=True, dirs_exist_ok=True)
        return into

    return copy


def make_project(tool: Tool) -> None:
    (tool.directory / "detent.toml").write_text('gates = "off"\n')
    tool("init").ok()


def make_session(tool: Tool) -> None:
    make_project(tool)
    tool("start", "feature", "Add login with passkeys").ok()
    tool("finish", "-m", "Wrote down 12 requirements").ok()
    tool("begin").ok()


@pytest.fixture
def project(detent, once) -> Tool:
    """In a project without a session."""
    return once(make_project, detent)


@pytest.fixture
def session(detent, once) -> Tool:
    """In a project with a feature in its second phase."""
    return once(make_session, detent)
