"""Programs that npm has: each in its own environment, made on first use by npm as it is configured."""

import os
import shutil
import subprocess

from bench.measure import say
from bench.peers import ENVIRONMENTS, INSTALL_S_MAX, Unavailable


def program(name: str, package: str, command: str) -> str:
    """The path of the package's command."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        raise Unavailable("it needs npm and node, and they are not on PATH")
    directory = os.path.join(ENVIRONMENTS, name)
    path, ready = os.path.join(directory, "node_modules", ".bin", command), os.path.join(directory, ".ready")
    if os.path.exists(ready):
        with open(ready, encoding="utf-8") as file:
            if file.read() == package:
                return path
    say(f"installing {package} into {os.path.relpath(directory)}; the first time takes minutes")
    os.makedirs(directory, exist_ok=True)
    flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]
    try:
        done = subprocess.run(
            ["npm", "install", "--prefix", directory, *flags, package],
            cwd=directory,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=INSTALL_S_MAX,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"npm could not install {package}: {error}") from error
    if done.returncode:
        reason = (done.stderr.strip() or "no reason given").splitlines()[0]
        raise Unavailable(f"npm could not install {package}: {reason}")
    with open(ready, "w", encoding="utf-8") as file:
        file.write(package)
    return path


def isolated(home: str, **more: str) -> dict[str, str]:
    """An environment without the configuration of the measuring user."""
    os.makedirs(home, exist_ok=True)
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": home, "NO_COLOR": "1", "CI": "1", **more}
