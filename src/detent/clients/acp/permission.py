"""The policy for permission requests, after the guard: which calls an agent may make.

An entry of `allow` is a kind of tools (`edit`), or a kind with a pattern: of the paths (`edit:docs/*`), or of every
single command of a shell call (`execute:pytest *`). A shell call that does more than to run commands matches no
pattern: it could put another program in the place of the one that is named, or write any file.
"""

import os
from collections.abc import Sequence
from fnmatch import fnmatchcase

from detent.clients.acp.calls import ToolCall
from detent.core.guard.shell.grammar import DECLARING, parse
from detent.core.guard.shell.tree import Part, Redirect, Script
from detent.core.guard.shell.walk import Reading
from detent.errors import Invalid

KINDS = ("read", "edit", "delete", "move", "search", "execute", "think", "fetch", "other")
#: Without a sandbox: reading, and writing in the directory of the turn.
DEFAULT = ("read", "search", "think", "edit", "delete", "move")
_WRITES = ("edit", "delete", "move")
#: Files that one call may name.
MAX_PATHS = 1_000
_OWN = "detent"
#: The verbs of Detent that every agent may use: to look, to ask, and to work on phases, gates and tasks. Others write
#: files wherever they are told to, or run commands that an agent wrote.
_OWN_VERBS = (
    "ask", "begin", "diff", "fail", "finish", "gates", "log", "next", "note", "status", "tasks", "why",
    "checkpoint create", "checkpoint list", "checkpoint show", "gate report", "gate run", "gate wait",
    "task add", "task beat", "task block", "task done", "task fail", "task list", "task next", "task release",
    "task resume", "task show", "task split", "task start", "task unblock",
)  # fmt: skip


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
        if len(call.paths) > MAX_PATHS:
            return f"the call names {len(call.paths)} files, and {MAX_PATHS} are allowed; make smaller calls"
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
        if not pattern and call.kind not in _WRITES:
            return True
        paths = [os.path.realpath(path) for path in call.paths]
        return bool(paths) and all(self._matches_path(path, pattern) for path in paths)

    def _matches_path(self, path: str, pattern: str) -> bool:
        is_inside = path == self._cwd or path.startswith(self._cwd + os.sep)
        if not pattern:
            return is_inside or self._sandboxed
        return fnmatchcase(path, pattern) or (is_inside and fnmatchcase(os.path.relpath(path, self._cwd), pattern))


def _commands(command: str, cwd: str) -> list[list[str]] | None:
    """The words of each command of a shell call; None if a part of it cannot be followed, or does something else."""
    reading = Reading(command, cwd)
    if reading.is_opaque or reading.code or not _only_runs(parse(command).nodes):
        return None
    return reading.argvs


def _only_runs(script: Script) -> bool:
    """Whether these are commands side by side or in pipelines: no variable is set, and no file is written by `>`."""
    for node in script:
        if node.kind == "pipe":
            if not all(map(_only_runs, node.bodies)):
                return False
        elif node.kind != "simple" or node.assigns or _text(node.words[:1]) in DECLARING:
            return False
        words = [*node.words, *(redirect.word for redirect in node.redirects)]
        if not all(_sets_nothing(part) for word in words for part in word) or any(map(_writes, node.redirects)):
            return False
    return True


def _sets_nothing(part: Part) -> bool:
    return part.kind not in ("sub", "proc", "num") and "=" not in part.op and all(map(_sets_nothing, part.word))


def _writes(redirect: Redirect) -> bool:
    target = _text([redirect.word])
    is_kept = target == os.devnull or (redirect.op == ">&" and target.isdigit())
    return ">" in redirect.op and not is_kept


def _text(words: list[list[Part]]) -> str:
    return "".join(part.text for word in words for part in word)


def _all_match(command: str, pattern: str, cwd: str) -> bool:
    commands = _commands(command, cwd)
    return bool(commands) and all(fnmatchcase(" ".join(words), pattern) for words in commands or ())


def _is_only_detent(command: str) -> bool:
    commands = _commands(command, "/")
    return bool(commands) and all(map(_is_own, commands or ()))


def _is_own(words: list[str]) -> bool:
    return words[0] == _OWN and any(" ".join(words[1:end]) in _OWN_VERBS for end in (2, 3))
