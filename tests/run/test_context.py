"""What is started for a run finds this Detent, and apart from it just what it would find otherwise."""

import os
import shutil
import subprocess
import sys

import pytest

from detent.core.run.run_event import RunEvent
from detent.run.context import RunContext, RunOptions
from tests.support.scripted_run import Cast, scenes

HERE = os.path.dirname(sys.executable)


@pytest.fixture
def run_context(tmp_path, monkeypatch):
    """Makes a desk where PATH is this."""
    (tmp_path / "project").mkdir()
    with scenes(tmp_path / "project") as make:
        here = make()

        def seated(*path):
            monkeypatch.setenv("PATH", os.pathsep.join(map(str, path)))
            told: list[RunEvent] = []
            return RunContext(
                here.project, here.handle.id, "run-1", agents=Cast(), options=RunOptions(), tell=told.append
            )

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


def found(run_context, command, cwd="/"):
    """What a shell with the marks of the desk says."""
    env = {**os.environ, **run_context.marks}
    return subprocess.run(["sh", "-c", command], env=env, cwd=cwd, capture_output=True, text=True, check=False)


def test_nothing_is_changed_where_this_detent_is_found_already(run_context, system):
    assert "PATH" not in run_context(HERE, *system).marks


@pytest.mark.parametrize("installed", ["none", "another"])
def test_detent_is_this_one_whichever_is_installed(run_context, system, tmp_path, installed):
    other = [program(tmp_path / "other", "detent", "not this one")] if installed == "another" else []

    seated = run_context(*other, *system)

    ran = found(seated, "detent --version; detent status; command -v detent")
    assert "detent " in ran.stdout
    assert "not this one" not in ran.stdout
    assert found(seated, "detent workflows", cwd=tmp_path / "project").returncode == 0


def test_every_other_program_is_the_one_that_it_was(run_context, system, tmp_path):
    own = program(tmp_path / "venv", "python", "of the project")

    seated = run_context(own, *system)

    assert found(seated, "python").stdout == "of the project\n"
    added = seated.marks["PATH"].removesuffix(os.environ["PATH"]).rstrip(os.pathsep)
    assert os.listdir(added) == ["detent"]


def test_the_interpreter_of_detent_is_not_put_before_that_of_the_project(run_context, system, tmp_path):
    own = program(tmp_path / "venv", "python", "of the project")

    seated = run_context(own, HERE, *system)

    assert found(seated, "python; command -v detent").stdout == f"of the project\n{HERE}/detent\n"


def test_modules_of_the_project_do_not_take_the_place_of_those_of_detent(run_context, system, tmp_path):
    seated = run_context(*system)
    for name in ("click.py", "msgspec.py", "detent.py"):
        (tmp_path / "project" / name).write_text("raise SystemExit('a module of the project')\n")

    ran = found(seated, "detent workflows", cwd=tmp_path / "project")

    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_path_with_blanks_and_quotes_is_no_trouble(run_context, system, tmp_path):
    odd = program(tmp_path / "o'd \"d", "tool", "odd")

    assert found(run_context(odd, *system), "tool; detent --version").stdout.startswith("odd\ndetent ")
    assert shutil.which("detent") is None
