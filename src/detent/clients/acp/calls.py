"""A tool call of an agent, put together from what the agent tells about it bit by bit."""

import os
import re
import shlex
from typing import Any

import msgspec

from detent.clients.acp.agents import AcpAgent
from detent.clients.dialect import fields_of, joined_text, text_of

#: Some agents write the directory of a shell call into its description.
_DIRECTORY = re.compile(r"\[(?:current working directory|in) ([^\]]+)\]")
_EXIT_CODE = re.compile(r"\AExit code (\d+)$", re.MULTILINE)
_ENDED = ("completed", "failed")
#: Kinds that change nothing. The agent chooses the word, so a call of them counts by its content too.
LOOKING = ("read", "search", "think")
#: Kinds of which command and paths say everything that is judged.
_SHOWN = ("execute", "edit", "delete", "move")


class ToolCall:
    def __init__(self, agent: AcpAgent, cwd: str) -> None:
        self._agent, self._cwd = agent, cwd
        self._fields: dict[str, Any] = {}
        #: Whether the agent asked for permission, and the facts of the call that it got it for.
        self.asked = False
        self.granted: frozenset[tuple[str, str]] | None = None
        self.has_ended = False

    def update(self, fields: dict[str, Any]) -> None:
        meta = {**fields_of(self._fields.get("_meta")), **fields_of(fields.get("_meta"))}
        # An empty list is no news: agents send it where nothing has changed.
        news = {name: value for name, value in fields.items() if value not in (None, [], {}, "")}
        self._fields = {**self._fields, **news, "_meta": meta}

    @property
    def id(self) -> str:
        return text_of(self._fields.get("toolCallId"))

    @property
    def title(self) -> str:
        return text_of(self._fields.get("title"))

    @property
    def kind(self) -> str:
        """The kind that the agent names. A call that holds a command or a change is not one that only looks."""
        named = text_of(self._fields.get("kind")) or "other"
        if named not in LOOKING:
            return named
        return "execute" if self._given_command else "edit" if self._content("diff") else named

    @property
    def name(self) -> str:
        return text_of(self._fields.get("name")) or self._agent.tools.get(self.title, "")

    @property
    def raw_input(self) -> dict[str, Any]:
        return fields_of(self._fields.get("rawInput"))

    @property
    def status(self) -> str:
        return text_of(self._fields.get("status"))

    @property
    def is_done(self) -> bool:
        return self.status in _ENDED

    @property
    def succeeded(self) -> bool:
        return self.status == "completed"

    @property
    def command(self) -> str:
        """The shell command. An agent that tells no input has it as the title."""
        return (self._given_command or self.title) if self.kind == "execute" else ""

    @property
    def _given_command(self) -> str:
        given = self.raw_input.get("command", self.raw_input.get("cmd"))
        return shlex.join(map(text_of, given)) if isinstance(given, list) else text_of(given)

    @property
    def cwd(self) -> str:
        """The directory of a shell call."""
        named = text_of(self.raw_input.get("cwd"))
        texts = (joined_text([fields_of(each.get("content"))]) for each in self._content("content"))
        described = next((match[1] for text in texts if (match := _DIRECTORY.match(text))), "")
        return os.path.join(self._cwd, named or described) if self.kind == "execute" else self._cwd

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that it names, absolute."""
        listed = self._fields.get("locations")
        locations = [fields_of(each) for each in listed] if isinstance(listed, list) else []
        named = [text_of(each.get("path")) for each in (*locations, *self._content("diff"))]
        return tuple(dict.fromkeys(os.path.join(self._cwd, path) for path in named if path))

    @property
    def facts(self) -> frozenset[tuple[str, str]]:
        """The facts that a permission is given for. The agent may tell more of them until the call has ended."""
        given = (("kind", self.kind), ("command", self.command), ("cwd", self.cwd))
        paths = (("path", os.path.realpath(path)) for path in self.paths)
        inputs = msgspec.json.encode(self.raw_input, order="sorted").decode() if self.kind not in _SHOWN else ""
        return frozenset((*given, *paths, ("input", inputs)))

    @property
    def summary(self) -> str:
        """The most telling fact about it, for people."""
        return self.command or ", ".join(self.paths) or self.title

    def payload(self, conversation: str) -> dict[str, Any]:
        """The call as an event for the hook process."""
        diffs = [
            {"path": each.get("path"), "old": each.get("oldText"), "new": each.get("newText")}
            for each in self._content("diff")
        ]
        acp = {"kind": self.kind, "command": self.command, "paths": list(self.paths), "diffs": diffs}
        if self.kind not in _SHOWN:
            acp["texts"] = [self.title, self.raw_input]
        output, code = self._result()
        return {
            "client": self._agent.client,
            "session_id": conversation,
            # The guard finds the project by the directory of the turn. That of a call is chosen by the agent.
            "cwd": self._cwd,
            "call_cwd": self.cwd,
            "tool_name": self.name,
            "tool_use_id": self.id,
            "tool_input": self.raw_input or None,
            "tool_response": fields_of(fields_of(self._fields.get("_meta")).get("claudeCode")).get("toolResponse"),
            "acp": acp,
            "output": output,
            "exit_code": code,
        }

    def _result(self) -> tuple[str, int | None]:
        """Output and exit code of a shell call, as far as the agent tells them."""
        meta, raw = fields_of(self._fields.get("_meta")), self._fields.get("rawOutput")
        ended = fields_of(meta.get("terminal_exit")) or fields_of(raw)
        code = ended.get("exit_code")
        output = text_of(fields_of(meta.get("terminal_output_delta")).get("data")) or joined_text(raw)
        if not isinstance(code, int) and isinstance(raw, str):
            match = _EXIT_CODE.match(raw)
            code = int(match[1]) if match else 0 if self.succeeded else None
        return output, code if isinstance(code, int) else None

    def _content(self, kind: str) -> list[dict[str, Any]]:
        listed = self._fields.get("content")
        return [each for each in listed if fields_of(each).get("type") == kind] if isinstance(listed, list) else []
