"""The hook dialect of the ACP adapter: the adapter itself asks the hook process, in the place of the client.

The payload has the tool call in the words of the protocol (`acp`), and in those of the client where they are known.
"""

from _json import encode_basestring_ascii as quote

from detent.clients.dialect import LIMIT, AgentReport, Dialect, fields_of, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    Edit = tuple[str, str, str, bool]


class AcpDialect(Dialect):
    #: Kinds of tools of the protocol. Any other call is judged by all the texts that it names.
    TOOLS = {"execute": "shell", "edit": "write", "delete": "write", "move": "write"}
    #: Kinds that may name every file. Drift is looked for after them too, because the agent chooses the word.
    LOOKING = ("read", "search", "think")
    GENERAL_AGENTS = ("",)

    def read(self, payload: "Json") -> "Json":
        """The tool's own name and input if the dialect of the client knows them, else those of the protocol."""
        known, acp = _client_dialect(payload), fields_of(payload.get("acp"))
        if known is not None:
            return payload
        return {**payload, "client": "", "tool_name": text_of(acp.get("kind")), "tool_input": acp}

    def kind(self, tool: str) -> str:
        return self.TOOLS.get(tool, "mcp")

    def call(self, payload: "Json") -> "Json":
        known = _client_dialect(payload)
        call = known.call(payload) if known is not None else super().call(payload)
        if call["kind"] == "mcp" and known is None:
            call["reads"] = call["tool"] in self.LOOKING
            call["text"] = "" if call["reads"] else call["text"]
        return call

    def written(self, tool: str, inputs: "Json") -> "list[str]":  # noqa: ARG002 - all tools name them so
        paths = inputs.get("paths")
        return [text_of(path) for path in paths] if isinstance(paths, list) else []

    def edited(self, tool: str, inputs: "Json") -> "list[Edit]":  # noqa: ARG002 - all tools name them so
        listed = inputs.get("diffs")
        edits = [fields_of(edit) for edit in listed] if isinstance(listed, list) else []
        return [(text_of(e.get("path")), text_of(e.get("old")), text_of(e.get("new")), False) for e in edits]

    def deny(self, reason: str) -> str:
        return f'{{"deny":{quote(reason[:LIMIT])}}}'

    def tell(self, event_name: str, text: str) -> str:  # noqa: ARG002 - the adapter shows it, whenever it comes
        return f'{{"tell":{quote(text[:LIMIT])}}}'

    def shell_result(self, payload: "Json") -> "tuple[str, int | None]":
        code = payload.get("exit_code")
        return text_of(payload.get("output")), code if isinstance(code, int) else None

    def agent_report(self, payload: "Json") -> AgentReport:
        known = _client_dialect(payload)
        return known.agent_report(payload) if known is not None else super().agent_report(payload)


def _client_dialect(payload: "Json") -> "Dialect | None":
    """The dialect of the client that made the call, if it knows the tool."""
    from detent.clients import registry  # noqa: PLC0415 - it loads this module by name

    client = registry.CLIENTS.get(text_of(payload.get("client")))
    if client is None or not client.has_hooks or not isinstance(payload.get("tool_input"), dict):
        return None
    dialect = registry.dialect(client.name)
    return dialect if dialect.kind(text_of(payload.get("tool_name"))) != "other" else None


DIALECT = AcpDialect()
