"""One shape for the events of all clients. Loads nothing: it stands on the path of every tool call."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Call = dict[str, Any]

EVENTS = {
    "SessionStart": "session_start",
    "UserPromptSubmit": "prompt",
    "BeforeAgent": "prompt",
    "PreToolUse": "pre_tool",
    "BeforeTool": "pre_tool",
    "PostToolUse": "post_tool",
    "AfterTool": "post_tool",
    "PostToolUseFailure": "tool_failed",
    "SubagentStart": "subagent_start",
    "SubagentStop": "subagent_stop",
    "TaskCreated": "todo",
    "TaskCompleted": "todo",
    "PreCompact": "pre_compact",
    "PreCompress": "pre_compact",
    "Stop": "stop",
    "AfterAgent": "stop",
    "SessionEnd": "session_end",
}

_DELEGATE = ("Task", "Agent", "spawn_agent", "invoke_agent")
_SHELL = ("Bash", "run_shell_command", "exec_command", "shell")
_WRITE = ("Write", "Edit", "MultiEdit", "NotebookEdit", "write_file", "replace", "apply_patch")
_TODO = ("TodoWrite", "TaskCreate", "TaskUpdate", "write_todos", "update_plan")
_PATCH_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


def event_kind(payload: "Any") -> str:
    return EVENTS.get(text_of(payload.get("hook_event_name")), "other") if isinstance(payload, dict) else "other"


def tool_call(payload: "Any") -> "Call":
    """The call that the event is about: kind, tool, agent, text, command, cwd, paths, content."""
    given = payload.get("tool_input")
    inputs = given if isinstance(given, dict) else {}
    tool, cwd = text_of(payload.get("tool_name")), text_of(payload.get("cwd")) or "/"
    call: Call = {
        "kind": "other",
        "tool": tool,
        "agent": "",
        "text": "",
        "command": "",
        "cwd": cwd,
        "home": "",
        "paths": (),
        "content": None,
    }
    if tool in _DELEGATE:
        agent = next((inputs[k] for k in ("subagent_type", "agent_type", "agent_name", "agent") if inputs.get(k)), "")
        parts = [inputs.get(key) for key in ("prompt", "description", "message", "task")]
        call.update(
            kind="delegate", agent=text_of(agent), text=" ".join(part for part in parts if isinstance(part, str))
        )
    elif tool in _SHELL:
        command = inputs.get("command", inputs.get("cmd"))
        if isinstance(command, list):
            command = " ".join(quoted(text_of(word)) for word in command)
        call.update(kind="shell", command=text_of(command))
    elif tool in _WRITE:
        call.update(kind="write", paths=_paths(tool, inputs, cwd), content=_content(tool, inputs))
    elif tool == "Skill":
        call.update(kind="skill", agent=text_of(inputs.get("skill")), text=text_of(inputs.get("args")))
    elif tool in _TODO:
        call["kind"] = "todo"
    return call


def text_of(value: "Any") -> str:
    return value if isinstance(value, str) else ""


def quoted(word: str) -> str:
    """`word` as one word of a shell command."""
    plain = word and all(c.isalnum() or c in "-_./=:,@%+" for c in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


def absolute(path: str, cwd: str) -> str:
    """`path` from the root, without `.` and `..`; links are not looked at."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else cwd + "/" + path).split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)


def _paths(tool: str, inputs: "Call", cwd: str) -> tuple[str, ...]:
    if tool == "apply_patch":
        patch = text_of(inputs.get("command")) or text_of(inputs.get("patch")) or text_of(inputs.get("input"))
        named = [line[len(h) :].strip() for line in patch.splitlines() for h in _PATCH_HEADERS if line.startswith(h)]
    else:
        named = [text_of(inputs.get(key)) for key in ("file_path", "notebook_path", "path", "filePath")]
    return tuple(absolute(name, cwd) for name in named if name)


def _content(tool: str, inputs: "Call") -> "str | None":
    """The whole new text, where the call carries it."""
    content = inputs.get("content") if tool in ("Write", "write_file") else None
    return content if isinstance(content, str) else None
