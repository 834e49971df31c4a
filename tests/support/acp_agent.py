"""An agent that speaks ACP and does what a test says. Run as a program it is the agent itself; it has no model.

A script is a list of steps for each prompt. A step is `update` (a session update), `ask` (a tool call that waits for
permission, and is then made or not), `request` (the same, and the script says what becomes of it), `run` (a shell
command that it runs itself), `wait` (for a cancellation), `end` (the answer to the prompt) or `error` (the answer that
is an error).
"""

import json
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from detent.config.settings import AgentSettings

OPTIONS = [
    {"optionId": f"o-{kind}", "name": kind, "kind": kind} for kind in ("allow_always", "allow_once", "reject_once")
]
MODES = ("default", "yolo")


class ScriptedAgent:
    """The test's side: the settings that start the agent, and the messages that it got."""

    def __init__(self, directory: Path, *prompts: Sequence[dict[str, Any]], **facts: Any) -> None:
        """`facts`: name, modes, capabilities, fails (methods that are answered with an error)."""
        self._log, self._script = directory / "acp.log", directory / "acp.json"
        self._log.unlink(missing_ok=True)
        self._script.write_text(json.dumps({"prompts": prompts, "log": str(self._log), **facts}))

    def settings(self, **changed: Any) -> "AgentSettings":
        from detent.config.settings import AgentSettings  # the program runs without installed packages

        command = shlex.join([sys.executable, "-S", str(Path(__file__).resolve()), str(self._script)])
        return AgentSettings(adapter="acp", command=command, **changed)

    def messages(self, method: str = "") -> list[dict[str, Any]]:
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        messages = [json.loads(line) for line in lines]
        return [message["params"] for message in messages if message.get("method") == method] if method else messages

    def prompts(self) -> list[str]:
        return [params["prompt"][0]["text"] for params in self.messages("session/prompt")]

    def outcomes(self) -> list[str]:
        """The options that the adapter chose for permission requests."""
        results = [message.get("result") or {} for message in self.messages() if "method" not in message]
        return [result["outcome"].get("optionId", result["outcome"]["outcome"]) for result in results]


def update(kind: str, /, **fields: Any) -> dict[str, Any]:
    return {"update": {"sessionUpdate": kind, **fields}}


def says(text: str, message: str = "m") -> dict[str, Any]:
    return update("agent_message_chunk", content={"type": "text", "text": text}, messageId=message)


def ends(reason: str = "end_turn", **fields: Any) -> dict[str, Any]:
    return {"end": {"stopReason": reason, **fields}}


class _Agent:
    def __init__(self, script: dict[str, Any]) -> None:
        self.script, self.asked = script, 0

    def main(self) -> None:
        for message in iter(self.read, None):
            method = message.get("method", "")
            if method in self.script.get("fails", ()):
                self.send(
                    id=message["id"], error={"code": -32603, "message": "scripted", "data": {"details": "failed"}}
                )
            elif method == "session/prompt":
                self.prompt(message["id"])
            elif "id" in message and method:
                self.send(id=message["id"], result=self.answer(method))

    def answer(self, method: str) -> dict[str, Any]:
        if method == "initialize":
            info = {"name": self.script.get("name", "gemini-cli"), "version": "1"}
            can = self.script.get("capabilities", {"loadSession": True, "sessionCapabilities": {"resume": {}}})
            return {"protocolVersion": self.script.get("version", 1), "agentInfo": info, "agentCapabilities": can}
        if method in ("session/new", "session/resume", "session/load"):
            modes = [{"id": mode, "name": mode} for mode in self.script.get("modes", MODES)]
            return {"sessionId": "c-1", "modes": {"currentModeId": "yolo", "availableModes": modes}}
        return {}

    def prompt(self, number: int) -> None:
        for step in self.script["prompts"].pop(0):
            if "update" in step:
                self.send(method="session/update", params={"sessionId": "c-1", "update": step["update"]})
            elif "ask" in step:
                self.ask(step["ask"])
            elif "request" in step:
                self.request(step["request"])
            elif "run" in step:
                subprocess.run(["sh", "-c", step["run"]], check=False)
            elif "wait" in step:
                while (message := self.read()) is not None and message.get("method") != "session/cancel":
                    pass
            elif "error" in step:
                self.send(id=number, error=step["error"])
            else:
                self.send(id=number, result=step["end"])

    def ask(self, call: dict[str, Any]) -> None:
        status = "completed" if self.request(call).endswith("allow_once") else "failed"
        done = {"sessionUpdate": "tool_call_update", "toolCallId": call["toolCallId"], "status": status}
        self.send(method="session/update", params={"sessionId": "c-1", "update": done})

    def request(self, call: dict[str, Any]) -> str:
        """Ask for permission; returns the option that was chosen."""
        self.asked += 1
        self.send(
            id=f"a-{self.asked}",
            method="session/request_permission",
            params={"sessionId": "c-1", "toolCall": call, "options": OPTIONS},
        )
        answer = self.read() or {}
        chosen: str = answer["result"]["outcome"].get("optionId", "")
        return chosen

    def read(self) -> dict[str, Any] | None:
        line = sys.stdin.readline()
        if not line:
            return None
        with open(self.script["log"], "a") as log:
            log.write(line)
        message: dict[str, Any] = json.loads(line)
        return message

    def send(self, **fields: Any) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **fields}) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with open(sys.argv[1]) as given:
        _Agent(json.load(given)).main()
