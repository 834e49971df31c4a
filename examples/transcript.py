"""A story told by real commands: each is shown, run, and what it says is shown as it says it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: The second copies of the story's journals go here and not into the account's own state.
STATE = tempfile.TemporaryDirectory(prefix="detent-state-")


def say(text: str, *, gap: bool = True) -> None:
    print(f"\n# {text}" if gap else f"# {text}", flush=True)


def detent(project: Path, *words: str, expect: int = 0, last: int | None = None) -> None:
    """Run it and show what it says; only the last lines if there is more of the same."""
    print("\n$ detent " + " ".join(f'"{word}"' if " " in word else word for word in words), flush=True)
    said = run(project, [sys.executable, "-m", "detent", *words], expect=expect, shows=last is None)
    if last is not None:
        print("…", *said[-last:], sep="\n", flush=True)


def silently(project: Path, *words: str) -> None:
    run(project, [sys.executable, "-m", "detent", *words])


def shell(project: Path, line: str) -> None:
    print(f"\n$ {line}", flush=True)
    run(project, ["bash", "-c", line], shows=True)


def run(project: Path, command: list[str], *, expect: int = 0, shows: bool = False) -> list[str]:
    """The lines that it says."""
    ran = subprocess.Popen(
        command,
        cwd=project,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said = []
    for line in ran.stdout:
        said.append(line.rstrip("\n"))
        if shows:
            print(said[-1], flush=True)
    if ran.wait() != expect:
        raise SystemExit("\n".join([f"{command}: exit {ran.returncode} and not {expect}", *said[-20:]]))
    return said


def environment() -> dict[str, str]:
    """A person's terminal of 80 columns, the same on every machine: pytest, git and others speak as theirs tells them.

    This Python is first on the path, so that `python` and `detent` are the ones the story is about.
    """
    kept = {name: os.environ[name] for name in ("HOME", "TMPDIR") if name in os.environ}
    own = {
        "XDG_STATE_HOME": STATE.name,
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
        "COLUMNS": "80",
        "DETENT_ACTOR": "ada",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }
    return {**kept, **own}
