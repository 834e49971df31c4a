"""Programs that only the tests of the page use."""

import shutil
import sys
from pathlib import Path

#: Beside the environment, so that `make clean` removes it.
TOOLS = Path(sys.prefix) / "ui-tools"
AXE_VERSION = "4.11.0"
AXE = TOOLS / "node_modules" / "axe-core" / "axe.min.js"


def chromium() -> str | None:
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((found for found in map(shutil.which, names) if found), None)
