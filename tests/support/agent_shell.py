"""The shell of an agent: a real one without a terminal, with a client's mark, started by a program with its name."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from detent.core.session.events import Commit, GateApproved, VoteCast
from detent.engine.project import open_project
from detent.store.port import all_commits
from tests.support.gated import started
from tests.support.project import write
from tests.support.waiting import until

#: Variables that real clients set in the shells of their agents.
MARKS = (
    "CLAUDECODE",
    "CODEX_THREAD_ID",
    "CODEX_SESSION_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "DETENT_PHASE",
    "DETENT_RUN",
)
#: The programs of the clients, by the beginning of their marks; a run starts the others.
CLIENTS = {"CLAUDECODE": "claude", "CODEX": "codex", "GEMINI": "gemini"}
RUN_S_MAX = 60
#: A file that an attempt in the background writes when it is over.
OVER = "over"
SAID = "said"


class AgentShell:
    """A project whose first phase waits for an approval, and an agent that works in it."""

    def __init__(self, root: Path, gate: str = '{ kind = "approval" }') -> None:
        self.root = root
        # What an attempt says is no part of the work.
        write(root, ".gitignore", f"{SAID}\n{OVER}\nnohup.out\n")
        project, handle = started(root, gate)
        self.session = handle.id
        project.close()
        self._seen = len(self.commits())

    def run(self, command: str, *, mark: str = MARKS[0], **environment: str) -> "subprocess.CompletedProcess[str]":
        """Run the command in the agent's shell, and wait for what it does in the background."""
        (self.root / OVER).unlink(missing_ok=True)
        # The client is a shell by another name. It waits for the agent's shell, which has the mark.
        client = self.root / CLIENTS.get(mark.partition("_")[0], "detent")
        if not client.exists():
            client.symlink_to(shutil.which("bash") or "bash")
        ran = subprocess.run(
            [client, "-c", 'env "$2"=1 bash -c "$1"; exit $?', client.name, command, mark],
            cwd=self.root,
            env={**agent_environment(), **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S_MAX,
            start_new_session=True,
            check=False,
        )
        if re.search(rf"\b{OVER}\b", command):
            assert until((self.root / OVER).exists), "the attempt does not end"
        return ran

    def said(self, ran: "subprocess.CompletedProcess[str]") -> str:
        """All that the attempt said, on one line; what runs in the background keeps that in a file."""
        files = (self.root / name for name in (SAID, "nohup.out"))
        kept = (file.read_text(errors="replace") for file in files if file.exists())
        return " ".join("".join([ran.stdout, ran.stderr, *kept]).split())

    def commits(self) -> list[Commit]:
        with open_project(self.root) as project:
            return list(all_commits(project.store, self.session))

    def new_commits(self) -> list[Commit]:
        """The commits since the last look."""
        commits = self.commits()
        new, self._seen = commits[self._seen :], len(commits)
        return new


def approvals(commits: list[Commit]) -> list[Commit]:
    return [one for one in commits if any(isinstance(event, VoteCast | GateApproved) for event in one.events)]


def agent_environment() -> Mapping[str, str]:
    return {
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
        "HOME": os.environ.get("HOME", "/"),
        "USER": "bot",
        "LC_ALL": "C.UTF-8",
    }
