"""The stories of the demo page are told as they happen."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.people import by_ada
from tests.support.sandboxed import real_path

ROOT = Path(__file__).parents[2]
STORIES = ROOT / "docs" / "demo.md"


def test_the_demo_is_told_as_it_happens():
    told = story("demo.py")

    check_told(told)
    assert [line for line in told.splitlines() if len(line) > 80] == []


def test_the_story_of_a_rollback_is_told_as_it_happens():
    check_told(story("rollback.py"))


def check_told(told: str) -> None:
    """The page has it, word for word; UPDATE_GOLDEN=1 puts it there, in place of what begins in the same way."""
    text = STORIES.read_text("utf-8")
    if os.environ.get("UPDATE_GOLDEN"):
        first = re.escape(told.partition("\n")[0])
        text = re.sub(rf"(?<=^```\n){first}\n.*?(?=\n```$)", lambda _: told, text, flags=re.MULTILINE | re.DOTALL)
        STORIES.write_text(text, "utf-8")
    assert f"```\n{told}\n```" in text


def story(example: str) -> str:
    """What an example shows, without the times and names that differ between two runs."""
    # What the machine around it says to git, pytest or detent is not part of the story.
    around = {**os.environ, "CI": "true", "PYTEST_ADDOPTS": "-v", "GIT_CONFIG_GLOBAL": "/nowhere", "PATH": real_path()}
    command = [sys.executable, str(ROOT / "examples" / example)]
    done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    told = re.sub(r"^detent: (there is no sandbox|the sandbox of runs is off).*\n", "", done.stdout, flags=re.MULTILINE)
    told = re.sub(r"\b\d\d:\d\d:\d\d\b", "14:02:07", told)
    told = re.sub(r"(?<![:\d])\d\d:\d\d(?![:\d])", "14:02", told)
    told = re.sub(r"after \d+s", "after 0s", re.sub(r"in \d+\.\d+s", "in 0.01s", told))
    told = by_ada(told)
    return re.sub(r"\brun-[0-9a-f]{8}\b", "run-1a2b3c4d", told).strip()
