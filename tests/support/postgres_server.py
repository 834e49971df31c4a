"""A real Postgres on loopback, started by the tests that need it: Debian's programs, or those of the `pgserver` wheel.

Postgres refuses to run as root, so as root it runs as an unprivileged account.
"""

import ctypes
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

START_S = 30.0
#: The account of the database in tests; its password stands in no URL, because loopback is trusted.
OWNER = "detent_owner"
ACCOUNTS = ("postgres", "nobody")
MEMORY = "/dev/shm"


def programs() -> Path | None:
    """The directory of `initdb` and `postgres`; None if there is none."""
    beside_python = importlib.util.find_spec("pgserver")
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if beside_python is not None and beside_python.origin is not None:
        candidates.append(Path(beside_python.origin).parent / "pginstall" / "bin")
    on_path = shutil.which("initdb")
    if on_path is not None:
        candidates.append(Path(on_path).parent)
    return next((each for each in candidates if (each / "initdb").exists() and (each / "postgres").exists()), None)


def missing() -> str:
    """The reason why no Postgres can be started here; empty if one can."""
    if programs() is None:
        return "no Postgres is installed: make test-postgres installs one"
    if importlib.util.find_spec("psycopg") is None:
        return "psycopg is not installed: make test-postgres installs it"
    if os.geteuid() == 0 and _account() is None:
        return f"Postgres refuses root, and there is no account {' or '.join(ACCOUNTS)}"
    return ""


def _account() -> "pwd.struct_passwd | None":
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    return None


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """One server with a data directory of its own. `stop` removes both."""

    def __init__(self, *, durable: bool = False, place: str | None = None) -> None:
        """`durable` keeps the data on a disk. In memory a sync is free, and a kill of the server loses nothing."""
        memory = MEMORY if not durable and os.access(MEMORY, os.W_OK) else None
        self._top = Path(tempfile.mkdtemp(prefix="detent-postgres-", dir=place or memory))
        self.port = free_port()
        #: Further arguments of the server.
        self.options: list[str] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            account = _account()
            assert account is not None
            os.chown(self._top, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        where = programs()
        assert where is not None, missing()
        self._programs = where
        subprocess.run(
            [where / "initdb", "-D", self._data, "-U", OWNER, "--auth=trust", "-E", "UTF8", "--locale=C", "-N"],
            check=True,
            capture_output=True,
            cwd=self._top,
            env={"PATH": os.environ["PATH"], "HOME": str(self._top)},
            **self._as,
        )

    @property
    def _data(self) -> str:
        return str(self._top / "data")

    def url(self, database: str = "postgres", *, user: str = OWNER, port: int | None = None) -> str:
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}"

    def use_tls(self, certificate: Path, key: Path) -> None:
        """Offer TLS from the next start on. The server reads copies of its own."""
        for source, name in ((certificate, "server.crt"), (key, "server.key")):
            copy = self._top / name
            copy.write_bytes(source.read_bytes())
            copy.chmod(0o600)
            if self._as:
                os.chown(copy, self._as["user"], self._as["group"])
            option = "ssl_cert_file" if name.endswith(".crt") else "ssl_key_file"
            self.options += ["-c", f"{option}={copy}"]
        self.options += ["-c", "ssl=on"]

    def start(self) -> "PostgresServer":
        log = (self._top / "log").open("ab")
        self._process = subprocess.Popen(
            [
                *(self._programs / "postgres", "-D", self._data, "-p", str(self.port), "-k", str(self._top)),
                *("-c", "listen_addresses=127.0.0.1", "-c", "max_connections=100", *self.options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=self._top,
            env={"PATH": os.environ["PATH"], "HOME": str(self._top)},
            start_new_session=True,
            preexec_fn=end_with_parent,  # noqa: PLW1509 - it makes one system call
            **self._as,
        )
        log.close()
        self._wait()
        return self

    def _wait(self) -> None:
        import psycopg

        deadline_s = time.monotonic() + START_S
        while True:
            assert self._process is not None
            try:
                psycopg.connect(self.url(), connect_timeout=3).close()
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    text = (self._top / "log").read_text(errors="replace")[-2_000:]
                    raise RuntimeError(f"Postgres does not start: {error}\n{text}") from error
                time.sleep(0.05)
            else:
                return

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the whole server as a loss of power does: with SIGKILL, without a checkpoint."""
        assert self._process is not None
        # Its backends are in groups of their own, and end when they notice that the postmaster is gone.
        children = _children(self._process.pid)
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process = None

    def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGQUIT)
            self._process.wait()
            self._process = None
        shutil.rmtree(self._top, ignore_errors=True)

    def execute(self, statement: str, database: str = "postgres") -> list[Any]:
        """Run one statement as the owner."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement)
            return list(cursor.fetchall()) if cursor.description is not None else []

    def create_database(self, name: str) -> str:
        """Make an empty database; returns its URL."""
        self.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)


def end_with_parent() -> None:
    """Ask Linux to end the server if the process of the tests is killed."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, int(signal.SIGQUIT))


def _children(pid: int) -> list[int]:
    try:
        text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(each) for each in text.split()]
