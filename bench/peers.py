"""Environments of their own: for Detent as users have it, and for the software that it is measured against."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

from bench.measure import say

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENTS = os.path.join(ROOT, ".bench")
SOURCE = os.path.join(ROOT, "src", "detent")
SCRIPTS = os.path.join(ROOT, "bench", "scripts")
INSTALL_S_MAX = 600
STOP_S_MAX = 5

LANGGRAPH = ("langgraph==1.2.20", "langgraph-checkpoint==4.3.1", "langgraph-checkpoint-sqlite==3.1.2")
DBOS = ("dbos==3.3.0",)


class Unavailable(Exception):
    """The peer could not be installed or started; the message says why."""


@cache
def installed() -> str:
    """The `detent` of an environment with nothing else in it, as users have it; made anew when the source changes.

    That of the development environment is slower to start: every package in it may add work to the start of Python.
    """
    digest = hashlib.sha256()
    files = [os.path.join(ROOT, "pyproject.toml")]
    files += [os.path.join(at, name) for at, _, names in os.walk(SOURCE) for name in names if not name.endswith(".pyc")]
    for path in sorted(files):
        with open(path, "rb") as file:
            digest.update(os.path.relpath(path, ROOT).encode() + b"\0" + file.read())
    return os.path.join(os.path.dirname(environment("detent", (ROOT,), digest.hexdigest())), "detent")


def environment(name: str, packages: Sequence[str], version: str = "") -> str:
    """The Python of an environment of its own, made on first use, and anew for other packages or another version."""
    directory = os.path.join(ENVIRONMENTS, name)
    python, ready = os.path.join(directory, "bin", "python"), os.path.join(directory, ".ready")
    wanted = "\n".join((*packages, version))
    if os.path.exists(ready):
        with open(ready, encoding="utf-8") as file:
            if file.read() == wanted:
                return python
    say(f"installing {' '.join(packages)} into {os.path.relpath(directory)}")
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    for command in ([sys.executable, "-m", "venv", "--clear", directory], install):
        _run(command)
    with open(ready, "w", encoding="utf-8") as file:
        file.write(wanted)
    return python


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_S_MAX, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"could not be installed: {error}") from error
    if done.returncode:
        reason = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise Unavailable(f"could not be installed: {reason}")


class Peer:
    """A script that answers one line of JSON with another."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self._process.stdout.readline()
        if not answer:
            raise Unavailable(f"its script ended with exit code {self._process.wait(STOP_S_MAX)}")
        result: dict[str, Any] = json.loads(answer)
        return result


@contextmanager
def running(python: str, script: str, *arguments: str) -> Iterator[Peer]:
    """The script under the peer's Python, ended when the block is left."""
    command = [python, os.path.join(SCRIPTS, script), *arguments]
    # A session of its own: Ctrl-C reaches this process alone, which then ends the peer by its id.
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield Peer(process)
    finally:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
