"""A project in a git repository of its own, and what tests do with it."""

import os
import signal
import subprocess
from pathlib import Path

from detent.core.run.choices import RunChoices
from detent.core.run.isolation import Mode, isolated
from detent.core.workflow.graph import Workflow
from detent.engine.project import Project, open_project
from tests.support.project import build_project
from tests.support.project import write as write_file
from tests.support.values import workflow

#: No settings: neither those of the account nor those of the machine.
ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


def git(directory: Path | str, *arguments: str, check: bool = True) -> str:
    environment = {**os.environ, **ENVIRONMENT}
    done = subprocess.run(
        ["git", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr or done.stdout
    return done.stdout.strip()


def commit(directory: Path | str, message: str = "change", **files: str) -> str:
    """Files by name, with `__` for a dot."""
    write(directory, **files)
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--allow-empty", "-m", message)
    return git(directory, "rev-parse", "HEAD")


def write(directory: Path | str, **files: str) -> None:
    for name, text in files.items():
        write_file(directory, name.replace("__", "."), text)


def repository(directory: Path, settings: str = 'gates = "strict"\n') -> Path:
    """A project with a commit, on the branch main."""
    build_project(directory, settings)
    git(directory, "init", "--quiet", "--initial-branch=main")
    commit(directory, "begin", README__md="hello\n", code__py="one\ntwo\nthree\n")
    return directory


def fork() -> Workflow:
    """Two phases side by side, and one that needs both."""
    return workflow({"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")})


def session(project: Project, mode: Mode = "phase", graph: Workflow | None = None, *, into: str | None = "HEAD") -> str:
    """A session whose work is merged into what the project has checked out, or into another branch."""
    handle = project.start(isolated(graph or fork(), mode), "try it", name="trial")
    if into is not None:
        handle.set_run_options(RunChoices(into=into))
    return handle.id


def opened(directory: Path) -> Project:
    return open_project(directory, actor="tester")


def log(directory: Path | str) -> list[str]:
    return git(directory, "log", "--format=%s").splitlines()


def status(directory: Path | str) -> str:
    return git(directory, "status", "--porcelain")


def hook(directory: Path | str, name: str, script: str) -> Path:
    """A hook of the person."""
    path = Path(directory, ".git/hooks", name)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def stop_everything_in(directory: Path | str) -> None:
    """What a killed process had started in the directory goes too, as it does when a machine stops."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            inside = os.readlink(f"/proc/{pid}/cwd").startswith(str(directory))
        except OSError:
            continue
        if inside and int(pid) != os.getpid():
            os.kill(int(pid), signal.SIGKILL)
