"""The official SDK and the Inspector as clients of the MCP server: installed once into the cache of the clients."""

import fcntl
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.clients.client import INSTALL_S_MAX, ClientUnavailable, cache, npm_install

SDK = "mcp==2.3.0"
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
#: The Inspector needs Node 22.19 or newer; npm has one for each platform.
NODE = "22.23.3"


def install_sdk() -> Path:
    """The interpreter of an environment with the SDK. Raises ClientUnavailable."""
    prefix = cache() / SDK.replace("==", "-sdk-")
    python = prefix / "bin/python"
    with _once(prefix) as is_new:
        if is_new:
            sys.stderr.write(f"installing {SDK} into {prefix}, once\n")
            for command in (
                [sys.executable, "-m", "venv", str(prefix)],
                [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", SDK],
            ):
                done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
                if done.returncode:
                    raise ClientUnavailable(f"{SDK} could not be installed: {done.stderr.strip()[-400:]}")
    return python


def install_inspector() -> list[str]:
    """The command of the Inspector's CLI. Raises ClientUnavailable."""
    if shutil.which("npm") is None:
        raise ClientUnavailable("the Inspector needs npm, and it is not on PATH")
    system = {"Linux": "linux", "Darwin": "darwin"}.get(platform.system(), "unknown")
    node = f"node-{system}-{'arm64' if platform.machine() in ('arm64', 'aarch64') else 'x64'}"
    prefix = cache() / f"inspector-{INSPECTOR.rpartition('@')[2]}"
    with _once(prefix) as is_new:
        if is_new:
            npm_install(INSPECTOR, prefix, f"{node}@{NODE}")
    modules = prefix / "node_modules"
    launcher = modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return [str(modules / node / "bin/node"), str(launcher), "--cli"]


@contextmanager
def _once(prefix: Path) -> Iterator[bool]:
    """Whether the prefix is still to be filled; tests in several processes wait for the one that fills it."""
    prefix.mkdir(parents=True, exist_ok=True)
    ready = prefix / ".ready"
    with (prefix / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not ready.exists()
        ready.touch()
