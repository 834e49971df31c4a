"""The hook dialect of Claude Code."""

from detent.clients.dialect import Dialect, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class ClaudeCodeDialect(Dialect):
    EVENTS = {**Dialect.EVENTS, "TaskCreated": "todo", "TaskCompleted": "todo"}
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
    }
    WHOLE_FILES = ("Write",)
    GENERAL_AGENTS = ("", "general-purpose")
    HEARD = (*Dialect.HEARD, "PostToolUseFailure")

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


DIALECT = ClaudeCodeDialect()
