"""`detent run` as a process of its own, in a project of its own, and what is left when it has ended or was ended."""

import hashlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from detent.core.run.run_event import RunEvent
from detent.core.session.events import Commit, PhaseFinished
from detent.core.session.session import Session
from detent.doctor.finding import Finding
from detent.doctor.invariants import check
from detent.engine.agents.environment import AGENT, STATE
from detent.engine.project import Project, open_project
from detent.engine.run_lease import RunLease, live_lease
from detent.process.marked import marked
from tests.support.project import build_project

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")
TASK = "try it"
SESSION = "WFS-try-it"
PATIENCE_S = 60.0


class Ran(NamedTuple):
    exit_code: int
    output: str
    errors: str


class Scene:
    """A project with one agent, whose work is a script that gets its prompt on its input."""

    def __init__(self, directory: Path, phases: str, script: str, *, agent: str = "", run: str = "") -> None:
        if "sandbox" not in run:
            # Agents of tests write beside their project.
            run += '\nsandbox = "off"'
        self.directory = directory.resolve()
        self.state = str(self.directory / ".workflow")
        settings = (
            f'[agents.script]\nadapter = "command"\ncommand = "exec bash agent.sh"\n{agent}\n'
            f'[run]\nagent = "script"\nworkflow = "trial"\n{run}\n[workflows.trial]\nphases = [{phases}]\n'
        )
        build_project(self.directory, settings, files={"agent.sh": script})
        self._started: list[subprocess.Popen[bytes]] = []

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DETENT_")}
        return {**inherited, "DETENT_ACTOR": "tester"}

    # Processes

    def start(self, *arguments: str, argv: tuple[str, ...] = (DETENT,), **changed: str) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(
            [*argv, *arguments],
            cwd=self.directory,
            env={**self.environment, **changed},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )

    def detent(self, *arguments: str) -> Ran:
        return ended(self.start(*arguments))

    def run(self, *arguments: str) -> Ran:
        return self.detent("run", TASK, *arguments)

    def alive(self) -> list[int]:
        """Everything that was started for sessions of this project."""
        return marked(f"{STATE}={self.state}")

    def agents(self) -> list[int]:
        """The first processes of agents: each leads its group."""
        found = []
        for pid in self.alive():
            with suppress(OSError):
                if os.getpgid(pid) == pid and f"{AGENT}=".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                    found.append(pid)
        return sorted(found)

    def clear(self) -> None:
        """Nothing of a test that failed outlives it."""
        for process in self._started:
            with process:
                process.kill()
        for pid in self.alive():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    # What it left

    @contextmanager
    def project(self) -> Iterator[Project]:
        with open_project(self.directory, actor="looker") as project:
            yield project

    def session(self) -> Session:
        with self.project() as project:
            return project.session(SESSION).state

    def commits(self) -> list[Commit]:
        with self.project() as project:
            return list(project.session(SESSION).log())

    def finished(self) -> Counter[str]:
        """How often the end of each phase was recorded."""
        events = [event for commit in self.commits() for event in commit.events]
        return Counter(event.phase for event in events if isinstance(event, PhaseFinished))

    def findings(self) -> list[Finding]:
        with self.project() as project:
            return check(project)

    def holder(self) -> RunLease | None:
        with self.project() as project:
            return live_lease(project.store, SESSION, now=project.clock())

    @property
    def lease(self) -> Path:
        return Path(self.state, SESSION, ".process", "runner.json")

    @property
    def journal(self) -> Path:
        return Path(self.state, SESSION, "journal.jsonl")

    @property
    def feed(self) -> Path:
        return Path(self.state, SESSION, ".process", "run.jsonl")

    def told(self) -> list[RunEvent]:
        return [msgspec.json.decode(line, type=RunEvent) for line in self.feed.read_bytes().splitlines()]

    def files(self) -> dict[str, str]:
        """What agents made, by digest; a project's own files are left out."""
        made = [path for path in self.directory.rglob("*") if path.is_file() and ".workflow" not in path.parts]
        return {
            str(path.relative_to(self.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in made
            if not path.name.startswith("trace")
        }


def ended(process: "subprocess.Popen[bytes]", patience_s: float = PATIENCE_S) -> Ran:
    """See it end; one that does not is killed, and that is a failure."""
    try:
        output, errors = process.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise
    return Ran(process.returncode, output.decode("utf-8", "replace"), errors.decode("utf-8", "replace"))


def kill(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.communicate()


def lines_of(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0
