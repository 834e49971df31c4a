"""The hook dialect of Gemini CLI: its own names for events and tools, and its own form of a denial."""

from _json import encode_basestring_ascii as quote

from detent.clients.dialect import LIMIT, AgentReport, Dialect, exit_code_of, fields_of, joined_text, json_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


class GeminiDialect(Dialect):
    EVENTS = {
        "SessionStart": "session_start",
        "BeforeAgent": "prompt",
        "BeforeTool": "pre_tool",
        "AfterTool": "post_tool",
        "PreCompress": "pre_compact",
        "AfterAgent": "stop",
        "SessionEnd": "session_end",
    }
    TOOLS = {
        "invoke_agent": "delegate",
        "run_shell_command": "shell",
        "write_file": "write",
        "replace": "write",
        "write_todos": "todo",
    }
    MCP_PREFIX = "mcp_"
    OWN_PREFIXES = ("mcp_detent_",)
    WHOLE_FILES = ("write_file",)
    GENERAL_AGENTS = ("", "generalist")
    HEARD = ("SessionStart", "BeforeAgent", "AfterTool")

    def deny(self, reason: str) -> str:
        return f'{{"decision":"deny","reason":{quote(reason[:LIMIT])}}}'

    def keep_going(self, reason: str) -> str:
        return self.deny(reason)

    def agent_report(self, payload: "Json") -> AgentReport:
        """An agent has no id. It reports its end in `returnDisplay`."""
        fields = fields_of(payload.get("tool_response"))
        report = super().agent_report(payload)
        text, succeeded = joined_text(fields.get("llmContent")) or report.text, report.succeeded
        display = fields.get("returnDisplay")
        if isinstance(display, dict) and display.get("isSubagentProgress"):
            text = _result_in(joined_text(display.get("result")))
            succeeded = succeeded and display.get("terminateReason") == "GOAL"
        return AgentReport(report.agent_id, is_running=report.is_running, succeeded=succeeded, text=text)

    def shell_result(self, payload: "Json") -> "tuple[str, int | None]":
        response = payload.get("tool_response")
        if not isinstance(response, dict):
            return super().shell_result(payload)
        output = joined_text(response.get("llmContent"))
        return output, exit_code_of(response, output)


def _result_in(text: str) -> str:
    """The result of an agent: the one field of its JSON text, or the text itself."""
    values = list(json_fields(text).values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text


DIALECT = GeminiDialect()
