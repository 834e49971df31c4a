"""Installs a package of Debian that a suite needs, where that can be done.

python -m tests.support.debian PACKAGE PROGRAM
"""

import os
import shutil
import subprocess
import sys


def install(package: str, program: str) -> str | None:
    """The path of the program, after the package was installed if it was missing; None if it cannot be had."""
    can_install = shutil.which("apt-get") is not None and os.geteuid() == 0
    # The package lists of a new machine are empty or old. An update takes a while, so it comes second.
    for needs_update in (False, True) if can_install else ():
        if shutil.which(program) is None:
            if needs_update:
                _apt("update", "--quiet")
            _apt("install", "--yes", "--quiet", package)
    return shutil.which(program)


def _apt(*words: str) -> bool:
    return subprocess.run(["apt-get", *words], capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    package, program = sys.argv[1:]
    path = install(package, program)
    sys.stdout.write(
        f"{package}: {path or f'skipped: {program} is not on PATH; on Debian: apt-get install {package}'}\n"
    )
