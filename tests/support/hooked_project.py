"""A project with an agent in it, as the agent and the person meet Detent: the installed hook command and `detent`."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.support.disk import Disk
from tests.support.fork_server import fork_server
from tests.support.project import build_project, copy_project, write

FAST = Path(__file__).parents[2] / "src" / "detent" / "hooks" / "fast.py"
KEPT = {name: os.environ[name] for name in ("PATH", "XDG_STATE_HOME")}
RUN_S_MAX = 60
PASSES = "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertTrue(True)\n"
FAILS = PASSES.replace("assertTrue(True)", "assertTrue(False)")


def run_hook(
    command: list[str], data: bytes, *, cwd: Path, env: Mapping[str, str]
) -> "subprocess.CompletedProcess[bytes]":
    """The hook as clients start it, and whatever it has left to a copy of itself, until that has ended."""
    with _last_of() as mark:
        return subprocess.run(
            command,
            cwd=cwd,
            env=env,
            input=data,
            capture_output=True,
            timeout=RUN_S_MAX,
            check=False,
            pass_fds=(mark,),
        )


@contextmanager
def _last_of() -> Iterator[int]:
    """A descriptor for processes; waits in the end until the last of them has closed it."""
    end, mark = os.pipe()
    try:
        yield mark
    finally:
        os.close(mark)
        with os.fdopen(end, "rb") as waiting:
            waiting.read()


class Answer:
    """What the hook printed."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.fields: dict[str, Any] = json.loads(text) if text else {}
        assert isinstance(self.fields, dict)

    @property
    def _specific(self) -> dict[str, Any]:
        return self.fields.get("hookSpecificOutput", {})

    @property
    def denied(self) -> str | None:
        """The reason, None if the call may go ahead."""
        if self._specific.get("permissionDecision") == "deny":
            return self._specific["permissionDecisionReason"]
        return self.fields["reason"] if self.fields.get("decision") == "deny" else None

    @property
    def blocked(self) -> str | None:
        """Why the agent must not stop."""
        return self.fields["reason"] if self.fields.get("decision") in ("block", "deny") else None

    @property
    def told(self) -> str:
        """What the agent hears, or else the person."""
        return self._specific.get("additionalContext") or self.fields.get("systemMessage") or ""


class Place:
    #: Variables of the client's own process.
    client_environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, root: Path, *, settings: str = "", agent: bool = True, constitution: bool = True) -> None:
        self.root = root
        self.disk = Disk(root / ".workflow")
        build_project(root, settings, agent=agent, constitution=constitution)

    def copied(self, root: Path) -> "Place":
        """The same in another directory."""
        copy_project(self.root, root)
        place = object.__new__(Place)
        place.root, place.disk = root, Disk(root / ".workflow")
        return place

    def write(self, path: str, text: str) -> Path:
        return write(self.root, path, text)

    # The person

    def run(self, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        kept = {**KEPT, "USER": "ada", "LC_ALL": "C.UTF-8", "COLUMNS": "200", "TZ": "UTC"}
        done = fork_server().run(list(arguments), cwd=str(self.root), env=kept | environment, timeout_s=RUN_S_MAX)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def detent(self, *arguments: str, **environment: str) -> str:
        done = self.run(*arguments, **environment)
        assert done.returncode == 0, done.stderr or done.stdout
        return done.stdout

    def refused(self, *arguments: str, **environment: str) -> str:
        """What is said against a command that must not work."""
        done = self.run(*arguments, **environment)
        assert done.returncode != 0, done.stdout
        return done.stderr or done.stdout

    # The agent

    def hook(self, event: str, *, client: str = "claude-code", **fields: Any) -> Answer:
        """The answer; of a test run that was noted, what the agent hears with its next call."""
        payload = {"session_id": "s-1", "cwd": str(self.root), "hook_event_name": event, **fields}
        answer = Answer(self.raw(json.dumps(payload).encode(), client=client))
        if answer.text or not self.has_words():
            return answer
        payload |= {"tool_input": {"command": "true"}, "tool_response": {"stdout": ""}}
        return Answer(self.raw(json.dumps(payload).encode(), client=client))

    def has_words(self) -> bool:
        """Whether words about a test run wait for the next event of the conversation."""
        return any((self.root / ".workflow").glob("**/.told"))

    def held(self, event: str, *, client: str = "claude-code", **fields: Any) -> str:
        """The reason of an answer that is an exit code; empty if the event is let through."""
        payload = {"session_id": "s-1", "cwd": str(self.root), "hook_event_name": event, **fields}
        done = self._process(json.dumps(payload).encode(), client)
        assert (done.returncode, done.stdout) == (2 if done.stderr else 0, b"")
        return done.stderr.decode()

    def _process(self, data: bytes, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
        env = {**KEPT, **self.client_environment}
        with _last_of() as mark:
            return fork_server().run(
                list(arguments), cwd=str(self.root), env=env, stdin=data, hook=True, kept=(mark,), timeout_s=RUN_S_MAX
            )

    def raw(self, data: bytes, *arguments: str, client: str = "claude-code") -> str:
        done = self._process(data, client, *arguments)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        return done.stdout.decode()

    def before(self, tool: str, **inputs: Any) -> Answer:
        return self.hook("PreToolUse", tool_name=tool, tool_input=inputs)

    def after(self, tool: str, response: Any, **inputs: Any) -> Answer:
        return self.hook("PostToolUse", tool_name=tool, tool_input=inputs, tool_response=response)

    def delegate(self, agent: str, prompt: str = "go on") -> Answer:
        return self.before("Agent", subagent_type=agent, prompt=prompt)

    def asks(self, prompt: str, agent: str = "sdlc-orchestrator") -> Answer:
        return self.before("Agent", subagent_type=agent, prompt=prompt)

    def delegated(self, agent: str, text: str, prompt: str = "go on", agent_id: str = "a-1") -> Answer:
        """An agent that ran in the foreground has ended."""
        response = {"status": "completed", "agentId": agent_id, "content": [{"type": "text", "text": text}]}
        return self.after("Agent", response, subagent_type=agent, prompt=prompt)

    def tests(self, code: str = PASSES) -> Answer:
        """The agent writes a test file and runs it in its shell; the hook sees the outcome."""
        self.write("test_it.py", code)
        command = f"{sys.executable} -m unittest"
        done = subprocess.run(
            [sys.executable, "-m", "unittest"], cwd=self.root, capture_output=True, text=True, timeout=60, check=False
        )
        inputs: dict[str, Any] = {"tool_name": "Bash", "tool_input": {"command": command}}
        if done.returncode:
            return self.hook("PostToolUseFailure", error=f"Exit code {done.returncode}\n{done.stderr}", **inputs)
        return self.hook("PostToolUse", tool_response={"stdout": done.stdout, "stderr": done.stderr}, **inputs)

    # What stands in the files

    def status(self, phase: str) -> str:
        return self.disk.state()["phases"][phase]["status"]

    def session(self) -> str:
        return self.disk.workflow()["session_id"]

    def events(self) -> list[dict[str, Any]]:
        return [event for commit in self.disk.journal(self.session()) for event in commit["events"]]
