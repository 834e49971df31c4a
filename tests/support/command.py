"""The `detent` command as people run it: a process of its own, in a directory of its own."""

import hashlib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
import termios
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from tests.support.fork_server import ForkServer, fork_server
from tests.support.project import wanted_settings

DETENT = os.path.join(os.path.dirname(sys.executable), "detent")

RUN_S_MAX = 60


def normalised(text: str) -> str:
    """Without the times, which are all that differs between two runs."""
    text = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-01 00:00:00", text)
    text = re.sub(r"since(\s+)\d\d:\d\d", r"since\g<1>00:00", text)
    return re.sub(r"\b\d+s\b", "0s", text)


class Ran:
    def __init__(self, done: subprocess.CompletedProcess[bytes]) -> None:
        self.code = done.returncode
        self.out = done.stdout.decode()
        self.err = done.stderr.decode()

    def ok(self) -> "Ran":
        assert self.code == 0, self.err or self.out
        return self

    def json(self) -> Any:
        return msgspec.json.decode(self.out)

    def error(self) -> tuple[int, str, str]:
        """Exit code, message and way out of a refusal, which says nothing on standard output."""
        assert self.out == ""
        message, _, way_out = self.err.partition("\n  try: ")
        assert message.startswith("detent: "), self.err
        return self.code, message.removeprefix("detent: "), way_out.strip()


class Tool:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.environment = {
            "PATH": os.environ["PATH"],
            "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
            "COLUMNS": "80",
            "TZ": "UTC",
            "USER": "ada",
            "LC_ALL": "C.UTF-8",
            # Compiled once for all runs, as an installed Detent is.
            "PYTHONPYCACHEPREFIX": os.path.join(tempfile.gettempdir(), "detent-tests-bytecode"),
        }

    def __call__(self, *arguments: str | bytes, stdin: bytes = b"", **environment: str) -> Ran:
        return Ran(self.run(*arguments, stdin=stdin, **environment))

    def run(
        self, *arguments: str | bytes, stdin: bytes = b"", **environment: Any
    ) -> "subprocess.CompletedProcess[bytes]":
        """`preexec_fn` runs in the process before the command, which then needs an interpreter of its own."""
        preexec_fn: Callable[[], None] | None = environment.pop("preexec_fn", None)
        if preexec_fn is not None:  # A limit must not cut compiled modules that other processes load.
            environment["PYTHONDONTWRITEBYTECODE"] = "1"
        if preexec_fn is None and ForkServer.can_run(environment):
            env = self.environment | environment
            return fork_server().run(
                list(arguments), cwd=str(self.directory), env=env, stdin=stdin, timeout_s=RUN_S_MAX
            )
        return subprocess.run(
            [DETENT, *arguments],
            cwd=self.directory,
            env=self.environment | environment,
            input=stdin,
            capture_output=True,
            timeout=RUN_S_MAX,
            check=False,
            preexec_fn=preexec_fn,
        )

    @property
    def state(self) -> Path:
        return self.directory / ".workflow"

    def digest(self) -> dict[str, str]:
        """Every journal and document by content; locks and unfinished files hold nothing."""
        return {
            str(path.relative_to(self.state)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.state.rglob("*"))
            if path.is_file() and path.name != ".lock" and path.suffix != ".tmp" and ".new-" not in str(path)
        }


def make_project(tool: Tool) -> None:
    (tool.directory / "detent.toml").write_text(wanted_settings('gates = "off"\n'))
    tool("init").ok()


def make_session(tool: Tool) -> None:
    make_project(tool)
    tool("start", "feature", "Add login with passkeys").ok()
    tool("finish", "-m", "Wrote down 12 requirements").ok()
    tool("begin").ok()


def on_a_terminal(tool: Tool, *arguments: str, columns: int = 80, code: int = 0, **environment: str) -> str:
    """What the command writes when its output is a terminal."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    env = {key: value for key, value in tool.environment.items() if key != "COLUMNS"} | environment
    with ThreadPoolExecutor(1) as reader:
        text = reader.submit(read_to_end, ours)
        ran = fork_server().run(list(arguments), cwd=str(tool.directory), env=env, terminal=theirs, timeout_s=RUN_S_MAX)
        os.close(theirs)
    assert ran.returncode == code, text.result()
    return text.result().replace("\r\n", "\n")


def read_to_end(descriptor: int) -> str:
    """What comes from a terminal or a pipe until its other end is closed; then this end is closed too."""
    parts = []
    # A terminal ends with an error.
    with suppress(OSError):
        while part := os.read(descriptor, 65536):
            parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


def loaded(tool: Tool, *arguments: str) -> set[str]:
    script = (
        "import sys\nfrom detent.cli.main import run\n"
        f"code = run({list(arguments)!r})\n"
        "print(*sys.modules, file=sys.stderr)\nsys.exit(code)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tool.directory, env=tool.environment, capture_output=True, check=True
    )
    return set(ran.stderr.decode().split())


def next_command(text: str) -> list[str]:
    """The last command that the answer tells to type, without `detent`."""
    (*_, last) = re.findall(r"(?:^| {2})detent (.*)$", text.replace("\\\n", ""), re.MULTILINE)
    return shlex.split(last)


def refused(tool: Tool, *arguments: str | bytes, stdin: bytes = b"", **environment: str) -> tuple[int, str, str]:
    """Exit code, message and way out; nothing may have changed."""
    before = tool.digest()
    ran = tool(*arguments, stdin=stdin, **environment)
    assert ran.code, ran.out
    assert tool.digest() == before
    return ran.error()


def document(id_: str, title: str = "Something", **context: object) -> dict[str, Any]:
    return {
        "id": id_,
        "title": title,
        "status": "pending",
        "meta": {"type": "feature", "agent": "code-developer"},
        "context": {"requirements": [], "focus_paths": [], "acceptance": [], "depends_on": [], **context},
        "flow_control": {"pre_analysis": [], "implementation_approach": {}, "target_files": []},
    }
