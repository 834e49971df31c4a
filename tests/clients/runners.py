"""Test runners and tools in their real versions, installed once into the cache of the clients."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.clients.client import ClientUnavailable, cache
from tests.support.record_reports import NODE_TOOLS, PYTHON_TOOLS

TOOLS = (*PYTHON_TOOLS, "cosmic-ray==8.7.0")
INSTALL_S_MAX = 600


def installed_tools() -> Path:
    """The directory with `venv` and `node_modules`. Raises ClientUnavailable."""
    if not shutil.which("npm"):
        raise ClientUnavailable("the runners need npm, and it is not on PATH")
    prefix = cache() / "runners-1"
    prefix.mkdir(parents=True, exist_ok=True)
    with (prefix / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (prefix / ".ready").exists():
            sys.stderr.write(f"installing {', '.join((*TOOLS, *NODE_TOOLS))} into {prefix}, once\n")
            flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
            _run([sys.executable, "-m", "venv", str(prefix / "venv")])
            _run([str(prefix / "venv/bin/python"), "-m", "pip", "install", "-q", *TOOLS])
            _run(["npm", "install", "--prefix", str(prefix), *flags, *NODE_TOOLS])
            (prefix / ".ready").touch()
    return prefix


def path_of(prefix: Path) -> str:
    node = os.path.dirname(shutil.which("node") or "")
    return f"{prefix}/venv/bin:{prefix}/node_modules/.bin:{node}:/usr/bin:/bin"


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise ClientUnavailable(f"{command[0]} did not end within {INSTALL_S_MAX} s") from None
    if done.returncode != 0:
        raise ClientUnavailable(f"{' '.join(command[:3])} failed: {done.stderr.strip()[-400:]}")
