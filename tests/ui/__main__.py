"""Gets what the tests of the page need, and says what cannot be had, before pytest takes the terminal."""

import importlib.util
import shutil
import subprocess
import sys

from tests.support.debian import install
from tests.support.ui_tools import AXE, AXE_VERSION, TOOLS, chromium

PLAYWRIGHT = "playwright>=1.50"


def main() -> None:
    say("Playwright", _playwright())
    say("Chromium", _chromium())
    say("axe-core", _axe())


def _playwright() -> str:
    if importlib.util.find_spec("playwright") is None:
        ran = _run(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PLAYWRIGHT)
        if ran != 0:
            return "skipped: pip could not install it"
    return "installed"


def _chromium() -> str:
    if chromium() is None:
        install("chromium", "chromium")
    return chromium() or "skipped: none is installed; on Debian: apt-get install chromium"


def _axe() -> str:
    if AXE.exists():
        return str(AXE)
    if shutil.which("npm") is None:
        return "skipped: npm is not installed"
    TOOLS.mkdir(parents=True, exist_ok=True)
    ran = _run("npm", "install", "--silent", "--no-save", "--prefix", str(TOOLS), f"axe-core@{AXE_VERSION}")
    return str(AXE) if ran == 0 and AXE.exists() else "skipped: npm could not install it"


def _run(*command: str) -> int:
    return subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode


def say(name: str, found: str) -> None:
    sys.stdout.write(f"{name}: {found}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
