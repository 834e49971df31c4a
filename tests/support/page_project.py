"""The page as a person has it: a project with a scripted agent, the server as a process, and a link to it."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.support.project import write
from tests.support.repository import ENVIRONMENT
from tests.support.waiting import wait_until

BIN = os.path.dirname(sys.executable)
DETENT = os.path.join(BIN, "detent")
TASK = "Let a wallet pay"
SESSION = "WFS-let-a-wallet-pay"
NEEDS_A_PERSON = 6
TESTS = f"{sys.executable} -m unittest -q test_wallet"
#: Two branches, a gate that fails once, and a gate at which a person votes.
SETTINGS = f"""
[agents.script]
adapter = "command"
command = "exec {sys.executable} agent.py"
result = "json"

[run]
agent = "script"
workflow = "trial"
parallel = 2

[workflows.trial]
title = "A small feature"
phases = [
  {{ key = "plan" }},
  {{ key = "build", needs = ["plan"], gates = [{{ kind = "tests", command = "{TESTS}" }}] }},
  {{ key = "document", needs = ["plan"] }},
  {{ key = "accept", needs = ["build", "document"], gates = [{{ kind = "approval" }}] }},
]
"""
_AGENT = Path(__file__).with_name("page_agent.py")
FILES = {
    "wallet.py": "class Wallet:\n    def __init__(self, balance):\n        self.balance = balance\n",
    "test_wallet.py": "import unittest\n\nfrom wallet import Wallet\n\n\nclass TestWallet(unittest.TestCase):\n"
    "    def test_holds(self):\n        self.assertEqual(Wallet(1).balance, 1)\n",
    "agent.py": _AGENT.read_text(),
    ".gitignore": "__pycache__/\n",
}


class PageProject:
    """A project with its own state of the user, and the server of its page."""

    def __init__(self, directory: Path, *, settings: str = SETTINGS, files: dict[str, str] | None = None) -> None:
        self.root, self._state, self._holds = directory / "wallet", directory / "state", directory / "holds"
        self._holds.mkdir(parents=True)
        for path, text in {**FILES, "detent.toml": settings, **(files or {})}.items():
            write(self.root, path, text)
        self.detent("init")
        self._server: subprocess.Popen[str] | None = None
        self._started: list[subprocess.Popen[str]] = []
        self.port = 0

    # Processes

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        own = {"XDG_STATE_HOME": str(self._state), "HOLD_DIRECTORY": str(self._holds)}
        return {**inherited, **ENVIRONMENT, **own, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def detent(self, *words: str, expect: int = 0, typed: str = "") -> str:
        ran = subprocess.run(
            [DETENT, *words],
            cwd=self.root,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == expect, (words, ran.returncode, ran.stdout, ran.stderr)
        return ran.stdout

    def begin_run(self, *words: str) -> "subprocess.Popen[str]":
        """`detent run` that goes on while the test looks at the page."""
        started = self._process("run", *words)
        self._started.append(started)
        return started

    def _process(self, *words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [DETENT, *words],
            cwd=self.root,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def hold(self, phase: str) -> None:
        (self._holds / f"hold-{phase}").touch()

    def release(self, phase: str) -> None:
        (self._holds / f"hold-{phase}").unlink()

    # The server

    def serve(self) -> str:
        """Start the server, at the port that it had before, and return its link."""
        self._server = self._process("ui", "--no-open", "--json", "--port", str(self.port))
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        try:
            opened: dict[str, Any] = json.loads(line)
        except ValueError:
            raise AssertionError(line + self._server.stdout.read()) from None
        self.port = opened["port"]
        return str(opened["link"])

    def link(self) -> str:
        """Another link to the server that runs."""
        return str(json.loads(self.detent("ui", "--link", "--no-open", "--json", "--port", str(self.port)))["link"])

    def kill_server(self) -> None:
        assert self._server is not None
        with self._server as server:
            server.kill()

    def stop(self) -> None:
        for process in (*self._started, *([self._server] if self._server else [])):
            with process:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(5)
                process.kill()

    @property
    def address(self) -> str:
        return f"http://localhost:{self.port}"

    # What is in it

    def commits(self, session: str = SESSION) -> int:
        journal = self.root / ".workflow" / session / "journal.jsonl"
        return len(journal.read_bytes().splitlines()) if journal.exists() else 0

    def wait_for_commits(self, number: int, session: str = SESSION) -> None:
        wait_until(lambda: self.commits(session) >= number)
