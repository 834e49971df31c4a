"""Gets what the tests of Postgres need, and says what cannot be had, before pytest takes the terminal."""

import importlib.util
import os
import shutil
import subprocess
import sys

from tests.support.pooler import program as pooler
from tests.support.postgres_server import missing, programs

DRIVER, WHEEL = "psycopg[binary]>=3.2", "pgserver>=0.1.4"


def main() -> None:
    if importlib.util.find_spec("psycopg") is None:
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", DRIVER)
    if programs() is None:
        _run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", WHEEL)
        importlib.invalidate_caches()
    if programs() is None and shutil.which("apt-get") and os.geteuid() == 0:
        _run("apt-get", "install", "--yes", "--quiet", "postgresql")
    if pooler() is None and shutil.which("apt-get") and os.geteuid() == 0:
        _run("apt-get", "install", "--yes", "--quiet", "pgbouncer")
    reason = missing()
    sys.stdout.write(f"Postgres: skipped: {reason}\n" if reason else f"Postgres: {programs()}\n")
    sys.stdout.write(f"PgBouncer: {pooler() or 'skipped: none is installed'}\n")


def _run(*command: str) -> int:
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


if __name__ == "__main__":
    main()
