"""Makes the environment of tests/ci, and says what cannot be had, before pytest takes the terminal."""

import subprocess
import sys
import venv

from tests.ci.tools import ENVIRONMENT, PACKAGES, PYTHON, READY


def main() -> None:
    if READY.exists():
        sys.stdout.write(f"environment: {ENVIRONMENT}\n")
        return
    sys.stdout.write(f"setting up {ENVIRONMENT}\n")
    sys.stdout.flush()
    venv.create(ENVIRONMENT, with_pip=True, clear=True)
    ran = subprocess.run(
        [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES], check=False
    )
    if ran.returncode != 0:
        PYTHON.unlink(missing_ok=True)
        sys.stdout.write("skipped: pip could not install what the tests need\n")
        return
    READY.touch()


if __name__ == "__main__":
    main()
