"""PgBouncer in front of a Postgres of the tests, in transaction mode: clients share the connections to the server."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support.postgres_server import ACCOUNTS, MEMORY, PostgresServer, free_port
from tests.support.waiting import wait_until

#: Connections to the server that all clients share.
SERVERS = 2
SETTINGS = """
[databases]
postgres = host=127.0.0.1 port={server} user={role}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
auth_type = any
pool_mode = transaction
default_pool_size = {servers}
unix_socket_dir =
logfile = {directory}/log
pidfile = {directory}/pid
"""


def program() -> str | None:
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


@contextmanager
def pooler(running: PostgresServer, role: str) -> Iterator[str]:
    """The URL of the pooler; all clients have the role."""
    found = program()
    assert found is not None
    with tempfile.TemporaryDirectory(prefix="detent-pooler-", dir=MEMORY) as top:
        directory, port = Path(top), free_port()
        text = SETTINGS.format(server=running.port, role=role, port=port, servers=SERVERS, directory=directory)
        (directory / "settings.ini").write_text(text)
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            # It refuses to run as root.
            account = next(each for each in pwd.getpwall() if each.pw_name in ACCOUNTS)
            for path in (directory, *directory.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
            options = {"user": account.pw_uid, "group": account.pw_gid}
        with subprocess.Popen(
            [found, "--quiet", directory / "settings.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            **options,
        ) as process:
            try:
                wait_until(lambda: _answers(port))
                yield f"postgresql://{role}@127.0.0.1:{port}/postgres"
            finally:
                process.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
