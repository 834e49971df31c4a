"""The policy for permission requests, after the guard: which calls an agent may make.

An entry of `allow` is a kind of tools (`edit`), or a kind with a pattern: of the paths (`edit:docs/*`), or of every
single command of a shell call (`execute:pytest *`).
"""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from detent.clients.acp.calls import ToolCall
from detent.core.guard.shell.walk import Reading
from detent.errors import Invalid

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
#: Without a sandbox: reading, and writing in the directory of the turn.
DEFAULT = ("read", "search", "think", "edit", "delete", "move")
_WRITES = ("edit", "delete", "move")
_OWN = "detent"


def check_allowed(allow: Sequence[str], agent: str) -> None:
    for entry in allow:
        if entry.partition(":")[0] not in KINDS:
            raise Invalid(
                f"allow of {agent} has {entry!r}, which is no kind of tools: {', '.join(KINDS)}",
                way_out="correct allow under [agents] in detent.toml",
            )


class Permissions:
    def __init__(self, allow: Sequence[str] | None, cwd: str, *, sandboxed: bool) -> None:
        self._allow = (KINDS if sandboxed else DEFAULT) if allow is None else allow
        self._cwd, self._sandboxed = os.path.realpath(cwd), sandboxed

    def refusal(self, call: ToolCall) -> str | None:
        """The reason to deny the call; None if the settings allow it."""
        if call.kind == "switch_mode":
            return "the mode of the agent is chosen by Detent"
        if call.kind == "execute" and _is_only_detent(call.command):
            return None
        entries = [entry for entry in self._allow if entry.partition(":")[0] == call.kind]
        if any(self._matches(entry.partition(":")[2], call) for entry in entries):
            return None
        about = call.command or ", ".join(call.paths) or call.title
        return f"{call.kind} is not allowed for this agent: {about}; a person can allow it in detent.toml"

    def _matches(self, pattern: str, call: ToolCall) -> bool:
        if call.kind == "execute":
            return not pattern or _all_match(call.command, pattern, self._cwd)
        if call.kind in _WRITES:
            paths = [os.path.realpath(path) for path in call.paths]
            return bool(paths) and all(self._matches_path(path, pattern) for path in paths)
        return not pattern or all(self._matches_path(path, pattern) for path in call.paths)

    def _matches_path(self, path: str, pattern: str) -> bool:
        is_inside = path == self._cwd or path.startswith(self._cwd + os.sep)
        if not pattern:
            return is_inside or self._sandboxed
        return fnmatchcase(path, pattern) or (is_inside and fnmatchcase(os.path.relpath(path, self._cwd), pattern))


def _commands(command: str, cwd: str) -> list[str] | None:
    """The simple commands of a shell command; None if a part of it cannot be followed."""
    reading = Reading(command, cwd)
    return None if reading.is_opaque or reading.code else [" ".join(words) for words in reading.argvs]


def _all_match(command: str, pattern: str, cwd: str) -> bool:
    commands = _commands(command, cwd)
    return bool(commands) and all(fnmatchcase(each, pattern) for each in commands or ())


def _is_only_detent(command: str) -> bool:
    commands = _commands(command, "/")
    return bool(commands) and all(each.split(" ")[0] == _OWN for each in commands or ())
