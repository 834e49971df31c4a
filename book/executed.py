"""Runs the commands of a page in a temporary directory, and compares what they print with the page.

`detent.topics.walkthrough` describes the blocks that count. In the output `…` stands for lines that are left out.

    python -m tests.support.attended python -m book.executed docs/tutorial.md [--update]
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from detent.topics.walkthrough import Prose, Step, WrittenFile, parts

_SKIPPED = "…"
_LIMIT_S = 120


class Difference(NamedTuple):
    command: str
    problem: str


def run_page(path: Path, *, update: bool = False) -> list[Difference]:
    """Run a page from its top; with `update` the page gets the output that was seen."""
    page = path.read_text("utf-8")
    differences: list[Difference] = []
    position = 0
    with tempfile.TemporaryDirectory(prefix="detent-page-") as directory:
        project = Path(directory) / "shop"
        project.mkdir()
        for part in parts(page):
            if isinstance(part, Prose):
                continue
            if isinstance(part, WrittenFile):
                target = project / part.path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(part.text, "utf-8")
                continue
            code, lines = _run(part.command, project, Path(directory))
            if code != part.exit_code:
                problem = "\n".join([f"exit code {code}, not {part.exit_code}", *lines[-15:]])
                differences.append(Difference(part.command, problem))
                break
            if part.output is None:
                continue
            shown = lines
            if matches(part.output, lines):
                shown = part.output
            else:
                differences.append(Difference(part.command, "\n".join(["it printed", *lines])))
            page, position = _with_output(page, position, part, shown)
    if update:
        path.write_text(page, "utf-8")
    return differences


def matches(expected: list[str], lines: list[str]) -> bool:
    """Whether the output is the expected one; `…` matches any number of lines."""
    pattern = "\n".join(r"(?:.*\n)*?.*" if line.strip() == _SKIPPED else re.escape(line) for line in expected)
    return re.fullmatch(pattern, "\n".join(lines)) is not None


def _with_output(page: str, position: int, step: Step, lines: list[str]) -> tuple[str, int]:
    """The page with other output of the step that follows `position`, and the position behind it."""
    comment = f"  # exit code {step.exit_code}" if step.exit_code else ""
    command = f"$ {step.command}{comment}"
    old, new = "\n".join([command, *(step.output or [])]), "\n".join([command, *lines])
    at = page.index(f"\n{old}\n", position) + 1
    return page[:at] + new + page[at + len(old) :], at + len(new)


def _run(command: str, project: Path, home: Path) -> tuple[int, list[str]]:
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=project,
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_LIMIT_S,
        check=False,
    )
    lines = [normal(line, home) for line in done.stdout.rstrip("\n").split("\n")] if done.stdout.strip() else []
    return done.returncode, [line for line in lines if not _ABOUT_THIS_MACHINE.match(line)]


#: Lines that depend on the machine: a sandbox is not everywhere.
_ABOUT_THIS_MACHINE = re.compile(r"detent: (there is no sandbox|the sandbox of runs is off)|sandbox  |- Sandbox: ")


def normal(line: str, home: Path) -> str:
    """A line without times, ids and paths that differ between two runs."""
    line = line.replace(str(home), "~")
    line = re.sub(r"\b\d\d:\d\d:\d\d\b", "14:02:07", line)
    line = re.sub(r"(?<![:\d])\d\d:\d\d(?![:\d])", "14:02", line)
    line = re.sub(r"\b\d{4}-\d\d-\d\d\b", "2026-03-01", line)
    line = re.sub(r"(?<![ \d.])\d+s\b|(?<=[^ ] )\d+s\b", "0s", line)
    line = re.sub(r"( {2,})(\d+)s\b", lambda aligned: "0s".rjust(len(aligned[0])), line)
    line = re.sub(r"\bin \d+\.\d+s", "in 0.01s", line).replace(f" on {os.uname().nodename}", " on laptop")
    line = re.sub(r"\brun-[0-9a-f]{8}\b", "run-1a2b3c4d", line)
    line = re.sub(r"SHA256:[A-Za-z0-9+/]{43}", "SHA256:…", line)
    return re.sub(rf"\b{re.escape(_account())}\b", "ada", line).rstrip()


def _account() -> str:
    import pwd

    return pwd.getpwuid(os.getuid()).pw_name


def _environment(home: Path) -> dict[str, str]:
    """A reader's terminal of 80 columns with an account of its own."""
    return {
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "PATH": os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)]),
        "COLUMNS": "80",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }


def main(arguments: list[str]) -> int:
    """Run the pages that are named; the exit code says whether they are true."""
    update = "--update" in arguments
    wrong = 0
    for name in arguments:
        if name.startswith("--"):
            continue
        for difference in run_page(Path(name), update=update):
            wrong += 1
            print(f"{name}: {difference.command}\n{difference.problem}\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
