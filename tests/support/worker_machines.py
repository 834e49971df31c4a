"""Workers as processes, each with a checkout, a home and a network of its own.

The network is a namespace where that is permitted, else a proxy on loopback in front of Postgres and Temporal.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from detent.core.session.events import Commit, PhaseBegun, PhaseFailed, PhaseFinished, PhaseRedone
from detent.core.session.session import SessionStatus
from detent.doctor.journal import check_phases, replay
from detent.engine.project import Project, open_project
from detent.engine.session import SessionHandle
from detent.errors import DetentError
from detent.store.port import all_commits
from tests.support import namespaces, postgres, temporal_server
from tests.support.proxy import Direct, Proxy
from tests.support.temporal_server import TemporalServer

HEARTBEAT_S, VICTIM_S = 2.0, 14.0
NAMESPACE = "default"
#: Twelve phases, four of them at once.
GRID = [f'{{key = "{row}{n}", needs = [{needs}]}}' for row, before in (("a", ""), ("b", "a"), ("c", "b"))
        for n in range(1, 5) for needs in [f'"{before}{n}"' if before else ""]]  # fmt: skip
SETTINGS = """
[store]
url = "{store}"
project = "{project}"
[files]
remote = "{remote}"
[agents.sh]
adapter = "command"
command = '''{command}'''
[run]
agent = "sh"
sandbox = "off"
parallel = 4
heartbeat_s = {heartbeat}
{labels}
[workflows.w]
phases = [{phases}]
"""
#: Says which machine works on which phase, takes its time, and leaves a file. A victim is slow: a fault meets its work,
#: and it ends after another machine has taken over.
COMMAND = (
    'echo $$ > "{marks}/$DETENT_PHASE.$MACHINE.$(date +%s%N)"; '
    "case $MACHINE in victim) sleep {victim};; *) sleep {seconds};; esac; "
    'echo "$DETENT_PHASE by $MACHINE" > "out-$DETENT_PHASE"; echo done'
)


def skip_if_missing() -> None:
    if reason := temporal_server.missing():
        pytest.skip(reason)


class WorkerMachine:
    def __init__(
        self, cluster: "Cluster", name: str, labels: str = "", *, slots: int = 4, has_links: bool = True
    ) -> None:
        """Without links it reaches the servers as they are, and cannot be cut off from them."""
        self.cluster, self.name, self.labels, self._slots = cluster, name, labels, slots
        self.root = cluster.directory / name
        network = cluster.hub.machine(name) if cluster.hub is not None and has_links else None
        self._command = network.command if network is not None else ()
        wire: Callable[[int], Proxy | Direct] = Proxy if has_links else Direct
        if network is not None:
            wire = network.wire
        self.postgres, self.temporal = wire(cluster.postgres_port), wire(cluster.temporal.port)
        cluster.checkout(self.root, store_port=self.postgres.port, store_host=self.postgres.host)
        self.process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def log(self) -> str:
        return (self.root / "worker.log").read_text()

    def start(self, *more: str) -> "WorkerMachine":
        self._starts += 1
        on = f"temporal://{self.temporal.host}:{self.temporal.port}/{NAMESPACE}"
        argv = [*self._command, sys.executable, "-m", "detent", "worker", "--on", on]
        argv += ["--slots", str(self._slots), *more]
        if self.labels:
            argv += ["--labels", self.labels]
        with (self.root / "worker.log").open("ab") as log:
            self.process = subprocess.Popen(
                argv, cwd=self.root, env=self.cluster.env(self.root, self.name), stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        wait_until(lambda: self.log.count("ready") >= self._starts, f"{self.name} is not ready")
        return self

    def send(self, kind: signal.Signals) -> None:
        assert self.process is not None
        self.process.send_signal(kind)

    def works_on(self) -> set[str]:
        """The phases that its agents have begun."""
        return {path.name.split(".")[0] for path in self.cluster.marks.glob(f"*.{self.name}.*")}

    def close(self) -> None:
        self.postgres.heal()
        self.temporal.heal()
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGCONT)
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.postgres.close()
        self.temporal.close()


class Cluster:
    """A Postgres, a Temporal, a git remote, and a checkout of a person."""

    def __init__(
        self,
        directory: Path,
        *,
        seconds: float = 0.5,
        phases: str = "",
        labels: str = "",
        command: str | None = None,
        own_temporal: bool = False,
    ) -> None:
        """`command` is that of the agent, instead of one that takes `seconds` and leaves a file."""
        self.directory, self._seconds, self._command = directory, seconds, command
        self._phases, self._labels = phases or ", ".join(GRID), labels
        self.marks = directory / "marks"
        self.marks.mkdir()
        self._remote = directory / "remote.git"
        subprocess.run(["git", "init", "-q", "--bare", str(self._remote)], check=True)
        self._url = postgres.server_url()
        self.postgres_port = int(re.search(r":(\d+)/", self._url)[1])  # type: ignore[index]
        self._name = postgres.new_project(self._url)
        self._has_own = own_temporal
        self.temporal = TemporalServer(directory).start() if own_temporal else temporal_server.shared()
        self.root = directory / "own"
        self.checkout(self.root, store_port=self.postgres_port)
        self.hub = None if namespaces.missing() else namespaces.Hub()
        self._machines: list[WorkerMachine] = []
        self._runs: list[subprocess.Popen[bytes]] = []

    @property
    def address(self) -> str:
        return f"temporal://127.0.0.1:{self.temporal.port}/{NAMESPACE}"

    def checkout(self, root: Path, *, store_port: int, store_host: str = "127.0.0.1") -> None:
        root.mkdir(exist_ok=True)
        (root / ".workflow").mkdir(exist_ok=True)
        (root / ".home").mkdir(exist_ok=True)
        (root / ".gitignore").write_text(".home\nworker.log\n")
        command = self._command or COMMAND.format(marks=self.marks, seconds=self._seconds, victim=VICTIM_S)
        store = self._url.replace(f"127.0.0.1:{self.postgres_port}/", f"{store_host}:{store_port}/")
        separator = "&" if "?" in store else "?"
        (root / "detent.toml").write_text(
            SETTINGS.format(
                store=f"{store}{separator}connect_timeout=2",
                project=self._name,
                remote=self._remote,
                command=command,
                heartbeat=HEARTBEAT_S,
                phases=self._phases,
                labels=self._labels,
            )
        )

    def env(self, root: Path, name: str) -> dict[str, str]:
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "TERM") if key in os.environ}
        home = str(root / ".home")
        return {**kept, "HOME": home, "XDG_STATE_HOME": f"{home}/state", "MACHINE": name}

    def machine(self, name: str, labels: str = "", *, slots: int = 4, has_links: bool = True) -> WorkerMachine:
        self._machines.append(WorkerMachine(self, name, labels, slots=slots, has_links=has_links))
        return self._machines[-1].start()

    @property
    def project(self) -> Project:
        return open_project(self.root, actor="tester")

    def start_session(self, task: str = "work") -> str:
        with self.project as project:
            return project.start("w", task).id

    def run(self, *more: str) -> "subprocess.Popen[bytes]":
        """`detent run --on`, as a person starts it."""
        argv = [sys.executable, "-m", "detent", "run", "--yes", "--on", self.address, "--wait", *more]
        with (self.root / "worker.log").open("ab") as log:
            self._runs.append(
                subprocess.Popen(
                    argv, cwd=self.root, env=self.env(self.root, "own"), stdout=log, stderr=log, start_new_session=True
                )
            )
        return self._runs[-1]

    def detent(self, verb: str, *more: str, namespace: str | None = NAMESPACE) -> "subprocess.CompletedProcess[str]":
        """A verb to its end; with `--on`, if it is given a namespace."""
        on = ("--on", f"{self.address.rpartition('/')[0]}/{namespace}") if namespace is not None else ()
        argv = [sys.executable, "-m", "detent", verb, *on, *more]
        return subprocess.run(
            argv, cwd=self.root, env=self.env(self.root, "own"), capture_output=True, text=True, check=False
        )

    @property
    def log(self) -> str:
        """All that runs of the person have written."""
        return (self.root / "worker.log").read_text()

    def run_to_end(self, seconds: float = 60.0) -> None:
        code = self.run().wait(seconds)
        assert code == 0, f"exit code {code}\n{(self.root / 'worker.log').read_text()[-3000:]}"

    def close(self) -> None:
        for machine in self._machines:
            machine.close()
        for run in self._runs:
            if run.poll() is None:
                run.kill()
            run.wait()
        if self._has_own:
            self.temporal.stop()
        if self.hub is not None:
            self.hub.close()

    # What is seen

    def commits(self, session: str) -> list[Commit]:
        with self.project as project:
            return list(all_commits(project.store, session))

    def handle(self, act: Callable[[SessionHandle], Any], session: str) -> Any:
        with self.project as project:
            return act(project.session(session))

    def wait_completed(self, session: str, seconds: float = 90.0) -> None:
        def is_completed() -> bool:
            with self.project as project:
                return project.session(session).state.status is SessionStatus.COMPLETED

        try:
            wait_until(is_completed, "the session is not completed", seconds)
        except AssertionError as error:
            logs = "\n".join(f"{one.name}: {one.log[-1500:]}" for one in self._machines)
            raise AssertionError(f"{error}\n{(self.root / 'worker.log').read_text()[-3000:]}\n{logs}") from error

    def check(self, session: str, phases: int = 12) -> None:
        """Each attempt ended once, the journal is sound, and no file is lost."""
        finished = Counter(
            (event.phase, event.attempt)
            for commit in self.commits(session)
            for event in commit.events
            if isinstance(event, PhaseFinished | PhaseFailed)
        )
        assert set(finished.values()) == {1}, finished
        with self.project as project:
            findings: list[object] = []
            state = replay(project, session, findings)  # type: ignore[arg-type]
            assert [*findings, *check_phases(state)] == []
            completed = Counter(
                event.phase
                for commit in all_commits(project.store, session)
                for event in commit.events
                if isinstance(event, PhaseFinished)
            )
            assert len(completed) == phases
            assert set(completed.values()) == {1}
            from detent.engine.checkpoints.travel import Head, travel_of

            files = travel_of(project).files(session, Head(project.store, session).manifest())
        assert {f"out-{phase}" for phase in completed} <= files.keys()

    def refused(self, session: str, phases: set[str]) -> bool:
        """Whether the first attempt of each of the phases failed, and a later one finished."""
        state = self.handle(lambda handle: handle.state, session)
        return all(state.phases[phase].attempt > 1 for phase in phases)

    def retaken_at(self, session: str, phases: set[str], since: float) -> float | None:
        """When another worker took over one of the phases, in seconds since the fault."""
        for commit in self.commits(session):
            for event in commit.events:
                later = commit.at.timestamp() - since
                if isinstance(event, PhaseRedone | PhaseBegun) and event.phase in phases and later > 0:
                    return later
        return None


def wait_until(condition: Callable[[], object], what: str, seconds: float = 40.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(DetentError):
            if condition():
                return
        time.sleep(0.1)
    raise AssertionError(what)


@contextmanager
def cluster(directory: Path, **settings: object) -> Iterator[Cluster]:
    skip_if_missing()
    built = Cluster(directory, **settings)  # type: ignore[arg-type]
    try:
        yield built
    finally:
        built.close()
        shutil.rmtree(directory / "own" / ".workflow", ignore_errors=True)
