"""The hook dialect of Claude Code."""

import posix

from detent.clients.dialect import Dialect, fields_of, json_fields, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from detent.clients.usage import Usage

    Json = dict[str, Any]


#: Characters of the file of a task.
MAX_TASK = 1024 * 1024


class ClaudeCodeDialect(Dialect):
    EVENTS = {**Dialect.EVENTS, "TaskCompleted": "task_completed"}
    TOOLS = {
        "Task": "delegate",
        "Agent": "delegate",
        "Workflow": "message",
        "SendMessage": "message",
        "Bash": "shell",
        "Write": "write",
        "Edit": "write",
        "MultiEdit": "write",
        "NotebookEdit": "write",
        "Skill": "skill",
        "TodoWrite": "todo",
        "TaskCreate": "todo",
        "TaskUpdate": "todo",
    }
    WHOLE_FILES = ("Write",)
    GENERAL_AGENTS = ("", "general-purpose")
    HEARD = (*Dialect.HEARD, "PostToolUseFailure")
    PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"

    def ends_background_agent(self, payload: "Json") -> bool:
        return text_of(payload.get("prompt")).startswith("<task-notification>")

    def shell_result(self, payload: "Json") -> "tuple[str, int | None]":
        """A failed command is a failure of the tool; the first line of its error has the exit code."""
        error = payload.get("error")
        if isinstance(error, str):
            first, _, rest = error.partition("\n")
            digits = first.removeprefix("Exit code ").strip()
            return rest, int(digits) if digits.isdigit() else 1
        output, code = super().shell_result(payload)
        # A response object without a code belongs to a command that succeeded.
        return output, 0 if code is None and isinstance(payload.get("tool_response"), dict) else code

    def agent_usage(self, payload: "Json", agent_id: str) -> "Usage | None":
        from detent.clients.claude_code.transcript import agent_usage  # noqa: PLC0415 - needed when an agent has ended

        return agent_usage(payload, agent_id)

    def todo_entries(self, payload: "Json") -> "list[tuple[str, str]]":
        """The entries of TodoWrite, or the one task that was created or updated."""
        inputs, tool = fields_of(payload.get("tool_input")), payload.get("tool_name")
        if tool == "TaskCreate":
            return [(text_of(inputs.get("subject")), "pending")]
        if tool != "TaskUpdate":
            return super().todo_entries(payload)
        if fields_of(payload.get("tool_response")).get("success") is False:
            return []
        subject = text_of(inputs.get("subject")) or self._subject(payload, text_of(inputs.get("taskId")))
        status = text_of(inputs.get("status"))
        return [(subject, status)] if status else []

    def _subject(self, payload: "Json", task: str) -> str:
        """The subject of a task in the client's own list, which is a file a task."""
        session = text_of(payload.get("session_id"))
        if not (task.isalnum() and session.replace("-", "").isalnum()):
            return ""
        home = (posix.environ.get(b"CLAUDE_CONFIG_DIR") or posix.environ.get(b"HOME", b"") + b"/.claude").decode()
        try:
            with open(f"{home}/tasks/{session}/{task}.json", encoding="utf-8") as file:
                return text_of(json_fields(file.read(MAX_TASK)).get("subject"))
        except (OSError, ValueError):
            return ""


DIALECT = ClaudeCodeDialect()
