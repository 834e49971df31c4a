"""The real clients: installed once into a cache, run offline in a home of their own.

A client sees an environment built from nothing, a home in a temporary directory, a dummy key, and the scripted model
server as its model and as its proxy. It never sees this account's configuration.
"""

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from tests.clients import claude_code, codex, gemini_cli
from tests.clients.scripts import Request
from tests.clients.server import ModelServer

CLIENTS: tuple[ModuleType, ...] = (claude_code, codex, gemini_cli)
INSTALL_S_MAX = 300
VERSION_S_MAX = 30
RUN_S_MAX = 90.0
GRACE_S = 3.0
OUTPUT_BYTES_MAX = 16 * 1024 * 1024


class ClientUnavailable(Exception):
    """The client cannot be had here; the message says why."""


class Client(msgspec.Struct, frozen=True):
    """An installed client in a home of its own. `kind` is the client's module: its tools, its hooks, its replies."""

    kind: ModuleType
    command: tuple[str, ...]
    home: Path


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """What came of one run of a client. An exit code of None: it did not end in time and was killed."""

    exit_code: int | None
    events: list[dict[str, Any]]
    session_id: str | None
    requests: list[Request]
    stdout: str
    stderr: str


def cache() -> Path:
    if given := os.environ.get("DETENT_CLIENTS_CACHE"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "detent/clients"


def install(kind: ModuleType) -> tuple[str, ...]:
    """The command that starts the client at its pinned version, installed if need be. Raises ClientUnavailable."""
    if not (shutil.which("npm") and shutil.which("node")):
        raise ClientUnavailable(f"{kind.NAME} needs node and npm, and they are not on PATH")
    prefix = cache() / f"{kind.NAME}-{kind.VERSION}"
    prefix.mkdir(parents=True, exist_ok=True)
    ready = prefix / ".ready"
    with (prefix / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests may run in several processes; one of them installs
        if not ready.exists():
            npm_install(f"{kind.PACKAGE}@{kind.VERSION}", prefix)
            told = _version(kind, prefix)
            if kind.VERSION not in told:
                raise ClientUnavailable(f"{kind.NAME} {kind.VERSION} was installed to {prefix} but says {told!r}")
            ready.touch()
    return tuple(kind.entry(prefix))


def run_client(
    client: Client,
    prompt: str,
    project: Path,
    server: ModelServer,
    *,
    resume: str | None = None,
    extra_args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    timeout_s: float = RUN_S_MAX,
) -> Run:
    """Run the client once, without a person, until it ends by itself or the time is over."""
    client.kind.prepare(client.home, server.url)
    given = client.kind.arguments(prompt, url=server.url, resume=resume, extra=extra_args)
    asked_before = len(server.requests)
    with (client.home / "stdout").open("w+b") as stdout, (client.home / "stderr").open("w+b") as stderr:
        process = subprocess.Popen(
            [*client.command, *given],
            cwd=project,
            env={**environment_of(client, server), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
        exit_code = _await(process, timeout_s)
        told, warned = _content(stdout), _content(stderr)
    events = _events(told)
    return Run(
        exit_code=exit_code,
        events=events,
        session_id=client.kind.session_id(events),
        requests=server.requests[asked_before:],
        stdout=told,
        stderr=warned,
    )


def npm_install(package: str, prefix: Path, *more: str) -> None:
    """Without install scripts: nothing is run until a test runs the client."""
    sys.stderr.write(f"installing {package} into {prefix}, once\n")
    flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--loglevel=error"]
    command = ["npm", "install", "--prefix", str(prefix), *flags, package, *more]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
    except subprocess.TimeoutExpired:
        raise ClientUnavailable(f"npm could not install {package} within {INSTALL_S_MAX} s") from None
    if done.returncode != 0:
        raise ClientUnavailable(f"npm could not install {package}: {done.stderr.strip()[-400:]}")


def _version(kind: ModuleType, prefix: Path) -> str:
    home = prefix / "home"
    home.mkdir(exist_ok=True)
    env = {"PATH": _path(), "HOME": str(home)}
    try:
        command = [*kind.entry(prefix), "--version"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=VERSION_S_MAX, check=False, env=env)
    except (OSError, StopIteration, subprocess.TimeoutExpired) as error:
        raise ClientUnavailable(f"{kind.NAME} {kind.VERSION} does not start: {error!r}") from error
    return (done.stdout + done.stderr).strip()


def _path() -> str:
    node = shutil.which("node") or "/usr/bin/node"
    return os.pathsep.join(dict.fromkeys([str(Path(node).parent), "/usr/local/bin", "/usr/bin", "/bin"]))


def environment_of(client: Client, server: ModelServer) -> dict[str, str]:
    temporary = client.home / "tmp"
    temporary.mkdir(exist_ok=True)
    local = "127.0.0.1,localhost,::1"
    proxied = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), server.url)
    return {
        "HOME": str(client.home),
        "PATH": _path(),
        "TMPDIR": str(temporary),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "CI": "1",
        "NO_PROXY": local,
        "no_proxy": local,
        **proxied,
        **client.kind.environment(client.home, server.url),
    }


def _await(process: subprocess.Popen[bytes], timeout_s: float) -> int | None:
    """The exit code, or None when it had to be killed. Whatever it left in its process group ends too."""
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        _signal(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_S)
        return None
    finally:
        _signal(process.pid, signal.SIGKILL)
        process.wait(GRACE_S)


def _signal(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, number)


def _content(file: Any) -> str:
    file.seek(0)
    return file.read(OUTPUT_BYTES_MAX).decode(errors="replace")


def _events(stdout: str) -> list[dict[str, Any]]:
    events = []
    for line in stdout.splitlines():
        with contextlib.suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict):
                events.append(event)
    return events
