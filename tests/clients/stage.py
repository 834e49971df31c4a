"""One test's place: a client in its own home, a project, the scripted server, and a hook that records."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.clients.client import Client, Run, run_client
from tests.clients.recorder import Recorder
from tests.clients.scripts import Scenario
from tests.clients.server import ModelServer

DETENT_S_MAX = 60


class Stage:
    """`kind` is the client's module: the names of its tools and hooks, so that one scenario suits every client."""

    def __init__(self, client: Client, project: Path, server: ModelServer, hook: Recorder) -> None:
        self.client = client
        self.kind = client.kind
        self.project = project
        self.server = server
        self.hook = hook

    def record(self, *, user: bool = False) -> None:
        """Register the recording hook: with the project, or with the user, where it goes beside a project's own."""
        path = (self.client.home if user else self.project) / self.kind.PROJECT_SETTINGS
        path.parent.mkdir(parents=True, exist_ok=True)
        had = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps({**had, **self.kind.hook_settings(self.hook.command)}))

    def reply(self, event: str, reply: str, *, containing: str = "", times: int = 1) -> None:
        """Let the recording hook reply. `event` is Claude Code's name of it, whatever the client calls it."""
        self.hook.reply(self.kind.HOOK_EVENTS[event], reply, containing=containing, times=times)

    def events(self, event: str, **having: Any) -> list[dict[str, Any]]:
        """What the recording hook was told, under Claude Code's name of the event."""
        told = self.hook.events(self.kind.HOOK_EVENTS[event])
        return [payload for payload in told if all(payload.get(key) == value for key, value in having.items())]

    def play(self, prompt: str, scenario: Scenario, **options: Any) -> Run:
        """Play the scenario to one run of the client."""
        self.server.play(scenario)
        return run_client(self.client, prompt, self.project, self.server, **options)

    def detent(self, *arguments: str, succeeds: bool = True) -> str:
        """What Detent's own command line says in the project, run in the client's home."""
        command = [sys.executable, "-m", "detent", *arguments]
        env = {"HOME": str(self.client.home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        done = subprocess.run(
            command, cwd=self.project, env=env, capture_output=True, text=True, timeout=DETENT_S_MAX, check=False
        )
        assert (done.returncode == 0) == succeeds, f"detent {' '.join(arguments)}: {done.stdout}{done.stderr}"
        return done.stdout
