"""The program `detent` of this installation, for processes whose PATH leads to another one or to none."""

import os
import shutil
import sys

from detent.engine.agents.environment import BIN
from detent.store import disk

NAME = "detent"


def own_path(directory: str) -> dict[str, str]:
    """The variables with which a process finds this `detent`, and every other program as before."""
    installed, here = shutil.which(NAME), os.path.dirname(sys.executable)
    # A program that pipx installed is a link to the one beside its interpreter.
    if installed is not None and os.path.dirname(os.path.realpath(installed)) == os.path.realpath(here):
        return {}
    write_program(directory)
    return {BIN: directory, "PATH": f"{directory}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}


#: Programs that this process has written; each job of a run asks for one.
_written: set[str] = set()


def write_program(directory: str) -> None:
    program = os.path.join(directory, NAME)
    if program in _written and os.path.exists(program):
        return
    _written.add(program)
    disk.make_directory(directory)
    with open(program, "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec "{sys.executable}" -P -m detent "$@"\n')
    os.chmod(program, 0o700)
