"""The hook dialect of Codex: the common events and replies, and results of tools as text."""

import posix

from detent.clients.dialect import (
    AgentReport,
    Dialect,
    absolute,
    first_text,
    json_fields,
    patch_edits,
    patched_files,
    text_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.dialect import Edit
    from detent.clients.usage import Usage

    Json = dict[str, Any]


class CodexDialect(Dialect):
    TOOLS = {
        "spawn_agent": "delegate",
        "send_input": "message",
        "wait_agent": "wait",
        "Bash": "shell",
        "exec_command": "shell",
        "shell": "shell",
        # What is typed into a running program. Versions that ask no hook for it are noticed by drift.
        "write_stdin": "shell",
        "apply_patch": "write",
        "update_plan": "todo",
    }
    GENERAL_AGENTS = ("", "default", "worker")
    #: Codex has this in front of the names of its tools for agents.
    AGENT_TOOLS = "multi_agent_v1"

    def read(self, payload: "Json") -> "Json":
        """Codex tells the directory of a shell call, which its model chooses, as that of the session.

        It starts the hook in the directory of the session. If the call goes out of that, the project there counts.
        """
        directory = text_of(payload.get("cwd"))
        here = posix.getcwd() if directory else ""
        if f"{absolute(directory, here)}/".startswith(f"{here.rstrip('/')}/") or not _has_state(here):
            return payload
        return {**payload, "cwd": here, "call_cwd": directory}

    def kind(self, tool: str) -> str:
        return super().kind(tool.removeprefix(self.AGENT_TOOLS))

    def edited(self, tool: str, inputs: "Json") -> "list[Edit]":  # noqa: ARG002 - Codex has one such tool
        return patch_edits(first_text(inputs, ("command", "patch", "input")))

    def written(self, tool: str, inputs: "Json") -> "list[str]":  # noqa: ARG002 - Codex has one such tool
        return patched_files(first_text(inputs, ("command", "patch", "input")))

    def agent_report(self, payload: "Json") -> AgentReport:
        """A spawn returns at once with JSON text that names the agent."""
        report = super().agent_report(payload)
        agent_id = report.agent_id or first_text(json_fields(text_of(payload.get("tool_response"))), ("agent_id", "id"))
        return AgentReport(agent_id, is_running=True, succeeded=report.succeeded, text=report.text)

    def agent_usage(self, payload: "Json", agent_id: str) -> "Usage | None":  # noqa: ARG002 - the event names the file
        from detent.clients.codex.transcript import agent_usage  # noqa: PLC0415 - needed when an agent has ended

        return agent_usage(payload)


def _has_state(directory: str) -> bool:
    """Whether a directory is in a project."""
    while directory:
        try:
            posix.stat(f"{directory}/.workflow")
        except OSError:
            directory = directory.rpartition("/")[0]
        else:
            return True
    return False


DIALECT = CodexDialect()
