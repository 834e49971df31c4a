"""A session in a phase that has gates, in a project with some code and a test."""

import shutil
import subprocess
import sys
from pathlib import Path

from detent.config.catalogue import Catalogue
from detent.config.settings import parse_settings
from detent.core.gate.evidence import Verdict
from detent.engine.project import Clock, Project, open_project, utc_now
from detent.engine.session import SessionHandle
from tests.support.project import build_project, write

UNITTEST = f"{sys.executable} -m unittest"
#: Options of pytest: without plugins of this environment, which take longer to load than the tests to run.
WITHOUT_PLUGINS = " ".join(
    f"-p no:{name}" for name in ("anyio", "cacheprovider", "hypothesispytest", "pytest_cov", "xdist")
)
CODE = "def add(a, b):\n    return a + b\n"
TEST = """import unittest

from calc import add


class T(unittest.TestCase):
    def test_add(self):
        self.assertEqual(add(2, 3), 5)
"""
HAS_GIT = shutil.which("git") is not None


def calculator(root: Path, *, git: bool = False, code: str = CODE) -> None:
    """The files of a little project; unittest finds the test from the top."""
    write(root, "calc.py", code)
    write(root, "tests/__init__.py", "")
    write(root, "tests/test_calc.py", TEST)
    if git:
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)


def started(
    root: Path, gates: str, *, clock: Clock | None = None, more: str = "", phases: str | None = None
) -> tuple[Project, SessionHandle]:
    """An open project and the handle of a session whose first phase `work` has just these gates."""
    listed = phases or f'[{{ key = "work", gates = [{gates}] }}, "after"]'
    settings = f"{more}\n[workflows.short]\nphases = {listed}\n"
    Catalogue(parse_settings(settings, "detent.toml")).workflow("short")
    build_project(root, settings, agent=True, constitution=True)
    project = open_project(root, actor="tester", clock=clock or utc_now)
    return project, project.start("short", "try it")


def verdicts(handle: SessionHandle) -> dict[str, Verdict]:
    judgements = (judgement for listed in handle.gates.judgements().values() for judgement in listed)
    return {judgement.gate: judgement.verdict for judgement in judgements}
