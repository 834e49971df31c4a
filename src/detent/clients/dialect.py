"""The hook dialect of a client: reads its events and writes its replies.

The class holds the form that most clients share; a subclass changes the tables and methods in which its client differs.
The hook process imports a dialect for every tool call, so this module and every `dialect.py` import builtins only.
"""

import posix
from _json import encode_basestring_ascii as quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Edit = tuple[str, str, str, bool]

#: Directories in the state directory that a launcher reads: calls under way that expect the hook after them, and the
#: words that wait for the next event of a conversation. `hooks/left_out.py` and `hooks/seen.py` write them.
EXPECTED, TOLD = ".expected", ".told"
#: Before a reason that is answered with exit code 2, because the client takes no JSON there.
HELD = "\x02"
#: Clients cut longer texts.
LIMIT = 9_000
_AGENT_FIELDS = ("subagent_type", "agent_type", "agent_name", "agent", "to", "recipient")
#: The directory of a shell call, if it is not that of the session.
_DIRECTORY_FIELDS = ("dir_path", "directory", "workdir")
_TEXT_FIELDS = ("prompt", "description", "message", "task", "script", "content", "input")
#: Words in the names of tools that only read, and of tools that do not.
_READING = ("read", "get", "list", "search", "find", "view", "show", "stat", "fetch", "query", "describe")
_WRITING = ("write", "edit", "create", "delete", "remove", "move", "update", "set", "run", "exec", "put", "shell")
#: The texts of a call to an MCP tool that may be paths. Names are searched for in all of them.
MAX_PATHS = 1_000
#: The tools of Detent's own MCP server. What an agent writes to them is not followed: the server asks the policy.
OWN_TOOLS = (
    "status", "why", "begin", "finish", "fail", "gate_run", "task_next", "task_start", "task_done", "task_add", "ask",
    "checkpoints", "diff",
)  # fmt: skip
_PATCH_HEADERS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")


class AgentReport:
    """The result of a call that launched an agent."""

    __slots__ = ("agent_id", "is_running", "succeeded", "text")

    def __init__(self, agent_id: str, *, is_running: bool, succeeded: bool, text: str) -> None:
        self.agent_id, self.is_running, self.succeeded, self.text = agent_id, is_running, succeeded, text


class Dialect:
    """Reads events into one form and writes replies. An empty reply means "allow"."""

    #: The client's name of each event, with Detent's name.
    EVENTS: "dict[str, str]" = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "PreToolUse": "pre_tool",
        "PostToolUse": "post_tool",
        "PostToolUseFailure": "tool_failed",
        "SubagentStart": "subagent_start",
        "SubagentStop": "subagent_stop",
        "PreCompact": "pre_compact",
        "Stop": "stop",
        "SessionEnd": "session_end",
    }
    #: Kind of each relevant tool: delegate, message, shell, write, skill or todo.
    TOOLS: "dict[str, str]" = {}
    #: Tools of MCP servers have this in front of their names.
    MCP_PREFIX = "mcp__"
    #: In front of the names of the tools of Detent's own server, by hand and in a plugin.
    OWN_PREFIXES: "tuple[str, ...]" = ("mcp__detent__", "mcp__plugin_detent_detent__")
    #: Tools whose input has the whole new file as `content`.
    WHOLE_FILES: "tuple[str, ...]" = ()
    #: Names of general-purpose agents.
    GENERAL_AGENTS: "tuple[str, ...]" = ()
    #: Events at which the client passes `additionalContext` to its model. At all others the text goes to the person: at
    #: the end of a turn or of an agent the client would continue because of it, or ignore it.
    HEARD: "tuple[str, ...]" = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart")
    #: The variable with the project's directory in the environment of every hook. With it, the launcher leaves out the
    #: hook after a shell call that does not expect it.
    PROJECT_VARIABLE = ""

    def read(self, payload: "Json") -> "Json":
        """The payload with the names of the common form: `cwd`, `session_id`, `hook_event_name`, `tool_name`, …

        The project is found by `cwd`, which an agent must not choose. The directory of a call is in `call_cwd`.
        """
        return payload

    def own_project(self) -> str:
        """The directory in which the client was started; empty where it does not tell."""
        place = posix.environ.get(self.PROJECT_VARIABLE.encode(), b"").decode("utf-8", "surrogateescape").rstrip("/")
        return place if place.startswith("/") else ""

    def event(self, payload: "Any") -> str:
        return (
            self.EVENTS.get(text_of(payload.get("hook_event_name")), "other") if isinstance(payload, dict) else "other"
        )

    def call(self, payload: "Json") -> "Json":
        """The tool call of an event: kind, tool, agent, text, command, cwd, paths, content, edits, reads."""
        inputs = fields_of(payload.get("tool_input"))
        tool, cwd = text_of(payload.get("tool_name")), text_of(payload.get("cwd")) or "/"
        kind = self.kind(tool)
        call: Json = {
            "kind": kind,
            "tool": tool,
            "agent": "",
            "text": "",
            "command": "",
            "cwd": cwd,
            "home": "",
            "paths": (),
            "content": None,
            "edits": (),
            "reads": False,
        }
        if kind in ("delegate", "message"):
            agent = next((inputs[key] for key in _AGENT_FIELDS if inputs.get(key)), "")
            parts = [inputs.get(key) for key in _TEXT_FIELDS]
            call["agent"], call["text"] = text_of(agent), " ".join(part for part in parts if isinstance(part, str))
        elif kind == "shell":
            directory = text_of(payload.get("call_cwd")) or first_text(inputs, _DIRECTORY_FIELDS)
            call["cwd"] = absolute(directory, cwd) if directory else cwd
            # Typed into a running program, which need not be a shell.
            typed = text_of(inputs.get("chars"))
            command = inputs.get("command", inputs.get("cmd", typed))
            call["text"] = typed
            if isinstance(command, list):
                command = " ".join(quoted(text_of(word)) for word in command)
            call["command"] = text_of(command)
        elif kind == "write":
            call["paths"] = tuple(absolute(name, cwd) for name in self.written(tool, inputs) if name)
            content = inputs.get("content") if tool in self.WHOLE_FILES else None
            call["content"] = content if isinstance(content, str) else None
            call["edits"] = tuple((absolute(name, cwd), *edit) for name, *edit in self.edited(tool, inputs))
        elif kind == "mcp":
            values = texts_in(payload.get("tool_input"))
            call["text"] = "" if self.is_own(tool) else "\n".join(values)
            call["paths"] = tuple(absolute(each, cwd) for each in values[:MAX_PATHS] if each and "\n" not in each)
            words = tool.lower().rpartition("__")[2].split("_")
            call["reads"] = any(word.startswith(_READING) for word in words) and not any(
                word.startswith(_WRITING) for word in words
            )
        elif kind == "skill":
            call["agent"], call["text"] = text_of(inputs.get("skill")), text_of(inputs.get("args"))
        return call

    def written(self, tool: str, inputs: "Json") -> "list[str]":  # noqa: ARG002 - the answer depends on the tool in some clients
        """The files that a write names."""
        return [text_of(inputs.get(key)) for key in ("file_path", "notebook_path", "path", "filePath")]

    def kind(self, tool: str) -> str:
        return "mcp" if tool.startswith(self.MCP_PREFIX) else self.TOOLS.get(tool, "other")

    def is_own(self, tool: str) -> bool:
        """Whether a tool is one of Detent's own server. Paths that such a call names are guarded all the same."""
        return any(tool.removeprefix(start) in OWN_TOOLS for start in self.OWN_PREFIXES if tool.startswith(start))

    def edited(self, tool: str, inputs: "Json") -> "list[Edit]":
        """The replacements that an edit makes in a file: its name, the old text, the new text, whether everywhere."""
        names = [name for name in self.written(tool, inputs) if name]
        listed = inputs.get("edits")
        edits = [fields_of(edit) for edit in listed] if isinstance(listed, list) else [inputs]
        return [
            (names[0], text_of(edit.get("old_string")), text_of(edit["new_string"]), bool(edit.get("replace_all")))
            for edit in edits
            if names and isinstance(edit.get("new_string"), str)
        ]

    def ends_background_agent(self, payload: "Json") -> bool:  # noqa: ARG002 - most clients have no background agents
        """Whether a prompt reports the end of a background agent."""
        return False

    def deny(self, reason: str) -> str:
        """Refuse the call, with the reason for the agent."""
        return (
            '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny",'
            f'"permissionDecisionReason":{quote(reason[:LIMIT])}}}}}'
        )

    def keep_going(self, reason: str) -> str:
        """Keep the agent from stopping."""
        return f'{{"decision":"block","reason":{quote(reason[:LIMIT])}}}'

    def keep_open(self, reason: str) -> str:
        """Keep a task of the client's own list open."""
        return HELD + reason[:LIMIT]

    def tell(self, event_name: str, text: str) -> str:
        """Send a text to the agent, or to the person at events where the agent cannot receive it."""
        text = quote(text[:LIMIT])
        if event_name not in self.HEARD:
            return f'{{"systemMessage":{text}}}'
        return f'{{"hookSpecificOutput":{{"hookEventName":{quote(event_name)},"additionalContext":{text}}}}}'

    def agent_report(self, payload: "Json") -> AgentReport:
        """The result of a call that launched an agent. A bare response counts as finished."""
        response = payload.get("tool_response")
        fields = fields_of(response)
        text = joined_text(fields.get("content")) or joined_text(response) or _error_text(payload, fields)
        failed = bool(fields.get("error") or fields.get("is_error") or payload.get("error"))
        is_silent = isinstance(response, dict) and "content" in fields and not text
        return AgentReport(
            first_text(fields, ("agentId", "agent_id", "id")),
            is_running=fields.get("status") == "async_launched",
            succeeded=not failed and not is_silent,
            text=text,
        )

    def agent_usage(self, payload: "Json", agent_id: str) -> "Any":  # noqa: ARG002 - not every client tells it
        """The `Usage` of an agent that has ended; None if the client does not tell it."""
        return None

    def shell_result(self, payload: "Json") -> "tuple[str, int | None]":
        """Output and exit code of a shell call; None if the client does not report the code."""
        response = payload.get("tool_response")
        fields = fields_of(response)
        texts = [joined_text(fields.get(key)) for key in ("stdout", "stderr", "output", "content")]
        output = response if isinstance(response, str) else "\n".join(filter(None, texts))
        return output, exit_code_of(fields, output)

    def todo_entries(self, payload: "Json") -> "list[tuple[str, str]]":
        """Title and status of each entry of the todo list that the agent wrote."""
        inputs = fields_of(payload.get("tool_input"))
        listed = inputs.get("todos") or inputs.get("plan")
        entries = []
        for entry in listed if isinstance(listed, list) else ():
            fields = fields_of(entry)
            title = next((fields[key] for key in ("content", "description", "step") if key in fields), None)
            if isinstance(title, str) and isinstance(fields.get("status"), str):
                entries.append((title, fields["status"]))
        return entries


def _error_text(payload: "Json", fields: "Json") -> str:
    """The client's own words about a call that failed."""
    return next((text for text in (payload.get("error"), fields.get("error")) if isinstance(text, str)), "")


def text_of(value: "Any") -> str:
    return value if isinstance(value, str) else ""


def fields_of(value: "Any") -> "Json":
    return value if isinstance(value, dict) else {}


def first_text(fields: "Json", keys: "tuple[str, ...]") -> str:
    """The first field that is set, if it is a string."""
    return text_of(next((fields[key] for key in keys if fields.get(key)), ""))


def joined_text(content: object) -> str:
    """A string, or the texts in a list of content blocks."""
    if isinstance(content, list):
        blocks = [block.get("text") for block in content if isinstance(block, dict)]
        return "\n".join(text for text in blocks if isinstance(text, str))
    return text_of(content)


def exit_code_of(fields: "Json", output: str) -> "int | None":
    """The exit code in a field of the response, or in a line of the output."""
    codes = (fields.get(key) for key in ("exit_code", "exitCode", "returncode"))
    return next((code for code in codes if isinstance(code, int)), exit_code_in(output))


def exit_code_in(text: str) -> "int | None":
    for line in text.splitlines():
        head, _, rest = line.strip().lower().partition(":")
        if head in ("exit code", "process exited with code") and rest.strip().isdigit():
            return int(rest)
    return None


def patched_files(patch: str) -> "list[str]":
    """The files that an `apply_patch` text names."""
    return [line[len(h) :].strip() for line in patch.splitlines() for h in _PATCH_HEADERS if line.startswith(h)]


def patch_edits(patch: str) -> "list[Edit]":
    """The replacements of an `apply_patch` text. An added file has no old text, a deleted one no new text."""
    edits: list[Edit] = []
    name, old, new = "", [], []  # type: tuple[str, list[str], list[str]]
    for line in [*patch.splitlines(), "*** End Patch"]:
        if line.startswith(("***", "@@")):
            if name and (old or new):
                edits.append((name, "".join(old), "".join(new), False))
            old, new = [], []
            header = next((header for header in _PATCH_HEADERS if line.startswith(header)), "")
            name = line[len(header) :].strip() if header else "" if line.startswith("***") else name
            if header.startswith("*** Delete"):
                edits.append((name, "", "", False))
        else:
            if line[:1] != "+":
                old.append(line[1:] + "\n")
            if line[:1] != "-":
                new.append(line[1:] + "\n")
    return edits


def texts_in(value: "Any") -> "list[str]":
    """The texts in a JSON value, in its order."""
    texts: list[str] = []
    todo = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, str):
            texts.append(each)
        elif isinstance(each, dict):
            todo.extend(reversed(each.values()))
        elif isinstance(each, list):
            todo.extend(reversed(each))
    return texts


def json_fields(text: str) -> "Json":
    """The JSON object in a text; empty if it holds none."""
    import json  # noqa: PLC0415 - slow to import, and needed only after an agent has ended

    try:
        return fields_of(json.loads(text))
    except ValueError:
        return {}


def quoted(word: str) -> str:
    """`word` as one word of a shell command."""
    plain = word and all(c.isalnum() or c in "-_./=:,@%+" for c in word)
    return word if plain else "'" + word.replace("'", "'\\''") + "'"


def absolute(path: str, cwd: str) -> str:
    """`path` as an absolute path without `.` and `..`; links are not followed."""
    parts: list[str] = []
    for part in (path if path.startswith("/") else cwd + "/" + path).split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/" + "/".join(parts)
