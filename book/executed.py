"""Runs the commands of a page in a temporary directory, and compares what they print with the page.

`detent.topics.walkthrough` describes the blocks that count. In the output `…` stands for lines that are left out.
A command that ends with `&` works on in the background; it is ended with the page.

    python -m tests.support.attended python -m book.executed docs/tutorial.md [--update]
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from detent.topics.walkthrough import Prose, Step, WrittenFile, parts

_SKIPPED = "…"
_LIMIT_S = 120
_GIT_CONFIG = "[user]\nname = Ada\nemail = ada@example.org\n[init]\ndefaultBranch = main\n"


class Difference(NamedTuple):
    command: str
    problem: str


def run_page(path: Path, *, update: bool = False, hosts: Mapping[str, str] | None = None) -> list[Difference]:
    """Run a page from its top; with `update` the page gets the output that was seen.

    `hosts` says where the servers are that the page names: an address of the page, and the real one.
    """
    page = path.read_text("utf-8")
    differences: list[Difference] = []
    position = 0
    with _reader(hosts or {}) as reader:
        for part in parts(page):
            if isinstance(part, Prose):
                continue
            if isinstance(part, WrittenFile):
                reader.write(part)
                continue
            code, lines = reader.run(part.command)
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


class _Reader:
    """A reader of a page, in a project below a home of their own."""

    def __init__(self, home: Path, hosts: Mapping[str, str]) -> None:
        self._home, self._hosts = home, hosts
        self._project = home / "shop"
        self._project.mkdir()
        (home / ".gitconfig").write_text(_GIT_CONFIG, "utf-8")
        self._background: list[int] = []

    def write(self, file: WrittenFile) -> None:
        target = self._project / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(file.text, "utf-8")

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run a command. Returns its exit code and the lines that it printed."""
        for name, address in self._hosts.items():
            command = command.replace(name, address)
        # A group of its own holds the processes in the background; the terminal stays with the others.
        is_background = command.rstrip().endswith("&")
        with subprocess.Popen(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=self._project,
            env=_environment(self._home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if is_background else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0 if is_background else None,
        ) as process:
            if is_background:
                self._background.append(process.pid)
            try:
                printed, _ = process.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        printed = printed or ""
        for name, address in self._hosts.items():
            printed = printed.replace(address, name)
        lines = [normal(line, self._home) for line in printed.rstrip("\n").split("\n")] if printed.strip() else []
        return process.returncode, [line for line in lines if not _ABOUT_THIS_MACHINE.match(line)]

    def end(self) -> None:
        for group in self._background:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


@contextmanager
def _reader(hosts: Mapping[str, str]) -> Iterator[_Reader]:
    with tempfile.TemporaryDirectory(prefix="detent-page-", ignore_cleanup_errors=True) as directory:
        reader = _Reader(Path(directory), hosts)
        try:
            yield reader
        finally:
            reader.end()


#: Lines that depend on the machine: a sandbox is not everywhere.
_ABOUT_THIS_MACHINE = re.compile(r"detent: (there is no sandbox|the sandbox of runs is off)|sandbox  |- Sandbox: ")


def normal(line: str, home: Path) -> str:
    """A line without times, ids and paths that differ between two runs."""
    line = line.replace(str(home), "~")
    line = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "2026-03-01T14:02:07Z", line)
    line = re.sub(r"\b\d\d:\d\d:\d\d\b", "14:02:07", line)
    line = re.sub(r"(?<![:\d])\d\d:\d\d(?![:\d])", "14:02", line)
    line = re.sub(r"\b\d{4}-\d\d-\d\d\b", "2026-03-01", line)
    # Seconds, or minutes on a busy machine; those of "1h 05m" are no measurement.
    line = re.sub(r"(?<![ \d.])\d+[sm]\b|(?<=[^ h] )\d+[sm]\b", "0s", line)
    line = re.sub(r"( {2,})(\d+)[sm]\b", lambda aligned: "0s".rjust(len(aligned[0])), line)
    line = re.sub(r"\bin \d+\.\d+s", "in 0.01s", line).replace(f" on {os.uname().nodename}", " on laptop")
    line = re.sub(rf"^{re.escape(os.uname().nodename)} process \d+\b", "laptop process 4711", line)
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
        "GIT_CONFIG_NOSYSTEM": "1",
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
