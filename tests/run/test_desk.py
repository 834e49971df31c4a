"""What is started for a run finds this Detent, and apart from it just what it would find otherwise."""

import os
import shutil
import subprocess
import sys

import pytest

from detent.core.run_event import RunEvent
from detent.run.desk import Desk, RunOptions
from tests.run.scenes import Cast, scenes

HERE = os.path.dirname(sys.executable)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Makes a desk where PATH is this."""
    (tmp_path / "project").mkdir()
    with scenes(tmp_path / "project") as make:
        here = make()

        def seated(*path):
            monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))
            told: list[RunEvent] = []
            return Desk(here.project, here.handle.id, "run-1", agents=Cast(), options=RunOptions(), tell=told.append)

        yield seated


@pytest.fixture
def system():
    """The directories of PATH in which there is no Detent."""
    return [path for path in os.environ["PATH"].split(os.pathsep) if not os.path.exists(os.path.join(path, "detent"))]


def program(directory, name, said):
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\necho {said}\n")
    (directory / name).chmod(0o755)
    return directory


def found(desk, command, cwd="/"):
    """What a shell with the marks of the desk says."""
    env = {**os.environ, **desk.marks}
    return subprocess.run(["sh", "-c", command], env=env, cwd=cwd, capture_output=True, text=True, check=False)


def test_nothing_is_changed_where_this_detent_is_found_already(desk, system):
    assert "PATH" not in desk(HERE, *system).marks


@pytest.mark.parametrize("installed", ["none", "another"])
def test_detent_is_this_one_whichever_is_installed(desk, system, tmp_path, installed):
    other = [program(tmp_path / "other", "detent", "not this one")] if installed == "another" else []

    seated = desk(*other, *system)

    ran = found(seated, "detent --version; detent status; command -v detent")
    assert "detent " in ran.stdout
    assert "not this one" not in ran.stdout
    assert found(seated, "detent workflows", cwd=tmp_path / "project").returncode == 0


def test_every_other_program_is_the_one_that_it_was(desk, system, tmp_path):
    own = program(tmp_path / "venv", "python", "of the project")

    seated = desk(own, *system)

    assert found(seated, "python").stdout == "of the project\n"
    added = seated.marks["PATH"].removesuffix(os.environ["PATH"]).rstrip(os.pathsep)
    assert os.listdir(added) == ["detent"]


def test_the_interpreter_of_detent_is_not_put_before_that_of_the_project(desk, system, tmp_path):
    own = program(tmp_path / "venv", "python", "of the project")

    seated = desk(own, HERE, *system)

    assert found(seated, "python; command -v detent").stdout == f"of the project\n{HERE}/detent\n"


def test_modules_of_the_project_do_not_take_the_place_of_those_of_detent(desk, system, tmp_path):
    seated = desk(*system)
    for name in ("click.py", "msgspec.py", "detent.py"):
        (tmp_path / "project" / name).write_text("raise SystemExit('a module of the project')\n")

    ran = found(seated, "detent workflows", cwd=tmp_path / "project")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_path_with_blanks_and_quotes_is_no_trouble(desk, system, tmp_path):
    odd = program(tmp_path / "o'd \"d", "tool", "odd")

    assert found(desk(odd, *system), "tool; detent --version").stdout.startswith("odd\ndetent ")
    assert shutil.which("detent") is None
