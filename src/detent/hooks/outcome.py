"""What came of a tool call, read from the shapes in which clients report it."""

import os
from typing import Any, NamedTuple

from detent.core.result_block import MAX_DELIVERABLES


class AgentReport(NamedTuple):
    agent_id: str
    is_running: bool
    succeeded: bool
    text: str


def agent_report(payload: dict[str, Any]) -> AgentReport:
    """Of a call that launched an agent. A background launch is no end; a bare response counts as finished."""
    response = payload.get("tool_response")
    fields = response if isinstance(response, dict) else {}
    agent_id = fields.get("agentId") or fields.get("agent_id") or fields.get("id")
    if not agent_id and isinstance(response, str):
        agent_id = _id_in(response)
    running = fields.get("status") == "async_launched" or payload.get("tool_name") == "spawn_agent"
    text = _text(fields.get("content")) or _text(fields.get("llmContent")) or _text(response)
    failed = bool(fields.get("error") or fields.get("is_error") or payload.get("error"))
    display = fields.get("returnDisplay")
    if isinstance(display, dict) and display.get("isSubagentProgress"):  # Gemini
        text = _result_in(_text(display.get("result")))
        failed = failed or display.get("terminateReason") != "GOAL"
    said_nothing = isinstance(response, dict) and "content" in fields and not text
    return AgentReport(
        agent_id=agent_id if isinstance(agent_id, str) else "",
        is_running=running,
        succeeded=not failed and not said_nothing,
        text=text,
    )


def shell_result(payload: dict[str, Any]) -> tuple[str, int | None]:
    """Output and exit code of a shell call, None where the client does not tell it."""
    error = payload.get("error")
    if isinstance(error, str):
        first, _, rest = error.partition("\n")
        code = first.removeprefix("Exit code ").strip()
        return rest, int(code) if code.isdigit() else 1
    response = payload.get("tool_response")
    if isinstance(response, str):
        return response, _exit_code_in(response)
    fields = response if isinstance(response, dict) else {}
    if "llmContent" in fields:
        text = _text(fields["llmContent"])
        return text, _exit_code_in(text)
    # Claude Code reports a failing command as a failure of the tool, so this one succeeded.
    return f"{fields.get('stdout', '')}\n{fields.get('stderr', '')}", 0


def named_files(text: str, base: str) -> tuple[str, ...]:
    """The files below `base` that a text names, in its order; for an answer without a list of what was made."""
    found: dict[str, None] = {}
    for word in text.split():
        name = word.strip("`'\"*()[]{}<>,;:!?").rstrip(".").removeprefix(base + "/")
        looks_like_one = "." in name and not name.startswith(("/", "-")) and ".." not in name.split("/")
        if looks_like_one and len(found) < MAX_DELIVERABLES and os.path.isfile(os.path.join(base, name)):
            found[name] = None
    return tuple(found)


def todo_entries(payload: dict[str, Any]) -> list[tuple[str, str]]:
    """Title and status of each entry of a todo list that was written, in the shapes of all clients."""
    given = payload.get("tool_input")
    inputs = given if isinstance(given, dict) else {}
    listed = inputs.get("todos") or inputs.get("plan")
    entries = []
    for entry in listed if isinstance(listed, list) else ():
        fields = entry if isinstance(entry, dict) else {}
        title = next((fields[key] for key in ("content", "description", "step") if key in fields), None)
        if isinstance(title, str) and isinstance(fields.get("status"), str):
            entries.append((title, fields["status"]))
    return entries


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def _exit_code_in(text: str) -> int | None:
    for line in text.splitlines():
        head, _, rest = line.strip().lower().partition(":")
        if head in ("exit code", "process exited with code") and rest.strip().isdigit():
            return int(rest)
    return None


def _id_in(text: str) -> str:
    """Codex answers a spawn with JSON text that names the agent."""
    fields = _fields_in(text)
    found = fields.get("agent_id") or fields.get("id")
    return found if isinstance(found, str) else ""


def _result_in(text: str) -> str:
    """What an agent of Gemini handed back is JSON text with one field, unless it was asked for something else."""
    values = list(_fields_in(text).values())
    return values[0] if len(values) == 1 and isinstance(values[0], str) else text


def _fields_in(text: str) -> dict[str, Any]:
    import json

    try:
        fields = json.loads(text)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
