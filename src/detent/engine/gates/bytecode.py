"""Bytecode for checks: Python takes a compiled file for current if size and second agree, and an agent can write one.

A check therefore never reads the `__pycache__` of the project. Compiled files are kept in a directory of the user, and
those of the project are removed before and after each check. Those of installed packages stay, because compiling them
takes longer than most tests.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress

#: Directories at the top of a project that hold installed packages.
_INSTALLED = frozenset((".venv", "venv", ".tox", ".nox", "node_modules"))


@contextmanager
def fresh_bytecode(base: str) -> Iterator[dict[str, str]]:
    """The variable that leads Python to bytecode in which nothing of the directory is compiled."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    directory = os.path.join(cache, "detent", "bytecode")
    own = directory + os.path.realpath(base)
    _remove(own)
    try:
        yield {"PYTHONPYCACHEPREFIX": directory}
    finally:
        _remove(own)


def _remove(directory: str) -> None:
    # There may be none, and another check may remove the same files.
    with suppress(OSError):
        for entry in os.scandir(directory):
            if entry.is_dir(follow_symlinks=False) and entry.name not in _INSTALLED:
                shutil.rmtree(entry.path, ignore_errors=True)
            elif not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
        os.removedirs(directory)
