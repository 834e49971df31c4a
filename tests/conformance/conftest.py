import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from detent.doctor.invariants import check
from detent.engine.project import Project, open_project
from tests.support.disk import Disk
from tests.support.project import build_project
from tests.support.values import Clock


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DETENT_PROJECT", "DETENT_ACTOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    build_project(tmp_path)
    return tmp_path


@pytest.fixture
def disk(root: Path) -> Disk:
    return Disk(root / ".workflow")


@pytest.fixture
def project(root: Path, clock: Clock) -> Iterator[Project]:
    """Whatever a test does with it, all invariants hold afterwards."""
    with open_project(root, actor="tester", clock=clock) as opened:
        yield opened
        opened.flush()
        assert check(opened) == []


@pytest.fixture
def elsewhere(root: Path) -> Callable[[str], "subprocess.CompletedProcess[str]"]:
    """Run Python text in a process of its own; `open_project` and the project's `root` are there to use."""

    def run(code: str) -> "subprocess.CompletedProcess[str]":
        text = f"from detent.engine.project import open_project\nroot = {str(root)!r}\n{code}"
        return subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=False)

    return run
