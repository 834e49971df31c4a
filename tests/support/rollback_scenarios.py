"""Rollbacks that are interrupted: two trees, the acts between them, and what must hold afterwards."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from detent.engine.project import Project
from tests.support.project import build_project
from tests.support.scenarios import picture, reopen
from tests.support.values import row

#: What restoring uses besides what the store does.
ALSO_WATCHED = ("symlink", "chmod", "fchmod", "link")

LARGE = 5_000

LEFTOVERS = ("restoring", "rollback.json")


@dataclass(frozen=True, kw_only=True)
class Scenario:
    name: str
    act: Callable[[Project], object]
    #: So many fault points there must be, or the test counts nothing.
    least: int
    prepare: Callable[[Project, Path], None] = lambda _project, _directory: None

    def __str__(self) -> str:
        return self.name


class World(NamedTuple):
    """All that a command can change: the files, and where everything stands."""

    tree: dict[str, tuple[str, bytes]]
    standing: object


def tree_of(directory: Path) -> dict[str, tuple[str, bytes]]:
    """Whatever is in the tree: a forgotten temporary file is a difference like any other."""
    found = {}
    for path in directory.rglob("*"):
        name = str(path.relative_to(directory))
        if name.partition("/")[0] == ".workflow":
            continue
        if path.is_symlink():
            found[name] = ("link", os.fsencode(os.readlink(path)))
        elif path.is_file():
            found[name] = ("exec" if path.stat().st_mode & 0o100 else "file", path.read_bytes())
    return found


def world(directory: Path) -> World:
    """Without the notes: a commit also notes what a torn write before it left behind."""
    found = picture(directory)
    sessions = {name: msgspec.structs.replace(session, notes=()) for name, session in found.sessions.items()}
    return World(tree_of(directory), (found.active, sessions))


def copy_of(directory: Path, place: Path) -> Path:
    """With links as links."""
    shutil.rmtree(place, ignore_errors=True)
    return Path(shutil.copytree(directory, place, symlinks=True))


def put(directory: Path, name: str, content: bytes, *, executable: bool = False) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if executable else 0o644)


def first_tree(directory: Path) -> None:
    put(directory, "modified", b"one")
    put(directory, "removed later", b"gone in the second tree")
    put(directory, "mode", b"#!/bin/sh\n", executable=True)
    put(directory, "swapped", b"a file that becomes a directory")
    put(directory, "directory/inner/x", b"a directory that becomes a file")
    put(directory, "directory/y", b"beside it")
    (directory / "link").symlink_to("modified")
    put(directory, "large", b"0" * LARGE + b"1")


def second_tree(directory: Path) -> None:
    put(directory, "modified", b"two")
    (directory / "removed later").unlink()
    (directory / "mode").chmod(0o644)
    (directory / "swapped").unlink()
    put(directory, "swapped/deep/z", b"now a directory")
    shutil.rmtree(directory / "directory")
    put(directory, "directory", b"now a file")
    (directory / "link").unlink()
    (directory / "link").symlink_to("nowhere")
    put(directory, "large", b"0" * LARGE + b"2")
    put(directory, "added/new", b"new", executable=True)


def _rolled_back(project: Project, _directory: Path) -> None:
    project.session().checkpoints.rollback("PRE_a_v1", remove_unknown=True)


def _ended(project: Project, directory: Path) -> None:
    project.session().begin("b")
    put(directory, "modified", b"three")
    project.session().finish("all is done")


def _to_the_start(project: Project) -> None:
    project.session("WFS-try-it").checkpoints.rollback("PRE_a_v1", remove_unknown=True)


def _edited(_project: Project, directory: Path) -> None:
    put(directory, "modified", b"three")
    put(directory, "added/newer", b"newer")


def _edited_in_b(project: Project, directory: Path) -> None:
    project.session().begin("b")
    _edited(project, directory)


SCENARIOS = [
    Scenario(name="roll back", act=_to_the_start, least=60),
    Scenario(name="roll an ended session back", prepare=_ended, act=_to_the_start, least=60),
    Scenario(name="undo", prepare=_rolled_back, act=lambda p: p.session().checkpoints.undo(), least=60),
    Scenario(name="phases only", act=lambda p: p.session().checkpoints.rollback("PRE_a_v1", phase_only=True), least=15),
    Scenario(
        name="paths only",
        act=lambda p: p.session().checkpoints.rollback(
            "PRE_a_v1", paths=["swapped", "directory", "modified"], remove_unknown=True
        ),
        least=40,
    ),
    Scenario(name="a checkpoint", prepare=_edited, act=lambda p: p.session().checkpoints.take("here"), least=15),
    Scenario(name="finish", prepare=_edited_in_b, act=lambda p: p.session().finish("b is done"), least=20),
]


def prepare(scenario: Scenario, directory: Path) -> Path:
    """Two trees, with a phase finished between them."""
    directory.mkdir()
    build_project(directory)
    first_tree(directory)
    with reopen(directory) as project:
        project.start(row("a", "b"), "try it")
        second_tree(directory)
        project.session().finish("a is done")
        scenario.prepare(project, directory)
    return directory


def quick_tree(directory: Path) -> dict[str, tuple[str, bytes]]:
    """The tree that the first checkpoint has, made anew."""
    example = directory / "example"
    if not example.exists():
        example.mkdir()
        first_tree(example)
    return tree_of(example)
